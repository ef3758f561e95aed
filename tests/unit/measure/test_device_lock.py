"""One session at a time on a device: real locks, other processes, no waiting."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_perfgate.measure import device_lock
from pytest_perfgate.measure.device_lock import DeviceLock

HOLD = """
import os, sys
from pathlib import Path
from pytest_perfgate.measure.device_lock import DeviceLock
lock = DeviceLock(sys.argv[1], folder=Path(sys.argv[2]))
assert lock.acquire() is None
print(os.getpid(), flush=True)
sys.stdin.read()
lock.release()
"""
TRY = """
import sys
from pathlib import Path
from pytest_perfgate.measure.device_lock import DeviceLock
print(DeviceLock(sys.argv[1], folder=Path(sys.argv[2])).acquire(patience_s=0))
"""


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "locks"


@pytest.fixture
def environ():
    return {}


@pytest.fixture
def make_lock(folder, environ):
    made = []

    def make(device="GPU-1", **changes):
        lock = DeviceLock(device, **({"folder": folder, "environ": environ} | changes))
        made.append(lock)
        return lock

    yield make
    for lock in made:
        lock.release()


@pytest.fixture
def holder(folder):
    """Another process that holds the lock until its input ends."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, "GPU-1", folder],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline().strip() == str(process.pid)
    yield process
    process.communicate()


def test_a_free_lock_is_taken_and_says_whose_it_is(make_lock, environ, folder):
    lock = make_lock("GPU-1/a b")
    assert lock.acquire() is None
    assert lock.path.parent == folder
    assert lock.path.name == "GPU-1_a_b.lock"
    text = lock.path.read_text()
    assert text.startswith(f"process {os.getpid()} of ")
    assert " UTC: " in text
    assert environ == {"_PERFGATE_HELD": f"GPU-1_a_b={os.getpid()}"}
    lock.release()
    assert environ == {}
    assert lock.path.read_text() == ""
    lock.release()  # once is enough


def test_every_user_can_use_folder_and_file(make_lock, folder):
    before = os.umask(0o077)
    try:
        make_lock().acquire()
    finally:
        os.umask(before)
    assert folder.stat().st_mode & 0o7777 == 0o1777
    assert (folder / "GPU-1.lock").stat().st_mode & 0o777 == 0o666


def test_who_waits_is_told_by_whom_and_gives_up_in_time(make_lock, holder):
    said, slept = [], []
    found = make_lock().acquire(patience_s=2.5, say=said.append, sleep=slept.append)
    assert found.startswith(f"process {holder.pid} of ")
    assert slept == [1.0, 1.0, 0.5]
    (told,) = said
    assert told.startswith(
        f"waiting up to 2 s for the device, held by process {holder.pid}"
    )


def test_who_waits_gets_it_when_it_is_free(make_lock, holder):
    def sleep(_):
        holder.communicate()

    lock = make_lock()
    assert lock.acquire(sleep=sleep) is None
    assert lock.path.read_text().startswith(f"process {os.getpid()} ")


def test_a_killed_holder_holds_no_more(make_lock, holder):
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    assert make_lock().acquire(patience_s=0) is None


def test_ctrl_c_ends_the_waiting(make_lock, holder):
    def interrupt(_):
        raise KeyboardInterrupt

    lock = make_lock()
    with pytest.raises(KeyboardInterrupt):
        lock.acquire(sleep=interrupt)
    lock.release()
    assert lock.path.read_text().startswith(f"process {holder.pid} ")


def test_another_device_is_free(make_lock, holder):
    assert make_lock("GPU-2").acquire(patience_s=0) is None


def run_child(environ, folder):
    done = subprocess.run(
        [sys.executable, "-c", TRY, "GPU-1", folder],
        env={**os.environ, **environ},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def test_a_child_of_the_holder_is_let_through(make_lock, environ, folder):
    environ["_PERFGATE_HELD"] = "cpu=1"
    lock = make_lock()
    lock.acquire()
    assert environ["_PERFGATE_HELD"] == f"cpu=1 GPU-1={os.getpid()}"
    assert run_child(environ, folder) == "None"
    # anybody else is not, nor who inherited the word of another holder
    assert run_child({}, folder).startswith(f"process {os.getpid()} ")
    stale = {"_PERFGATE_HELD": "GPU-1=1"}
    assert run_child(stale, folder).startswith(f"process {os.getpid()} ")
    lock.release()
    assert environ["_PERFGATE_HELD"] == "cpu=1"


def test_a_holder_that_has_said_nothing_yet(make_lock, holder, folder):
    (folder / "GPU-1.lock").write_text("")
    assert make_lock().acquire(patience_s=0).startswith("another process")


def test_what_a_holder_says_stays_one_line(make_lock, holder, folder):
    (folder / "GPU-1.lock").write_text("process 1 of x\n\x1b[31m")
    assert make_lock().acquire(patience_s=0) == "process 1 of x??[31m"


def test_a_link_is_not_followed(make_lock, folder, tmp_path):
    folder.mkdir()
    victim = tmp_path / "precious"
    victim.write_text("kept")
    (folder / "GPU-1.lock").symlink_to(victim)
    with pytest.raises(OSError, match="symbolic"):
        make_lock().acquire()
    assert victim.read_text() == "kept"


def test_a_folder_that_is_none(make_lock, folder):
    folder.write_text("")
    with pytest.raises(NotADirectoryError, match="is no folder"):
        make_lock().acquire()


def test_two_that_come_at_once(make_lock, folder, monkeypatch):
    real = os.open

    def quicker(path, flags, *mode):
        if flags & os.O_CREAT:
            os.close(real(path, flags, *mode))
        return real(path, flags, *mode)

    monkeypatch.setattr(device_lock.os, "open", quicker)
    assert make_lock().acquire() is None


def test_the_folder_is_the_machine_s_unless_a_test_says_otherwise(make_lock):
    assert make_lock(folder=None).path == device_lock.FOLDER / "GPU-1.lock"
    named = {"_PERFGATE_LOCKS": "/elsewhere"}
    assert make_lock(folder=None, environ=named).path.parent == Path("/elsewhere")
    assert "_PERFGATE_LOCKS" in os.environ  # so that this suite locks nobody out


def test_a_user_without_a_name(monkeypatch):
    def unknown():
        raise KeyError

    monkeypatch.setattr(device_lock.getpass, "getuser", unknown)
    assert device_lock._user() == f"user {os.getuid()}"
