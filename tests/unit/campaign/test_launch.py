"""From an order to a process with a place in the run folder."""

import sys
from pathlib import Path

import pytest

from pytest_perfgate.campaign import launch
from pytest_perfgate.campaign.doors import Order
from pytest_perfgate.campaign.launch import Invocation, WorkerLauncher, environment
from pytest_perfgate.campaign.worker_process import WorkerEnd
from pytest_perfgate.measured import Plan
from pytest_perfgate.protocol import TASK_VARIABLE, Task
from pytest_perfgate.store import RunFolder


def test_the_hash_seed_follows_the_run_unless_the_user_chose(tmp_path):
    def seed(own, seed):
        return environment(own, task=tmp_path, seed=seed)["PYTHONHASHSEED"]

    assert seed({}, 7) == "7"
    assert seed({}, 2**32 + 1) == "1"
    assert seed({"PYTHONHASHSEED": "random"}, 7) == "random"


def test_what_would_trace_a_worker_stays_behind(tmp_path):
    own = {"PATH": "/bin", "COV_CORE_SOURCE": "x", "COVERAGE_PROCESS_START": "y"}
    assert environment(own, task=tmp_path / "t", seed=0) == {
        "PATH": "/bin",
        "PYTHONHASHSEED": "0",
        TASK_VARIABLE: str(tmp_path / "t"),
    }
    ours = {**own, launch.ALLOW_TRACER: "1"}
    assert "COVERAGE_PROCESS_START" in environment(ours, task=tmp_path, seed=0)


class Processes:
    """Stands where processes are started, and remembers how."""

    def __init__(self):
        self.launches = []

    def __call__(self, launch, *, timeouts, on_record, until):
        del on_record
        self.launches.append(launch)
        self.timeouts, self.until = timeouts, until
        return WorkerEnd(
            returncode=0,
            finished=True,
            timed_out=False,
            out_of_time=False,
            open_item=None,
            tail="",
        )


@pytest.fixture
def processes(monkeypatch):
    found = Processes()
    monkeypatch.setattr(launch, "run_worker", found)
    return found


def order(run=1, **given):
    defaults = {
        "wanted": ("a.py::b", "a.py::a"),
        "seed": 5,
        "alone": False,
        "plans": {"a.py::a": Plan(iterations=9, warmup=2)},
        "iterations": {"a.py::b": 30},
    }
    return Order(run=run, **defaults | given)


@pytest.fixture
def launcher(tmp_path, processes):
    folder = RunFolder(tmp_path / "run")
    folder.prepare()
    invocation = Invocation(
        arguments=("--perfgate", "benches", "-k", "x"),
        start=tmp_path,
        device="cuda:1",
        cache=None,
        timeouts={"a.py::a": 3.0},
    )
    return WorkerLauncher(folder, invocation)


def start(launcher, *args, **kwargs):
    return launcher(order(*args, **kwargs), on_record=print, until=12.5)


def test_a_worker_finds_its_task(launcher, processes, tmp_path):
    assert start(launcher, alone=True).finished
    (made,) = processes.launches
    task = Task.read(Path(made.environment[TASK_VARIABLE]))
    assert (task.run, task.wanted) == (1, ("a.py::b", "a.py::a"))
    assert (task.device, task.alone) == ("cuda:1", True)
    assert task.plans == {"a.py::a": Plan(iterations=9, warmup=2)}
    assert task.iterations == {"a.py::b": 30}
    assert task.records == str(made.records)
    assert made.folder == tmp_path
    assert (processes.timeouts, processes.until) == ({"a.py::a": 3.0}, 12.5)


def test_every_worker_has_files_of_its_own(launcher, processes):
    for run in (1, 1, 2):
        start(launcher, run)
    names = [made.records.name for made in processes.launches]
    assert names == [
        "run-001.records.jsonl",
        "run-001-2.records.jsonl",
        "run-002.records.jsonl",
    ]
    assert len({made.log for made in processes.launches}) == 3


@pytest.mark.parametrize(
    ("program", "safe"),
    [("/venv/bin/pytest", True), ("/x/pytest/__main__.py", False)],
)
def test_workers_have_the_users_import_path(
    launcher, processes, monkeypatch, program, safe
):
    monkeypatch.setattr(sys, "argv", [program, "--perfgate"])
    start(launcher)
    (made,) = processes.launches
    assert made.command[0] == sys.executable
    assert ("-P" in made.command) is safe
    assert made.command[-4:] == ("--perfgate", "benches", "-k", "x")
