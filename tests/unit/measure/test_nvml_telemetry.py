"""Readings through the real binding, of a driver library that is made up."""

import json
import os
import subprocess
import sys
import types

import pytest

from pytest_perfgate.measure import nvml_telemetry
from pytest_perfgate.measure.nvml_telemetry import NvmlTelemetry, open_telemetry

READ = """
import dataclasses, json, sys
from pytest_perfgate.measure.nvml_telemetry import open_telemetry
telemetry = open_telemetry(sys.argv[1], family=())
readings = [telemetry.read(processes=True) for _ in range(int(sys.argv[2]))]
print(json.dumps([dataclasses.asdict(reading) for reading in readings]))
"""
LIST = """
import dataclasses, json
from pytest_perfgate.measure.nvml import visible_gpus
print(json.dumps([[gpu.name, gpu.uuid, gpu.memory_bytes >> 30] for gpu in visible_gpus()]))
"""


def python(environment, program, *arguments):
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program, *arguments],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture
def read(make_driver):
    """Read a GPU in a process that has loaded such a driver."""

    def ask(uuid="GPU-0", *, times=1, old=False, **says):
        readings = python(make_driver(old=old, **says), READ, uuid, str(times))
        return readings[0] if times == 1 else readings

    return ask


def test_everything_is_told(read):
    told = read(reasons=0x44, processes="1,2", thermal_ns=5000, free_mib=300)
    told.pop("time_s")
    names = [process.pop("name") for process in told["processes"]]
    assert len(names) == 2
    assert told == {
        "reasons": 0x44,
        "throttled_s": {
            "sw_power_cap": 2.0,
            "sync_boost": 0.0,
            "board_limit": 0.0,
            "reliability": 0.5,  # a double; 269 is not supported, and not zero
            "hw_thermal": 1.000005,
            "power_brake": 0.0,
        },
        "sm_mhz": 1980,
        "memory_mhz": 2619,
        "most_sm_mhz": 1980,
        "temperature_c": 45,
        "memory_temperature_c": 61.0,
        "margin_c": 40,
        "power_w": 250.5,
        "power_limit_w": 700.0,
        "busy_share": 0.0,
        "processes": [
            {"pid": 1, "memory_bytes": 2**30},
            {"pid": 2, "memory_bytes": None},
        ],
        "free_bytes": 300 << 20,
        "mig": False,
        "ecc": True,
        "memory_errors": 0,
        "remapping": "",
        "xids": [],
        "persistence": True,
        "pcie_generation": 5,
        "pcie_width": 16,
        "performance_state": 0,
        "lost": "",
        "blind": "",
    }


def test_a_gpu_is_found_by_its_uuid_and_never_by_its_place(read):
    assert read("GPU-2", count=3)["sm_mhz"] == 2180
    assert read("1", count=3)["sm_mhz"] == 2080  # as torch writes it


def test_what_is_not_supported_is_not_zero(read):
    names = ("busy", "ecc", "mig", "reasons", "temperature", "margin", "sm")
    told = read(**dict.fromkeys(names, ""), pcie_width="", thermal_ns="")
    for name in ("busy_share", "ecc", "mig", "reasons", "sm_mhz", "pcie_width"):
        assert told[name] is None, name
    assert told["temperature_c"] is told["margin_c"] is told["power_w"] is None
    assert told["throttled_s"] == {}
    assert told["memory_mhz"] is None
    assert told["persistence"] is True
    assert not told["blind"]


def test_an_older_driver_is_asked_the_older_calls(read):
    told = read(old=True, reasons=0x8, temperature=60, processes="7")
    assert told["reasons"] == 0x8
    assert told["temperature_c"] == 60
    assert told["margin_c"] == 30
    assert [process["pid"] for process in told["processes"]] == [7]


def test_a_list_of_processes_that_is_refused_is_none(read):
    assert read(processes="")["processes"] == []


