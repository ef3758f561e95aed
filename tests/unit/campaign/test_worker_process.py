"""One child process: started, watched, timed out, ended with its group."""

import os
import signal
import sys
import textwrap
import time
from pathlib import Path

import pytest

from pytest_perfgate.campaign import worker_process
from pytest_perfgate.campaign.worker_process import (
    Launch,
    WorkerEnd,
    run_worker,
    worker_command,
)

PROLOGUE = """
import faulthandler, os, signal, subprocess, sys, time
from pathlib import Path
faulthandler.enable()
sys.path[:0] = {path!r}
from pytest_perfgate.protocol import RecordWriter
writer = RecordWriter(Path("records"))
say = writer.write
"""


@pytest.fixture
def child(tmp_path):
    """Run a small program as a worker, to its end."""

    def run(program, *, timeouts=None, until=None, on_record=None):
        source = PROLOGUE.format(path=sys.path) + textwrap.dedent(program)
        launch = Launch(
            command=(sys.executable, "-c", source),
            environment=dict(os.environ),
            folder=tmp_path,
            records=tmp_path / "records",
            log=tmp_path / "log",
        )
        seen = []
        end = run_worker(
            launch,
            timeouts=timeouts or {"a": 60.0},
            on_record=on_record or seen.append,
            until=until,
        )
        return end, seen

    return run


def gone(pid):
    """Whether a process is no more, or waits to be reaped by somebody else."""
    try:
        return (
            Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
        )
    except (FileNotFoundError, ProcessLookupError):
        return True


def soon(condition):
    end = time.monotonic() + 30
    while not condition() and time.monotonic() < end:
        time.sleep(0.005)
    return condition()


def test_a_worker_that_finishes(child):
    end, seen = child(
        """
        say("open", nodeid="a")
        say("close", nodeid="a")
        say("finish", status=0)
        print("the end")
        """
    )
    assert [record["kind"] for record in seen] == ["open", "close", "finish"]
    assert end == WorkerEnd(
        returncode=0,
        finished=True,
        timed_out=False,
        out_of_time=False,
        open_item=None,
        tail="the end",
    )


@pytest.mark.parametrize(
    ("deed", "how"),
    [
        ("os._exit(0)", "exit code 0"),
        ("os._exit(7)", "exit code 7"),
        ("os.kill(os.getpid(), signal.SIGKILL)", "SIGKILL"),
        ("os.kill(os.getpid(), signal.SIGSEGV)", "SIGSEGV"),
        ("os.kill(os.getpid(), signal.SIGRTMIN + 3)", f"signal {signal.SIGRTMIN + 3}"),
    ],
)
def test_a_worker_that_does_not_finish_names_where_it_was(child, deed, how):
    end, _ = child(
        f"""
        say("open", nodeid="b")
        say("close", nodeid="b")
        say("open", nodeid="a")
        {deed}
        """
    )
    assert (end.finished, end.open_item, end.how) == (False, "a", how)
    assert not end.timed_out


def test_a_crash_leaves_its_stack(child):
    end, _ = child("import ctypes\ndef body():\n    ctypes.string_at(0)\nbody()\n")
    assert end.how == "SIGSEGV"
    assert "in body" in end.tail


def test_a_hang_is_ended_and_shows_where(child):
    end, _ = child(
        """
        def hanging():
            time.sleep(60)
        say("open", nodeid="a")
        hanging()
        """,
        timeouts={"a": 0.2},
    )
    assert (end.timed_out, end.how, end.open_item) == (True, "timed out", "a")
    assert "in hanging" in end.tail


def test_a_hang_that_ignores_the_question_is_ended_all_the_same(child, monkeypatch):
    monkeypatch.setattr(worker_process, "_STACK_GRACE_S", 0.1)
    end, _ = child(
        """
        faulthandler.disable()
        signal.signal(signal.SIGABRT, signal.SIG_IGN)
        say("open", nodeid="a")
        time.sleep(60)
        """,
        timeouts={"a": 0.1},
    )
    assert (end.timed_out, end.returncode) == (True, -signal.SIGKILL)


def test_each_benchmark_has_its_own_time(child):
    end, _ = child(
        """
        for nodeid in "aba":
            say("open", nodeid=nodeid)
            say("close", nodeid=nodeid)
        say("open", nodeid="b")
        time.sleep(60)
        """,
        timeouts={"a": 60.0, "b": 0.1},
    )
    assert (end.timed_out, end.open_item) == (True, "b")


def test_a_start_that_hangs_is_ended_too(child, monkeypatch):
    monkeypatch.setattr(worker_process, "STARTUP_S", 0.1)
    end, _ = child("time.sleep(60)", timeouts={"a": 0.1, "b": 0.2})
    assert (end.timed_out, end.open_item) == (True, None)


def test_when_the_sessions_time_is_up(child):
    end, _ = child(
        "say('open', nodeid='a')\ntime.sleep(60)", until=time.monotonic() + 0.1
    )
    assert (end.out_of_time, end.timed_out, end.finished) == (True, False, False)


def test_what_it_leaves_behind_ends_with_it(child, tmp_path):
    end, _ = child(
        """
        stray = subprocess.Popen(["sleep", "60"])
        Path("stray").write_text(str(stray.pid))
        say("finish", status=0)
        os._exit(0)
        """
    )
    assert end.finished
    assert soon(lambda: gone(int((tmp_path / "stray").read_text())))


def test_an_interruption_ends_it(child):
    pids = []

    def interrupt(record):
        pids.append(record["pid"])
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        child("say('hello', pid=os.getpid())\ntime.sleep(60)", on_record=interrupt)
    assert soon(lambda: gone(pids[0]))


def test_systems_without_process_descriptors_wait_as_well(child, monkeypatch):
    monkeypatch.delattr(os, "pidfd_open", raising=False)
    end, seen = child("say('open', nodeid='a')\ntime.sleep(0.3)\nsay('finish')")
    assert end.finished
    assert len(seen) == 2


def test_it_reads_nothing_from_the_terminal(child):
    end, _ = child("print(repr(sys.stdin.read()))")
    assert end.tail == "''"


# -- its command line


def command(*arguments, **given):
    defaults = {"executable": "python", "as_module": False, "cache": Path("c")}
    return worker_command(arguments, **defaults | given)


def test_a_worker_imports_what_the_users_own_command_would():
    plain = command("--perfgate", "a.py")
    assert plain == (
        *("python", "-P", "-m", "pytest"),
        *("--perfgate", "a.py", "-o", "cache_dir=c"),
    )
    assert command(as_module=True)[:3] == ("python", "-m", "pytest")


def test_where_pytest_has_no_cache_none_is_moved():
    assert "-o" not in command("-p", "no:cacheprovider", cache=None)


def test_arguments_after_a_bare_dash_stay_the_last():
    assert command("-v", "--", "a.py")[4:] == ("-v", "-o", "cache_dir=c", "--", "a.py")
