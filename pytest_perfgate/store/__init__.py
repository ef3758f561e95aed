"""What is kept between processes and sessions: baselines, reports, run folders."""

from pytest_perfgate.store.atomic import write_atomically
from pytest_perfgate.store.baselines import BaselineStore, read_baselines
from pytest_perfgate.store.codec import (
    decode_environment,
    decode_measurement,
    decode_plan,
    encode_environment,
    encode_measurement,
    encode_plan,
    environment_digest,
)
from pytest_perfgate.store.edits import benchmark_file_of, merged, renamed, without
from pytest_perfgate.store.run_folder import (
    RunFolder,
    WorkerFiles,
    load_report,
    read_report,
)

__all__ = [
    "BaselineStore",
    "RunFolder",
    "WorkerFiles",
    "benchmark_file_of",
    "decode_environment",
    "decode_measurement",
    "decode_plan",
    "encode_environment",
    "encode_measurement",
    "encode_plan",
    "environment_digest",
    "load_report",
    "merged",
    "read_baselines",
    "read_report",
    "renamed",
    "without",
    "write_atomically",
]