def test_a_driver_that_dies_on_the_way_makes_blind(read):
    # the loss of a container's devices; fourteen calls are one whole reading
    first, second = read(times=2, fail_after=14 + 3, fail_code=999)
    assert not first["blind"]
    assert second["blind"] == "Unknown Error"
    assert second["throttled_s"]  # what was told before stays
    assert second["persistence"] is None


def test_a_gpu_that_is_lost(read):
    told = read(fail_after=3, fail_code=15)
    assert (told["lost"], told["blind"]) == ("GPU is lost", "")


@pytest.mark.parametrize(
    ("says", "field", "words"),
    [
        ({"init": 999}, "blind", "Unknown Error"),
        (
            {"init": 18},
            "blind",
            "RM has detected an NVML/RM version mismatch.",
        ),  # a driver upgraded under our feet
        ({"handle": 15}, "lost", "GPU is lost"),
        ({"count": 0}, "blind", "Not Found"),
    ],
)
def test_what_cannot_even_be_opened_says_why(read, says, field, words):
    assert read(**says)[field] == words


def test_without_a_library_nobody_tells(tmp_path):
    environment = {**os.environ, "LD_LIBRARY_PATH": str(tmp_path)}
    (told,) = python(environment, READ, "GPU-0", "1")
    assert "NVML Shared Library Not Found" in told["blind"]


def test_a_slice_is_read_from_its_whole_gpu(read):
    told = read("MIG-1", slices=2, mig=1, busy="")
    assert told["mig"] is True
    assert told["sm_mhz"] == 1980
    assert told["busy_share"] is None


def test_an_error_that_the_driver_reports_is_told_once(read, tmp_path):
    freed = tmp_path / "freed"
    told = read(times=3, xid="79,63", xid_at=2, freed=freed)
    assert [reading["xids"] for reading in told] == [[], [79, 63], []]
    assert freed.exists()  # at the process's end


def test_errors_of_a_slice_are_those_of_its_whole_gpu(read):
    assert read("MIG-0", slices=1, mig=1, xid=94)["xids"] == [94]


def test_a_gpu_that_reports_without_end_ends_no_reading(read):
    assert len(read(xid=",".join(["79"] * 50))["xids"]) == 32


@pytest.mark.parametrize(
    "says",
    [
        {"events": ""},  # a virtual GPU
        {"events": 0x7},  # no such kind
        {"no_events": 1},
        {"event_fail": 999},
        {"old": True},  # the library lacks what the binding asks for
    ],
)
def test_where_errors_are_not_reported_nothing_is_told(read, says):
    for told in read(times=2, xid=79, **says):
        assert told["xids"] is None
        assert not told["blind"]
        assert told["sm_mhz"] == 1980


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (0, ""),
        (1, "a row of its memory is to be replaced at the next reset"),
        (2, "a row of its memory could not be replaced"),
        ("", None),
    ],
)
def test_rows_of_memory_that_fail(read, rows, said):
    assert read(rows=rows)["remapping"] == said


@pytest.mark.parametrize(
    ("visible", "listed"),
    [
        (
            None,
            [["NVIDIA Stub MIG 1g.10gb", "MIG-0", 10], ["NVIDIA Stub", "GPU-1", 80]],
        ),
        ("MIG-1", [["NVIDIA Stub MIG 1g.10gb", "MIG-1", 10]]),
        (
            "GPU-1,GPU-0",
            [["NVIDIA Stub", "GPU-1", 80], ["NVIDIA Stub MIG 1g.10gb", "MIG-0", 10]],
        ),
        ("MIG-7", []),
    ],
)
def test_slices_are_devices_of_their_own(make_driver, visible, listed):
    environment = make_driver(count=2, mig=1, slices=2)
    if visible is not None:
        environment["CUDA_VISIBLE_DEVICES"] = visible
    assert python(environment, LIST) == listed


# -- without a library: the binding as an object


class NVMLError(Exception):
    value = 3


