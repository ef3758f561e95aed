"""A session on a GPU: its lock, its readiness and its clocks, by a made-up driver."""

import json
import os
import subprocess
import sys

import pytest

HOLD = """
import json, os, sys, time
from pathlib import Path
from pytest_perfgate.campaign import machine
from pytest_perfgate.campaign.ledger import Ledger

slept = []
time.sleep = slept.append
ledger = Ledger([])
refused = []
ledger.refuse = lambda reason, evidence: refused.append([reason, *evidence])
log, said = Path(os.environ["STUB_LOG"]), []
with machine.held("cuda:0", ledger, say=said.append, lock_clocks=True) as fit:
    held = sorted(p.name for p in Path(os.environ["_PERFGATE_LOCKS"]).glob("GPU*"))
    during = log.read_text() if log.exists() else ""
print(json.dumps({
    "fit": fit, "refused": refused, "notes": list(ledger.notes), "said": said,
    "slept": sum(slept), "held": held, "during": during,
    "after": log.read_text() if log.exists() else "",
}))
"""
LOCK = "lock 1 0xffffff01 0xffffff01\n"


@pytest.fixture
def hold(make_driver, tmp_path):
    """Hold the second GPU of a machine, which is the first that CUDA shows."""

    def run(**says):
        environment = make_driver(log=tmp_path / "driver.log", count=2, **says)
        environment["CUDA_VISIBLE_DEVICES"] = "GPU-1"
        environment["_PERFGATE_LOCKS"] = str(tmp_path / "locks")
        done = subprocess.run(
            [sys.executable, "-c", HOLD],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run


def test_a_fit_gpu_is_held_with_its_clocks_locked(hold):
    found = hold(persistence=0)
    assert found["fit"]
    assert found["held"] == ["GPU-1.lock"]
    assert found["during"] == LOCK
    assert found["after"] == LOCK + "reset 1\n"
    assert found["refused"] == found["said"] == []
    (note,) = found["notes"]
    assert "persistence mode is off" in note


def test_a_gpu_that_others_use_is_waited_for_and_then_refused(hold):
    found = hold(processes=f"{os.getpid()},1")
    # the process that runs this test waits for the session: it is one of its own
    assert not found["fit"]
    assert found["slept"] == 60.0
    ((reason, told),) = found["refused"]
    assert reason == "busy"
    assert told.startswith("process 1 (")
    assert told.endswith(" computes on the GPU after 60 s")
    assert str(os.getpid()) not in told
    assert found["during"] == ""  # nothing was changed
    assert len(found["said"]) == 1


def test_a_lost_gpu_is_refused_at_once(hold):
    found = hold(fail_after=0, fail_code=15)
    assert found["refused"] == [
        ["device-lost", "the driver has lost the GPU (GPU is lost)"]
    ]
    assert found["slept"] == 0


def test_a_driver_that_does_not_answer_is_noted(hold):
    found = hold(fail_after=0)
    assert found["fit"]
    assert found["notes"] == ["nobody watches the GPU: Unknown Error"]
