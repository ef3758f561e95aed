import importlib.util
import json
import subprocess
import sys
import types

import pytest

from pytest_perfgate.errors import DeviceUnavailable, UsageError
from pytest_perfgate.measure import device as doors
from pytest_perfgate.measure import nvml
from pytest_perfgate.measure.device import open_device, resolve_device


@pytest.fixture
def machine(monkeypatch):
    """A machine with so many GPUs, whose torch says yes or no."""

    def make(gpus=1, torch_installed=True, answer=0):
        calls = []

        def run(command, **_):
            calls.append(command)
            if isinstance(answer, Exception):
                raise answer
            return types.SimpleNamespace(returncode=answer)

        monkeypatch.setattr(nvml, "device_names", lambda: ("NVIDIA H200",) * gpus)
        monkeypatch.setattr(
            importlib.util, "find_spec", lambda _: object() if torch_installed else None
        )
        monkeypatch.setattr(doors.subprocess, "run", run)
        return calls

    return make


@pytest.mark.parametrize("spec", ["gpu", "cuda:", "cuda:x", "", "cpu:0", "cuda:1,2"])
def test_unknown_specifications_are_refused(spec):
    with pytest.raises(UsageError, match=f"device '{spec}' is not known"):
        resolve_device(spec)


def test_the_cpu_needs_no_questions(machine):
    calls = machine(gpus=8)
    assert resolve_device("cpu") == "cpu"
    assert not calls


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ({"gpus": 0}, "the NVIDIA driver lists no GPU"),
        ({"torch_installed": False}, "torch is not installed"),
        ({"answer": 1}, "does not say yes"),
        ({"answer": subprocess.TimeoutExpired("python", 120)}, "does not say yes"),
    ],
)
def test_what_stands_between_us_and_cuda(machine, state, words):
    machine(**state)
    assert resolve_device("auto") == "cpu"
    with pytest.raises(DeviceUnavailable, match=words):
        resolve_device("cuda")


@pytest.mark.parametrize(
    ("spec", "name"), [("auto", "cuda:0"), ("cuda", "cuda:0"), ("cuda:1", "cuda:1")]
)
def test_cuda_where_everything_is_there(machine, spec, name):
    machine(gpus=2)
    assert resolve_device(spec) == name


def test_a_gpu_that_is_not_there(machine):
    machine(gpus=2)
    with pytest.raises(DeviceUnavailable, match="there are 2 GPUs, counted from 0"):
        resolve_device("cuda:2")


def test_torch_is_not_asked_where_the_driver_lists_nothing(machine):
    calls = machine(gpus=0)
    resolve_device("auto")
    assert not calls


def test_torch_that_already_works_is_believed(machine, monkeypatch):
    calls = machine(answer=1)
    cuda = types.SimpleNamespace(is_initialized=lambda: True)
    monkeypatch.setitem(sys.modules, "torch", types.SimpleNamespace(cuda=cuda))
    assert resolve_device("cuda") == "cuda:0"
    assert not calls


def test_opening_the_cpu():
    assert open_device("cpu", fake_script=None).name == "cpu"


def test_opening_decides_where_nothing_is_decided(machine):
    machine(gpus=0)
    assert open_device("auto", fake_script=None).name == "cpu"


def test_a_script_wins(tmp_path):
    script = tmp_path / "script.json"
    script.write_text(json.dumps({}))
    assert open_device("cuda:0", fake_script=script).fake
