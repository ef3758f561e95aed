"""A worker of ours over the base tree: the candidate's benchmarks, the base's code."""

import json
import os
import sys

import pytest

from pytest_perfgate.campaign.base_tree import BaseRequest, open_base_tree
from pytest_perfgate.campaign.launch import environment
from pytest_perfgate.campaign.worker_process import (
    Launch,
    run_worker,
    worker_command,
)
from pytest_perfgate.protocol import Task

OLD = "def bench_old(perfgate):\n    perfgate(lambda: None)\n"
BENCH = """
import lib


def bench_kept(perfgate):
    assert perfgate(lib.work) == "base"


def bench_edited(perfgate):
    assert perfgate(lib.work) == "base"
"""
NEW = "from lib.new import work\n\n\ndef bench_new(perfgate):\n    perfgate(work)\n"


@pytest.fixture
def checkout(make_checkout):
    made = make_checkout()
    made.write(
        {
            "src/lib/__init__.py": "def work():\n    return 'base'\n",
            "pytest.ini": "[pytest]\npythonpath = src\nfilterwarnings = error\nperfgate_max_time = 0.01\n",
            "benches/bench_old.py": OLD,
            "setup.py": "",
            # settings that the candidate has done away with
            "benches/pytest.ini": "[pytest]\naddopts = --no-such-option\n",
        }
    ).commit()
    made.git("checkout", "-q", "-b", "topic")
    made.git("rm", "-q", "benches/bench_old.py", "benches/pytest.ini")
    made.write(
        {
            "src/lib/__init__.py": "def work():\n    return 'candidate'\n",
            "src/lib/new.py": "def work():\n    pass\n",
            "benches/bench_a.py": BENCH,
            "benches/bench_new.py": NEW,
        }
    ).commit()
    return made


def measure(checkout, tmp_path, wanted, arguments):
    """Run one worker over the base tree; returns its end and its records."""
    root = checkout.path
    files = tuple(sorted(root.glob("benches/*.py")))
    request = BaseRequest(
        ref="main",
        rootdir=root,
        start=root,
        inifile=root / "pytest.ini",
        files=files,
        arguments=arguments,
    )
    task = tmp_path / "task.json"
    Task(
        run=1,
        wanted=wanted,
        records=str(tmp_path / "records"),
        device="cpu",
        manager=os.getpid(),
    ).write(task)
    command = worker_command(
        ("--perfgate", *arguments),
        executable=sys.executable,
        as_module=False,
        cache=tmp_path / "cache",
    )
    found = []
    with open_base_tree(request, temporary=tmp_path) as tree:
        own = environment(os.environ, task=task, seed=1)
        launch = Launch(
            command=tree.command(command),
            environment=tree.environment(own),
            folder=tree.start,
            records=tmp_path / "records",
            log=tmp_path / "log",
        )
        end = run_worker(
            launch,
            timeouts=dict.fromkeys(wanted, 60),
            on_record=found.append,
            until=None,
        )
    return end, found


def test_a_worker_measures_the_base(checkout, tmp_path, monkeypatch):
    script = tmp_path / "fake-device.json"
    pace = {"seconds": 0.001, "run_sd": 0.002, "iteration_sd": 0.01}
    script.write_text(json.dumps({"benchmarks": {"*": pace}}))
    monkeypatch.setenv("_PERFGATE_FAKE", str(script))
    # as users have it: pytest finds this package by its entry point, and warns
    # of a plugin that was imported before it could be rewritten
    monkeypatch.delenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", raising=False)
    monkeypatch.setenv(
        "PYTEST_ADDOPTS", "-p no:benchmark -p no:xdist -p no:hypothesispytest"
    )
    names = (
        "bench_a.py::bench_kept",
        "bench_a.py::bench_edited",
        "bench_new.py::bench_new",
    )
    wanted = tuple(f"benches/{name}" for name in names)
    end, records = measure(
        checkout, tmp_path, wanted, (str(checkout.path / "benches"),)
    )
    assert end.finished, end.tail
    by_kind = {}
    for record in records:
        by_kind.setdefault(record["kind"], []).append(record)
    measured = [r["measurement"]["benchmark"] for r in by_kind["measured"]]
    assert measured == list(wanted[:2])
    assert all(r["report"]["outcome"] == "passed" for r in by_kind["report"])
    # a benchmark of what the base has not takes nothing from the others
    assert by_kind["collected"][0]["absent"] == [wanted[2]]
    (error,) = by_kind["collect-error"]
    assert "No module named 'lib.new'" in error["text"]