def make_telemetry(tmp_path, *, family=(), **calls):
    nvml = types.SimpleNamespace(
        NVMLError=NVMLError, NVMLLibraryMismatchError=KeyError, **calls
    )
    return NvmlTelemetry(
        nvml, "handle", family=family, clock=lambda: 1.5, proc=tmp_path
    )


def test_a_binding_that_knows_no_call_at_all(tmp_path):
    told = make_telemetry(tmp_path).read(processes=True)
    assert told.time_s == 1.5
    assert (told.reasons, told.sm_mhz, told.mig, told.processes) == (None,) * 4
    assert not told.blind


def test_bindings_that_refuse_the_version_of_a_call(tmp_path):
    def mismatched(handle):
        raise KeyError(handle)

    info = types.SimpleNamespace(pid=9, usedGpuMemory=None)
    told = make_telemetry(
        tmp_path,
        nvmlDeviceGetComputeRunningProcesses=mismatched,
        nvmlDeviceGetComputeRunningProcesses_v2=lambda _: [info],
        nvmlSystemGetProcessName=lambda _: b"train",
    ).read(processes=True)
    assert [(p.pid, p.name) for p in told.processes] == [(9, "train")]


def write_stat(tmp_path, pid, parent, name="python (x) y"):
    folder = tmp_path / str(pid)
    folder.mkdir()
    (folder / "stat").write_text(f"{pid} ({name}) S {parent} 1 1\n")


@pytest.fixture
def processes(tmp_path, monkeypatch):
    """This is 30; 31 is its brother, 32 a nephew, and 10 the shell of them all."""
    monkeypatch.setattr(os, "getpid", lambda: 30)
    parents = {10: 1, 20: 10, 30: 20, 31: 20, 32: 31, 33: 30, 40: 10, 41: 40}
    for pid, parent in parents.items():
        write_stat(tmp_path, pid, parent)
    return [1, *parents, 99]


def test_the_family_of_a_worker(tmp_path, processes):
    telemetry = make_telemetry(tmp_path, family=(30, 20))
    ours = [pid for pid in processes if telemetry.is_ours(pid)]
    assert ours == [10, 20, 30, 31, 32, 33]
    assert telemetry.sees_itself == 30


def test_the_family_of_a_manager(tmp_path, processes):
    telemetry = make_telemetry(tmp_path, family=(30,))
    assert [pid for pid in processes if telemetry.is_ours(pid)] == [10, 20, 30, 33]


def test_an_orphan_is_not_everybody_s_brother(tmp_path, processes):
    telemetry = make_telemetry(tmp_path, family=(30, 1))
    assert not any(telemetry.is_ours(pid) for pid in (1, 40, 41))


def test_a_torn_stat_ends_the_search(tmp_path):
    (tmp_path / "50").mkdir()
    (tmp_path / "50" / "stat").write_text("50 (x")
    assert not make_telemetry(tmp_path).is_ours(50)


def test_who_is_silent_knows_itself_at_least():
    silent = nvml_telemetry.SilentTelemetry("gone")
    assert silent.read(processes=True).blind == "gone"
    assert silent.is_ours(os.getpid())
    assert not silent.is_ours(os.getppid())
    assert silent.sees_itself == os.getpid()


def test_a_gpu_lost_while_it_is_opened(monkeypatch):
    class Lost(NVMLError):
        value = 15

    def fail(_):
        raise Lost("GPU is lost")

    nvml = types.SimpleNamespace(
        NVMLError=NVMLError,
        NVMLLibraryMismatchError=KeyError,
        nvmlInit=lambda: None,
        nvmlDeviceGetHandleByUUID=lambda name: name,
        nvmlDeviceIsMigDeviceHandle=fail,
    )
    monkeypatch.setattr(nvml_telemetry, "import_binding", lambda: nvml)
    assert open_telemetry("GPU-0", family=()).read().lost == "GPU is lost"
