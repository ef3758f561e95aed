"""The script of the fake device: what is in it, and how it is read.

The script is JSON::

    {"key": "fake",
     "hardware": {"device": "fake"},
     "software": {},
     "salt": 0,
     "benchmarks": {
       "benches/bench_a.py::*": {"seconds": 0.001, "run_sd": 0.005,
                                 "iteration_sd": 0.01, "factor": 1.0,
                                 "runs": {"4": {"factor": 1.2,
                                                "disturbed": true,
                                                "disturbed_blocks": [0, 2],
                                                "steady": false,
                                                "gpu": {"throttled": 0.2}}},
                                 "gpu": {"sm_mhz": 1980},
                                 "factor_from": "mylib.core:SLOWNESS",
                                 "parts": {"first": 5.0},
                                 "device": 0.9, "peak_memory": 4096},
       "*": {"values": [0.001, 0.002]}}}

The first pattern (fnmatch, or the id itself) that fits a benchmark id governs
it; without one a piece of work takes a millisecond. Every key is optional.

`seconds`
    What one piece of work takes: a call, a round without stages, a stage, a
    chunk of a generation; a phase of a training step takes a fifth of it.
`run_sd`, `iteration_sd`
    Standard deviations of the log: between runs, and within one.
`factor`, `runs`
    Multiplies every duration; `runs` adds to it by the number of the run, and
    says whether that run is disturbed or never steady. `disturbed_blocks`
    counts every measured block from 0, those that are repeated, too.
`gpu`
    Without it nobody tells of a GPU's health. `sm_mhz`, `last_sm_mhz` (where it
    does not hold), `temperature_c`, `warmed_c`, `pcie_width`; `throttled` and `power_capped`, shares of the time;
    `foreign`, names of processes of others that come during the run; `lost` and
    `blind`, after so many readings; `xid`, the number of an error that the driver
    reports once. That of a run is laid over the benchmark's.
`machine`, beside `benchmarks`
    What the manager finds before the first run: `foreign` processes and `busy_s`
    until they are gone, `hot_s` until it has cooled, `throttled_s`, `full_s` until
    there is more than a GiB of memory, `lost`.
`factor_from`
    `module:attribute` of the code under test: a number that multiplies too, read
    anew for each measurement, so that two trees of one library take the times
    that stand in them.
`parts`
    The share of `seconds` that a part takes: `call`, `round`, `stage:NAME`,
    `phase:NAME`, `first` (chunk), `chunk`, and `loader`: a batch of a training
    step's loader, which without it takes next to nothing.
`values`
    Seconds of the pieces of work in turn, from the first measured one on, over
    and over, in place of `seconds` and the two deviations.
`device`
    The share of a call's time that the device is busy: gives `device_time`.
`period`
    The share of a call's time that it takes in a queue kept full: gives
    `device_period`.
`flush`
    The share of a call's time that it takes where the cache was flushed before it;
    a flush itself takes 50 µs. Without it there is no cache to flush.
`hidden`
    The same where the launches are hidden: with `hide_launch`. Without it no
    launch can be.
`enqueue`
    The share of a call's time after which the host has handed all work over.
`peak_memory`
    Bytes.

The n-th piece of work of a part takes the same time whenever benchmark id, run,
salt and script are the same: its randomness is a hash of these.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from fnmatch import fnmatchcase
from importlib import import_module
from pathlib import Path
from typing import Any

from pytest_perfgate.errors import UsageError
from pytest_perfgate.measure.fake_gpu import GpuScript, MachineScript

_PHASE_SHARE = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class RunScript:
    """What is peculiar to one run."""

    factor: float = 1.0
    disturbed: bool = False
    disturbed_blocks: tuple[int, ...] = ()
    steady: bool = True
    gpu: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchmarkScript:
    """The law of one benchmark's durations."""

    seconds: float = 0.001
    run_sd: float = 0.0
    iteration_sd: float = 0.0
    factor: float = 1.0
    runs: Mapping[str, RunScript] = field(default_factory=dict)
    factor_from: str = ""
    parts: Mapping[str, float] = field(default_factory=dict)
    values: tuple[float, ...] = ()
    device: float | None = None
    period: float | None = None
    hidden: float | None = None
    enqueue: float | None = None
    flush: float | None = None
    peak_memory: int | None = None
    gpu: Mapping[str, Any] = field(default_factory=dict)

    def share(self, part: str) -> float:
        usual = _PHASE_SHARE if part.startswith("phase:") else 1.0
        if part == "first":
            usual = self.parts.get("chunk", 1.0)
        if part == "loader":
            usual = 0.0
        return self.parts.get(part, usual)


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """A whole script, checked."""

    key: str = "fake"
    hardware: Mapping[str, Any] = field(default_factory=lambda: {"device": "fake"})
    software: Mapping[str, Any] = field(default_factory=dict)
    salt: int = 0
    benchmarks: Mapping[str, BenchmarkScript] = field(default_factory=dict)
    machine: MachineScript | None = None

    def governing(self, benchmark: str) -> BenchmarkScript:
        for pattern, script in self.benchmarks.items():
            if pattern == benchmark or fnmatchcase(benchmark, pattern):
                return script
        return BenchmarkScript()


