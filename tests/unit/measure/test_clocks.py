"""Locked clocks are given back, however the session ends."""

import os
import signal
import subprocess
import sys

import pytest

from pytest_perfgate.errors import UsageError
from pytest_perfgate.measure.clocks import ClockLock

SESSION = """
import sys, time
from pytest_perfgate.measure.clocks import ClockLock
lock = ClockLock("GPU-0")
lock.acquire()
print("measuring", lock._keeper.pid, flush=True)
sys.stdin.read()
lock.release()
"""
LOCKED = "lock 0 0xffffff01 0xffffff01\n"


@pytest.fixture
def driver(make_driver, monkeypatch, tmp_path):
    """Let child processes load such a driver; returns what it was told to change."""
    log = tmp_path / "driver.log"

    def load(**says):
        for name, value in make_driver(log=log, **says).items():
            monkeypatch.setenv(name, value)
        return log

    return load


def test_clocks_are_locked_and_given_back(driver):
    log = driver()
    lock = ClockLock("GPU-0")
    lock.acquire()
    assert log.read_text() == LOCKED
    lock.release()
    assert log.read_text() == LOCKED + "reset 0\n"
    lock.release()
    assert log.read_text() == LOCKED + "reset 0\n"


@pytest.mark.parametrize(
    ("says", "uuid", "why"),
    [
        ({"not_root": 1}, "GPU-0", "Insufficient Permissions"),
        ({}, "GPU-7", "Not Found"),
        ({"init": 999}, "GPU-0", "Unknown Error"),
    ],
)
def test_a_driver_that_refuses_is_told(driver, says, uuid, why):
    log = driver(**says)
    with pytest.raises(UsageError, match=why) as told:
        ClockLock(uuid).acquire()
    assert "as root" in str(told.value) or "takes root" in str(told.value)
    assert not log.exists()


def start():
    session = subprocess.Popen(
        [sys.executable, "-c", SESSION],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    said, pid = session.stdout.readline().split()
    assert said == "measuring"
    return session, int(pid)


def wait_for(pid):
    """Wait until a process that is no child of ours has ended."""
    descriptor = os.pidfd_open(pid)
    try:
        import select

        assert select.select([descriptor], [], [], 60)[0]
    finally:
        os.close(descriptor)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_session_that_is_killed_gives_them_back(driver, number):
    log = driver()
    session, keeper = start()
    os.killpg(session.pid, number)  # as Ctrl-C reaches the whole group
    session.wait()
    wait_for(keeper)
    assert log.read_text() == LOCKED + "reset 0\n"
    session.stdin.close()
    session.stdout.close()


def test_the_keeper_itself_gives_them_back_when_asked_to_end(driver):
    log = driver()
    session, keeper = start()
    os.kill(keeper, signal.SIGTERM)
    wait_for(keeper)
    assert log.read_text() == LOCKED + "reset 0\n"
    session.communicate()
