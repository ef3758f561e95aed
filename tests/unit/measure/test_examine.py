"""What an examination says of a machine, fact by fact."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_perfgate.measure import examine
from pytest_perfgate.measure.cgroup import Cgroup
from pytest_perfgate.measure.examine import (
    examine_cpu,
    examine_gpu,
    examine_gpu_at_work,
    examine_turns,
)
from pytest_perfgate.measure.health import DeviceReading, GpuProcess
from pytest_perfgate.measure.nvml import Gpu
from pytest_perfgate.measure.side_by_side import Turn

GPU = Gpu(name="NVIDIA Stub", uuid="GPU-0", memory_bytes=80 << 30)
EXAMINE = """
import dataclasses, json
from pytest_perfgate.measure.examine import examine_gpu
from pytest_perfgate.measure.nvml import driver_version, visible_gpus
from pytest_perfgate.measure.nvml_telemetry import manager_telemetry
gpu = visible_gpus()[0]
found = examine_gpu(gpu, manager_telemetry(gpu.uuid), driver=driver_version())
print(json.dumps([dataclasses.asdict(one) for one in found]))
"""


@pytest.fixture
def look(make_driver):
    """Examine the GPU of a made-up driver, through the real binding."""

    def ask(**says):
        done = subprocess.run(
            [sys.executable, "-c", EXAMINE],
            env=make_driver(**says),
            capture_output=True,
            text=True,
            check=True,
        )
        return {one["name"]: one for one in json.loads(done.stdout)}

    return ask


def test_a_gpu_that_is_well(look):
    found = look()
    assert {one["state"] for one in found.values()} == {"good"}
    assert {name: one["value"] for name, one in found.items()} == {
        "GPU": "NVIDIA Stub, 80 GiB, GPU-0",
        "driver": "580.65.06",
        "SM clock": "1980 of 1980 MHz",
        "memory clock": "2619 MHz",
        "throttling": "nothing holds the clocks down",
        "temperature": "45 °C, 40 °C below its limit",
        "power": "250 of 700 W",
        "other processes": "none",
        "persistence mode": "on",
        "ECC": "on",
    }


@pytest.mark.parametrize(
    ("says", "name", "state", "value"),
    [
        ({"reasons": 0x40}, "throttling", "unfit", "hardware thermal slowdown"),
        ({"reasons": 0x1008}, "throttling", "unfit", "hardware slowdown, 0x1000"),
        ({"reasons": 0x4}, "throttling", "warn", "software power cap"),
        ({"reasons": ""}, "throttling", "warn", "the driver does not tell"),
        ({"processes": "1"}, "other processes", "unfit", "process 1 ("),
        ({"busy": 30}, "other processes", "unfit", "the GPU is 30% busy"),
        ({"mig": 1, "slices": 1}, "MIG", "warn", "on"),
        ({"margin": 5}, "temperature", "unfit", "45 °C, 5 °C below its limit"),
        ({"persistence": 0}, "persistence mode", "warn", "off"),
        ({"ecc_errors": 3}, "memory errors", "warn", "3 uncorrected since"),
        ({"fail_after": 0, "fail_code": 15}, "GPU state", "unfit", "lost: GPU is lost"),
        ({"fail_after": 0}, "GPU state", "warn", "does not answer: Unknown Error"),
        ({"handle": 15}, "GPU state", "unfit", "lost: GPU is lost"),
    ],
)
def test_what_is_wrong_with_a_gpu(look, says, name, state, value):
    found = look(**says)[name]
    assert found["state"] == state
    assert value in found["value"]
    assert found["advice"]


class Telemetry:
    def __init__(self, **fields):
        self.reading = DeviceReading(time_s=0.0, **fields)

    def read(self, *, processes=False):
        return self.reading

    def is_ours(self, pid):
        return pid == 1


def test_a_driver_that_tells_nothing():
    gpu = Gpu(name="X", uuid="", memory_bytes=None)
    found = {one.name: one for one in examine_gpu(gpu, Telemetry(), driver=None)}
    assert found["GPU"].value == "X"
    assert found["driver"].value == "unknown"
    assert found["other processes"].value == "the driver does not tell"
    assert {"throttling", "other processes"} == {
        name for name, one in found.items() if one.state == "warn"
    }


def test_our_own_processes_are_none_of_others():
    ours = (GpuProcess(pid=1),)
    (found,) = [
        one
        for one in examine_gpu(GPU, Telemetry(processes=ours, ecc=False), driver="1")
        if one.name == "other processes"
    ]
    assert found.value == "none"


def test_a_gpu_at_work():
    def reading(time_s, **fields):
        return DeviceReading(time_s=time_s, **fields)

    assert examine_gpu_at_work(reading(0.0), reading(1.0)).state == "good"
    hot = examine_gpu_at_work(
        reading(0.0, throttled_s={"hw_thermal": 0.0}),
        reading(1.0, throttled_s={"hw_thermal": 0.5}),
    )
    assert hot.state == "unfit"
    assert "hardware thermal slowdown for 50.0%" in hot.value
    warmed = examine_gpu_at_work(
        reading(0.0, temperature_c=40.0), reading(1.0, temperature_c=60.0)
    )
    assert "warmed from 40 to 60" in warmed.value
    assert examine_gpu_at_work(reading(0.0), reading(1.0, blind="gone")).state == "warn"


@pytest.mark.parametrize(
    ("xids", "advice"),
    [
        ((79,), "have the GPU replaced"),
        ((31,), "a program on the GPU crashed"),
        ((31, 79), "have the GPU replaced"),
    ],
)
def test_a_gpu_with_an_error_at_work(xids, advice):
    before, after = DeviceReading(time_s=0.0), DeviceReading(time_s=1.0, xids=xids)
    found = examine_gpu_at_work(before, after)
    assert found.state == "unfit"
    assert found.value.startswith(f"sick: the driver reported XID {xids[0]} (")
    assert advice in found.advice


def test_a_gpu_lost_at_work():
    found = examine_gpu_at_work(
        DeviceReading(time_s=0.0), DeviceReading(time_s=1.0, lost="GPU is lost")
    )
    assert found.value == "sick: the driver lost the GPU (GPU is lost)"
    assert "nvidia-smi --gpu-reset" in found.advice


@pytest.mark.parametrize(
    ("xid", "advice"), [(79, "--gpu-reset"), (43, "a program on the GPU crashed")]
)
def test_an_error_that_is_reported_is_unfit(look, xid, advice):
    found = look(xid=xid)["GPU errors"]
    assert found["state"] == "unfit"
    assert found["value"].startswith(f"the driver reports XID {xid} (")
    assert advice in found["advice"]


def test_memory_that_fails_is_warned_of(look):
    found = look(rows=2)["memory rows"]
    assert found["state"] == "warn"
    assert found["value"] == "a row of its memory could not be replaced"


@pytest.fixture
def bare(monkeypatch):
    monkeypatch.setattr(examine, "cpu_model", lambda: "CPU X")
    monkeypatch.setattr(examine, "cpu_governor", lambda: None)
    monkeypatch.setattr(examine.os, "cpu_count", lambda: 4)
    return Cgroup(v2=(), cpu_v1=(), memory_v1=())


def test_a_quiet_processor(bare):
    found = list(examine_cpu(bare, load=0.5))
    assert [one.name for one in found] == ["CPU", "load"]
    assert found[1].value == "0.5 processes on 4 cores"
    assert {one.state for one in found} == {"good"}


def test_a_processor_that_is_shared(bare, monkeypatch, tmp_path):
    (tmp_path / "cpu.max").write_text("150000 100000\n")
    monkeypatch.setattr(examine, "cpu_governor", lambda: "powersave")
    group = Cgroup(v2=(tmp_path,), cpu_v1=(), memory_v1=())
    found = {one.name: one for one in examine_cpu(group, load=3.0)}
    assert found["CPU quota"].value == "1.5 cores"
    assert found["CPU governor"].value == "powersave"
    states = {name: str(one.state) for name, one in found.items()}
    assert states == {
        "CPU": "good",
        "load": "warn",
        "CPU quota": "warn",
        "CPU governor": "warn",
    }


def test_the_governor_that_is_wanted(bare, monkeypatch):
    monkeypatch.setattr(examine, "cpu_governor", lambda: "performance")
    *_, last = examine_cpu(bare)
    assert (last.name, last.state) == ("CPU governor", "good")


def turns(*disturbed, steal=0.0, throttled_s=0.0):
    return [
        Turn(median_s=1.0, disturbed=why, steal=steal, throttled_s=throttled_s)
        for why in disturbed
    ]


def test_turns_that_nobody_disturbed():
    (found,) = examine_turns(turns(None, None))
    assert (found.state, found.value) == ("good", "0 of 2 turns")


@pytest.mark.parametrize(("bad", "state"), [(3, "warn"), (4, "unfit")])
def test_turns_that_somebody_disturbed(bad, state):
    (found,) = examine_turns(turns(*["pushed"] * bad, *[None] * (10 - bad)))
    assert (found.state, found.value) == (state, f"{bad} of 10 turns: pushed")


def test_a_host_that_takes_and_a_quota_that_stops():
    found = examine_turns(turns(None, None, steal=0.05, throttled_s=0.1))
    told = {one.name: one.value for one in found}
    assert told["stolen CPU time"] == "5.0%"
    assert told["stopped by quota"] == "0.2 s"


def test_this_machine_itself():
    assert Path("/proc").exists() is False or list(examine_cpu())
