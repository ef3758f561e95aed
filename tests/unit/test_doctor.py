"""`perfgate doctor`: what it prints, and the exit code that says the same."""

import json
import math
import subprocess
import sys

import pytest

from pytest_perfgate.cli import doctor, main
from pytest_perfgate.errors import DeviceUnavailable, MeasurementError
from pytest_perfgate.measure.device_lock import DeviceLock
from pytest_perfgate.measure.examine import Finding
from pytest_perfgate.measure.health import DeviceReading
from pytest_perfgate.measure.nvml import Gpu
from pytest_perfgate.measure.side_by_side import Pair, Turn


def make_pairs(*, between=0.0, within=0.0, disturbed=None):
    """Make pairs that differ from each other, and within each, by so much."""

    def turn(log):
        return Turn(
            median_s=math.exp(log), disturbed=disturbed, steal=0.0, throttled_s=0.0
        )

    return tuple(
        Pair(first=(turn(sign * between),), second=(turn(sign * (between + within)),))
        for sign in (1, -1, 1, -1, 1)
    )


@pytest.fixture
def machine(monkeypatch):
    """A machine without a GPU whose trial goes as said."""

    def make(pairs=None, *, gpus=(), error=None, reading=None):
        asked = []

        def measure(device, *, seconds):
            asked.append((device, seconds))
            if error:
                raise MeasurementError(error)
            return make_pairs() if pairs is None else pairs

        class Telemetry:
            def read(self, *, processes=False):
                return reading or DeviceReading(time_s=0.0, reasons=0, processes=())

            def is_ours(self, pid):
                return False

        calm = (Finding(name="CPU", value="one core"),)
        monkeypatch.setattr(doctor, "examine_cpu", lambda: calm)
        monkeypatch.setattr(doctor, "visible_gpus", lambda: gpus)
        monkeypatch.setattr(doctor, "driver_version", lambda: "580")
        monkeypatch.setattr(doctor, "packaging_hint", lambda: None)
        monkeypatch.setattr(doctor, "manager_telemetry", lambda uuid: Telemetry())
        monkeypatch.setattr(doctor, "measure_pairs", measure)
        return asked

    return make


GPU = Gpu(name="NVIDIA Stub", uuid="GPU-0", memory_bytes=None)


def test_a_quiet_machine_is_fit(machine, capsys):
    asked = machine()
    assert main(["doctor", "--device", "cpu"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["ok", "CPU", "one", "core"]
    assert "sees 5.2% and more at a budget of 5%" in lines[2]
    assert lines[-2:] == [
        "measured: 10 processes of identical code on cpu, in turns",
        "fit to judge",
    ]
    assert asked == [("cpu", 20.0)]


def test_a_machine_that_sees_only_in_pairs_is_fit_and_warned(machine, capsys):
    machine(make_pairs(between=0.2, within=0.0))
    assert main(["doctor", "--device=cpu"]) == 0
    out = capsys.readouterr().out
    assert "warn  against a stored baseline" in out
    assert "--perfgate-against sees more" in out


def test_a_machine_that_sees_nothing_is_unfit(machine, capsys):
    machine(make_pairs(between=0.2, within=0.2))
    assert main(["doctor", "--device=cpu"]) == 12
    out = capsys.readouterr().out.splitlines()
    assert out[-1] == (
        "unfit to judge: against a stored baseline, side by side in pairs"
    )


def test_json_and_nothing_else(machine, capsys, refused_by):
    machine(make_pairs(between=0.01, within=0.001, disturbed="pushed"))
    assert main(["doctor", "--device=cpu", "--json", "--seconds=3"]) == 12
    text = capsys.readouterr().out
    assert refused_by("doctor", text) == []
    told = json.loads(text)
    assert told["device"] == "cpu"
    assert told["fit"] is False
    assert told["why_unfit"] == ["disturbed: 10 of 10 turns: pushed"]
    assert [one["name"] for one in told["findings"]][:2] == ["CPU", "disturbed"]
    assert len(told["trial"]["medians_s"]) == 10
    assert told["trial"]["stored"]["spread"] > told["trial"]["paired"]["spread"]


def test_a_quick_look(machine):
    asked = machine()
    assert main(["doctor", "--device=cpu", "--quick"]) == 0
    assert asked == [("cpu", 8.0)]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--seconds=0"], "--seconds=0 is not a time"),
        (["--device=tpu"], "device 'tpu' is not known"),
        (["--device=cuda"], "--device=cuda: the NVIDIA driver lists 0 GPUs"),
        (["--device=cuda:x"], "--device=cuda:x"),
    ],
)
def test_wrong_use(machine, capsys, arguments, words):
    machine()
    assert main(["doctor", *arguments]) == 4
    assert words in capsys.readouterr().err