def read_script(path: Path) -> Script:
    """Read and check a script.

    Raises
    ------
    UsageError
        It cannot be read, is not JSON, or has a key that means nothing.
    """
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"fake device script {path}: {error}") from error
    return parse_script(raw, where=str(path))


def parse_script(raw: Mapping[str, Any], *, where: str = "fake device") -> Script:
    """Make a script of parsed JSON; unknown keys are refused by name."""
    _check_keys(raw, Script, where=where)
    _check_mapping(raw.get("benchmarks", {}), where=f"{where}: benchmarks")
    laws = {
        pattern: _law(law, where=f"{where}: {pattern}")
        for pattern, law in raw.get("benchmarks", {}).items()
    }
    machine = raw.get("machine")
    if machine is not None:
        _check_keys(machine, MachineScript, where=f"{where}: machine")
        machine = MachineScript(**machine)
    return Script(**{**raw, "benchmarks": laws, "machine": machine})


def _law(raw: Mapping[str, Any], *, where: str) -> BenchmarkScript:
    _check_keys(raw, BenchmarkScript, where=where)
    _check_mapping(raw.get("runs", {}), where=f"{where}: runs")
    for run in raw.get("runs", {}).values():
        _check_keys(run, RunScript, where=where)
    for part in (raw, *raw.get("runs", {}).values()):
        _check_keys(part.get("gpu", {}), GpuScript, where=f"{where}: gpu")
    runs = {str(run): RunScript(**given) for run, given in raw.get("runs", {}).items()}
    return BenchmarkScript(
        **{**raw, "runs": runs, "values": tuple(raw.get("values", ()))}
    )


def number_at(place: str) -> float:
    """Return the number that stands at `module:attribute`; 1 where none is named."""
    if not place:
        return 1.0
    module, _, attribute = place.partition(":")
    try:
        return float(getattr(import_module(module), attribute))
    except (ImportError, AttributeError, TypeError, ValueError) as error:
        raise UsageError(f"fake device: factor_from={place!r}: {error}") from error


def _check_mapping(raw: object, *, where: str) -> None:
    if not isinstance(raw, Mapping):
        raise UsageError(f"{where}: {raw!r:.60} is not an object of keys and values")


def _check_keys(raw: Mapping[str, Any], kind: type, *, where: str) -> None:
    _check_mapping(raw, where=where)
    known = {entry.name for entry in fields(kind)}
    unknown = sorted(set(raw) - known)
    if unknown:
        raise UsageError(f"{where}: {unknown[0]!r} is none of {sorted(known)}")
