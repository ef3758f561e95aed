"""Which threads worked during a call."""

import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from pytest_perfgate.measure.threads import watching_threads


@pytest.fixture
def pool():
    with ThreadPoolExecutor(1) as made:
        made.submit(int).result()  # its thread is there
        yield made


def test_nobody_else():
    with watching_threads() as others:
        sum(range(9))
    assert not others.started
    assert not others.busy


def test_a_thread_that_begins():
    with watching_threads() as others:
        thread = threading.Thread(target=sum, args=[range(9)])
        thread.start()
        thread.join()
    assert others.started == 1


def test_what_watched_threads_before_is_told_and_put_back():
    seen = []

    def before(frame, event, arg):
        del frame, arg
        seen.append(event)

    threading.setprofile(before)
    try:
        with watching_threads():
            thread = threading.Thread(target=sum, args=[range(9)])
            thread.start()
            thread.join()
        assert threading.getprofile() is before
    finally:
        threading.setprofile(None)
    assert seen[0] == "call"
    assert len(seen) > 1
    assert sys.getprofile() is None


@pytest.mark.parametrize(("computed", "busy"), [(330, False), (340, True)])
def test_a_thread_that_was_there_is_known_by_its_time(pool, tmp_path, computed, busy):
    (number,) = [t.native_id for t in threading.enumerate() if t in pool._threads]
    file = tmp_path / str(number) / "schedstat"
    file.parent.mkdir()
    file.write_text("1000 0 1\n")
    times = iter([0, 1000])
    with watching_threads(clock_ns=lambda: next(times), tasks=tmp_path) as others:
        file.write_text(f"{1000 + computed} 0 2\n")
    assert not others.started
    assert others.busy is busy


def test_time_that_the_caller_waits_is_not_held_against_it(pool, tmp_path):
    """On a busy machine a call takes many times what is computed for it."""
    (number,) = [t.native_id for t in threading.enumerate() if t in pool._threads]
    file = tmp_path / str(number) / "schedstat"
    file.parent.mkdir()
    file.write_text("0 0 1\n")
    with watching_threads(tasks=tmp_path) as others:
        threading.Event().wait(0.02)
        file.write_text("5000000 0 2\n")
    assert others.busy


@pytest.mark.usefixtures("pool")
def test_a_kernel_that_does_not_tell(tmp_path):
    with watching_threads(tasks=tmp_path / "none") as others:
        pass
    assert not others.started
    assert not others.busy


def test_threads_that_are_not_python_s_are_none_of_its(tmp_path):
    stand_in = threading._DummyThread()
    file = tmp_path / str(stand_in.native_id) / "schedstat"
    file.parent.mkdir()
    file.write_text("0 0 1\n")
    try:
        times = iter([0, 10])
        with watching_threads(clock_ns=lambda: next(times), tasks=tmp_path) as others:
            file.write_text("1000 0 2\n")
    finally:
        stand_in._delete()
    assert not others.started
    assert not others.busy