def test_a_gpu_and_its_trial(machine, monkeypatch, capsys):
    asked = machine(gpus=(GPU,))
    monkeypatch.setattr(doctor, "resolve_device", lambda spec: "cuda:0")
    assert main(["doctor"]) == 0
    out = capsys.readouterr().out
    assert asked == [("cuda:0", 20.0)]
    assert "NVIDIA Stub, GPU-0" in out
    assert "ok    GPU at work" in out


@pytest.mark.parametrize(("spec", "code"), [("auto", 0), ("cuda", 12)])
def test_a_gpu_that_torch_cannot_use(machine, monkeypatch, capsys, spec, code):
    def refuse(spec):
        raise DeviceUnavailable("torch is not installed; install it")

    asked = machine(gpus=(GPU,))
    monkeypatch.setattr(doctor, "resolve_device", refuse)
    assert main(["doctor", f"--device={spec}"]) == code
    assert asked == [("cpu", 20.0)]
    assert "torch is not installed" in capsys.readouterr().out


def test_without_a_gpu_auto_is_the_processor(machine):
    asked = machine()
    assert main(["doctor"]) == 0
    assert asked == [("cpu", 20.0)]


def test_a_hint_on_the_binding_is_shown(machine, monkeypatch, capsys):
    machine(gpus=(GPU,))
    monkeypatch.setattr(doctor, "resolve_device", lambda spec: "cuda:0")
    monkeypatch.setattr(doctor, "packaging_hint", lambda: "uninstall pynvml")
    assert main(["doctor"]) == 0
    assert "uninstall pynvml" in capsys.readouterr().out


def test_a_device_that_another_session_holds(machine, capsys):
    asked = machine()
    lock = DeviceLock("cpu", environ={"_PERFGATE_LOCKS": _folder()})
    assert lock.acquire(patience_s=0) is None
    try:
        assert main(["doctor", "--device=cpu"]) == 12
    finally:
        lock.release()
    assert asked == []
    assert "unfit the gate  measuring: process" in capsys.readouterr().out


def _folder():
    import os

    return os.environ["_PERFGATE_LOCKS"]


def test_the_lock_is_given_back(machine):
    machine()
    main(["doctor", "--device=cpu"])
    lock = DeviceLock("cpu")
    assert lock.acquire(patience_s=0) is None
    lock.release()


def test_a_device_that_cannot_be_locked_is_tried_all_the_same(
    machine, monkeypatch, tmp_path
):
    asked = machine()
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("_PERFGATE_LOCKS", str(tmp_path / "file"))
    assert main(["doctor", "--device=cpu"]) == 0
    assert asked == [("cpu", 20.0)]


def test_a_trial_that_fails_is_unfit(machine, capsys):
    machine(error="it ended with exit code 1")
    assert main(["doctor", "--device=cpu"]) == 12
    assert "it ended with exit code 1" in capsys.readouterr().out


def test_a_lost_gpu_is_not_measured_on(make_driver, refused_by):
    done = subprocess.run(
        [sys.executable, "-m", "pytest_perfgate", "doctor", "--json"],
        env=make_driver(handle=15),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 12, done.stderr
    assert refused_by("doctor", done.stdout) == []
    told = json.loads(done.stdout)
    assert told["why_unfit"] == ["GPU state: lost: GPU is lost"]
    assert told["trial"] == {}
