"""SIGTERM is an interruption once, and only where nobody else handles it."""

import os
import signal
import threading

import pytest

from pytest_perfgate.campaign.termination import Termination


@pytest.fixture(autouse=True)
def restored():
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


def terminate():
    os.kill(os.getpid(), signal.SIGTERM)


def test_it_interrupts_once_and_then_gives_the_signal_back():
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    termination = Termination()
    termination.begin()
    with pytest.raises(KeyboardInterrupt):
        terminate()
    assert termination.received
    terminate()  # what was measured is being written
    termination.end()
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    termination.end()


def test_the_handler_of_somebody_else_stands():
    heard = []
    signal.signal(signal.SIGTERM, lambda *_: heard.append(1))
    termination = Termination()
    termination.begin()
    terminate()
    termination.end()
    terminate()
    assert (heard, termination.received) == ([1, 1], False)


def test_a_thread_cannot_and_does_not_try():
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    thread = threading.Thread(target=Termination().begin)
    thread.start()
    thread.join()
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
