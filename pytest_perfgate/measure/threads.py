"""Notices that other threads worked during a call: counters see the caller's alone."""

import contextlib
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

BUSY_SHARE = 0.25
"""Of the CPU time of caller and thread: from here on one that was there before works
for the call. Wall time would say nothing of it on a machine that is busy."""
_TASKS = Path("/proc/self/task")


@dataclass(slots=True, kw_only=True)
class Others:
    """What other threads of Python did meanwhile."""

    started: int = 0
    busy: bool = False
    """One that was there before has computed a good part of it."""


@contextlib.contextmanager
def watching_threads(
    *, clock_ns: Callable[[], int] = time.thread_time_ns, tasks: Path = _TASKS
) -> Iterator[Others]:
    """Watch which threads begin from here on, and which others compute.

    Parameters
    ----------
    clock_ns : CPU time of the thread that calls

    Notes
    -----
    A thread that begins calls the profile function set beforehand, once: it then
    puts back what there was. Threads of torch itself are none of Python's.
    """
    others = Others()
    before = threading.getprofile()

    def begun(frame: FrameType, event: Any, arg: object) -> None:  # noqa: ANN401 (a closed set of words)
        others.started += 1
        sys.setprofile(before)
        if before is not None:
            before(frame, event, arg)

    used, since = _computed_ns(tasks), clock_ns()
    threading.setprofile(begun)
    try:
        yield others
    finally:
        threading.setprofile(before)
        own_ns = clock_ns() - since
        now = _computed_ns(tasks)
        most = max((now.get(one, 0) - used[one] for one in used), default=0)
        others.busy = most > BUSY_SHARE * (most + own_ns)


def _computed_ns(tasks: Path) -> Mapping[int, int]:
    """CPU time of each other thread of Python's, where the kernel tells."""
    found = {}
    for thread in threading.enumerate():
        number = thread.native_id
        # those that others have made, such as torch's, are stand-ins here
        foreign = isinstance(thread, threading._DummyThread)  # noqa: SLF001 (nothing else tells)
        if foreign or number is None or thread is threading.current_thread():
            continue
        with contextlib.suppress(OSError, ValueError, IndexError):
            text = (tasks / str(number) / "schedstat").read_text()
            found[number] = int(text.split()[0])
    return found
