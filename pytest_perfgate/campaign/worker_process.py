"""Start, watch, time out and end one worker.

The end is learned from the process, never from a pipe: a child that a
benchmark leaves behind would keep a pipe open for ever.
"""

import contextlib
import os
import select
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pytest_perfgate.campaign.last_words import last_words
from pytest_perfgate.protocol import Record, RecordReader

STARTUP_S = 120.0
"""Grace for importing, collecting and ending, where no benchmark is open; more
where a benchmark may take more, for models are loaded in either place."""
_TICK_S = 0.25
_STACK_GRACE_S = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """How a worker is started."""

    command: tuple[str, ...]
    environment: Mapping[str, str]
    folder: Path
    """Working directory: the one the user started pytest in."""
    records: Path
    log: Path
    inherited: tuple[int, ...] = ()
    """Descriptors that it is born with: its end of the socket for turns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerEnd:
    """How a worker ended."""

    returncode: int
    finished: bool
    """It said so itself; exit code 0 alone proves nothing."""
    timed_out: bool
    out_of_time: bool
    """It was ended because the session's time was up."""
    open_item: str | None
    """The benchmark it was in when it ended."""
    tail: str
    """The last lines it printed, a stack among them after a crash or hang."""

    @property
    def how(self) -> str:
        """Say in words how it ended: `timed out`, `SIGSEGV`, `exit code 3`."""
        if self.timed_out:
            return "timed out"
        if self.returncode < 0:
            return signal_name(-self.returncode)
        return f"exit code {self.returncode}"


def signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


class WorkerProcess:
    """One worker while it lives."""

    def __init__(self, launch: Launch, *, timeouts: Mapping[str, float]) -> None:
        """Start it; whoever starts it must `end` it."""
        self._launch = launch
        self._timeouts = timeouts
        self._reader = RecordReader(launch.records)
        self._open: str | None = None
        self._spent_s = 0.0
        self._since: float | None = time.monotonic()
        self._finished = False
        self._timed_out = self._out_of_time = False
        with launch.log.open("wb") as log:
            self._process = subprocess.Popen(  # noqa: S603 (our own interpreter and the user's own arguments)
                launch.command,
                env=dict(launch.environment),
                cwd=launch.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                pass_fds=launch.inherited,
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    def ended(self) -> bool:
        return self._process.poll() is not None

    def wait(self, timeout_s: float) -> bool:
        """Return whether it has ended; sleep in the kernel until it does."""
        return _wait(self._process, timeout_s)

    # -- its time: what it spends waiting for its turn does not count

    def pause(self) -> None:
        self._spent_s = self._elapsed_s()
        self._since = None

    def resume(self) -> None:
        self._since = time.monotonic()

    def _elapsed_s(self) -> float:
        running = 0.0 if self._since is None else time.monotonic() - self._since
        return self._spent_s + running

    def _restart_clock(self) -> None:
        self._spent_s = 0.0
        self._since = None if self._since is None else time.monotonic()

    def take(self, on_record: Callable[[Record], None]) -> None:
        """Hand on the records that are there."""
        for record in self._reader.read():
            kind = record["kind"]
            if kind in {"open", "close"}:
                self._open = record["nodeid"] if kind == "open" else None
                self._restart_clock()
            self._finished = self._finished or kind == "finish"
            on_record(record)

    def must_stop(self, until: float | None) -> bool:
        """Whether its time is up, or the session's; then its stacks are asked for.

        Parameters
        ----------
        until : `time.monotonic()` at which the session's time is up, or None
        """
        self._out_of_time = until is not None and time.monotonic() > until
        self._timed_out = not self._out_of_time and self._overdue()
        if self._timed_out or self._out_of_time:
            self._dump_stacks()
            return True
        return False

    def end(self) -> None:
        """End it and whatever it left behind."""
        _end(self._process)

    def result(self, on_record: Callable[[Record], None]) -> WorkerEnd:
        """Say how it ended, after its last records."""
        self.take(on_record)
        return WorkerEnd(
            returncode=self._process.returncode,
            finished=self._finished,
            timed_out=self._timed_out,
            out_of_time=self._out_of_time,
            open_item=self._open,
            tail=last_words(self._launch.log),
        )

    def _overdue(self) -> bool:
        if self._open is None:
            allowed = max(STARTUP_S, *self._timeouts.values())
        else:
            allowed = self._timeouts[self._open]
        return self._elapsed_s() > allowed

    def _dump_stacks(self) -> None:
        """Ask for the stacks of every thread: pytest's faulthandler answers SIGABRT."""
        _signal(self._process.pid, signal.SIGABRT)
        _wait(self._process, _STACK_GRACE_S)


def run_worker(
    launch: Launch,
    *,
    timeouts: Mapping[str, float],
    on_record: Callable[[Record], None],
    until: float | None,
) -> WorkerEnd:
    """Run one worker to its end, handing on records as they come.

    Parameters
    ----------
    on_record : called for every record, in order
    until : `time.monotonic()` at which the session's time is up, or None
    """
    process = WorkerProcess(launch, timeouts=timeouts)
    try:
        while not process.wait(tick(until)):
            process.take(on_record)
            if process.must_stop(until):
                break
    finally:
        process.end()
    return process.result(on_record)


def tick(until: float | None) -> float:
    """Return how many seconds to wait before the next look."""
    if until is None:
        return _TICK_S
    return min(_TICK_S, max(0.0, until - time.monotonic()))


def _wait(process: "subprocess.Popen[bytes]", timeout_s: float) -> bool:
    """Return whether the process has ended; sleep in the kernel until it does."""
    if process.poll() is not None:
        return True
    if not hasattr(os, "pidfd_open"):
        return _wait_portably(process, timeout_s)
    descriptor = os.pidfd_open(process.pid)
    try:
        select.select([descriptor], [], [], timeout_s)
    finally:
        os.close(descriptor)
    return process.poll() is not None


def _wait_portably(process: "subprocess.Popen[bytes]", timeout_s: float) -> bool:
    try:
        process.wait(timeout_s)
    except subprocess.TimeoutExpired:
        return False
    return True


def _end(process: "subprocess.Popen[bytes]") -> None:
    """End the worker and whatever it left behind in its process group."""
    # nobody may be left; macOS says so with EPERM
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _signal(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def worker_command(
    arguments: Sequence[str], *, executable: str, as_module: bool, cache: Path | None
) -> tuple[str, ...]:
    """Build the command line of a worker.

    `python -m pytest` puts the working directory on `sys.path`, plain `pytest`
    does not: a worker imports what the user's own command would import. The
    user's cache is the manager's to write; `cache` is None where pytest has
    none (`-p no:cacheprovider`).
    """
    path = () if as_module else ("-P",)
    elsewhere = () if cache is None else ("-o", f"cache_dir={cache}")
    # behind the user's own options, the later of two values counts; behind a
    # bare `--` there are none
    end = arguments.index("--") if "--" in arguments else len(arguments)
    own = (*arguments[:end], *elsewhere, *arguments[end:])
    return (executable, *path, "-m", "pytest", *own)
