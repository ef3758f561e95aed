"""The device a benchmark runs on, as the rest of the package sees it."""

import importlib.util
import re
import subprocess
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from pytest_perfgate.errors import DeviceUnavailable, UsageError
from pytest_perfgate.measure.cpu_guard import Reading
from pytest_perfgate.measure.flushing import Flush
from pytest_perfgate.measure.health import Telemetry
from pytest_perfgate.measure.memory import MemoryUse

_SPEC = re.compile(r"auto|cpu|cuda(:\d+)?")
_PROBE = "import sys, torch; sys.exit(0 if torch.cuda.is_available() else 1)"
_PROBE_LIMIT_S = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class Timed:
    """What a timed loop over a callable brought."""

    host_ns: list[int]
    """One value an iteration, of the whole inner loop."""
    device_ns: list[float] | None
    """The span between events, where the device has them."""
    result: object
    """What the last call returned."""
    enqueue_ns: list[int] | None = None
    """Until the host had handed all work over, where it then has to wait for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pipelined:
    """What a queue of calls that is kept full brought."""

    period_ns: list[float]
    """From the end of one call's work to the end of the next one's."""
    wall_ns: int
    """Of all calls, until the last work is done."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hidden:
    """What a queue of calls brought that the device was kept from beginning with."""

    period_ns: list[float]
    """From the end of one call's work to the end of the next one's."""
    handed_ns: int
    """Until the host had handed all calls over."""
    held_ns: float
    """Until the device could begin."""


class Device(Protocol):
    """One clock, one way to wait for work, one account of the processor."""

    @property
    def name(self) -> str: ...
    @property
    def fake(self) -> bool: ...
    @property
    def tick_s(self) -> float: ...
    @property
    def stretches(self) -> bool:
        """Whether `stretch` does anything; if not, it need not be called."""
        ...

    @property
    def telemetry(self) -> Telemetry | None:
        """Who tells of the device's health; None where nobody does."""
        ...

    def begin(self, benchmark: str, *, run: int, slowdown: float) -> None:
        """Start a measurement; `slowdown` is added to every piece of work."""

    def measuring(self) -> None:
        """Warm-up is over."""

    def now_ns(self) -> int: ...
    def synchronize(self) -> None: ...
    def flushing(self) -> AbstractContextManager[Flush | None]:
        """Hold what it takes to flush the cache; None where that means nothing.

        Raises
        ------
        MeasurementError
            It would mean something, and cannot be done.
        """
        ...

    def time_calls(
        self,
        call: Callable[[], object],
        *,
        count: int,
        inner: int,
        flush: Flush | None = None,
    ) -> Timed:
        """Time calls, and flush before each sample where there is one to flush with."""
        ...

    def stretch(self, own_ns: int, part: str) -> None:
        """Add the slowdown to a piece of work that took `own_ns`.

        A fake device adds the scripted duration of `part` instead.
        """

    def mark(self) -> object:
        """Put a mark between two pieces of work, without waiting for either."""

    def span_s(self, first: object, second: object) -> float:
        """Seconds between two marks, after `synchronize`."""

    def reading(self, *, closing: bool) -> Reading: ...
    def settled(self) -> bool:
        """Say no where the device itself knows that it is not steady."""
        ...

    def allocator_state(self) -> object:
        """Differ from before if memory was taken from the driver meanwhile."""
        ...

    def pipelined(
        self, call: Callable[[], object], *, count: int, own_ns: int
    ) -> Pipelined | None:
        """Make calls without waiting between them; None where there is no queue.

        Parameters
        ----------
        own_ns : what a call takes, for the slowdown to be a share of
        """
        ...

    @property
    def queues(self) -> bool:
        """Whether work is handed over to a queue, so that a host can be ahead."""
        ...

    def hidden(
        self, call: Callable[[], object], *, count: int, own_ns: int, hold_ns: float
    ) -> Hidden | None:
        """Make calls while the device is kept busy; None where it cannot be.

        Parameters
        ----------
        hold_ns : how long it is to be busy before the first call's work; never
            asked for before calls have been made without
        """
        ...

    def peak_memory(self, call: Callable[[], object]) -> MemoryUse:
        """Peaks, and what else is known of memory, while `call` runs; untimed."""
        ...


def open_device(spec: str, *, fake_script: Path | None) -> Device:
    """Open the device a worker measures on.

    Parameters
    ----------
    spec : `cpu` or `cuda:N`, as `resolve_device` answers (or what it is asked)
    fake_script : path of a script for the fake device, which then wins

    Raises
    ------
    DeviceUnavailable
        CUDA, torch or that GPU is not there.
    """
    if fake_script is not None:
        from pytest_perfgate.measure.fake import FakeDevice

        return FakeDevice.from_file(fake_script)
    name = spec if spec.startswith("cuda:") else resolve_device(spec)
    if name == "cpu":
        from pytest_perfgate.measure.cpu import CpuDevice

        return CpuDevice()
    from pytest_perfgate.measure.cuda import open_cuda

    return open_cuda(name)


def resolve_device(spec: str) -> str:
    """Decide between CPU and CUDA without touching the GPU.

    Parameters
    ----------
    spec : `auto`, `cpu`, `cuda` or `cuda:N`

    Returns
    -------
    str
        `cpu` or `cuda:N`. `auto` takes the first GPU if the driver lists one
        and the installed torch can use it.

    Raises
    ------
    UsageError
        The specification is none of these.
    DeviceUnavailable
        CUDA was asked for and cannot be had.

    Notes
    -----
    torch is asked in a process of its own: the caller stays free of torch, and
    no CUDA context is created.
    """
    if not _SPEC.fullmatch(spec):
        raise UsageError(
            f"device {spec!r} is not known; write auto, cpu, cuda or cuda:N"
        )
    if spec == "cpu":
        return spec
    obstacle = _cuda_obstacle(_index(spec))
    if spec == "auto":
        return "cpu" if obstacle else "cuda:0"
    if obstacle:
        raise DeviceUnavailable(
            f"device {spec!r} cannot be used: {obstacle}; "
            "use --perfgate-device=cpu, or a machine with this GPU"
        )
    return f"cuda:{_index(spec)}"


def _index(spec: str) -> int:
    return int(spec.partition(":")[2] or 0)


def _cuda_obstacle(index: int) -> str | None:
    """Say what stands between us and GPU `index`, cheapest question first."""
    from pytest_perfgate.measure.nvml import device_names

    names = device_names()
    if not names:
        return "the NVIDIA driver lists no GPU"
    if index >= len(names):
        return f"there are {len(names)} GPUs, counted from 0"
    if importlib.util.find_spec("torch") is None:
        return "torch is not installed"
    if not _torch_sees_cuda():
        return (
            "torch.cuda.is_available() does not say yes in a fresh process "
            "(a CPU build of torch, or a driver too old for it)"
        )
    return None


def _torch_sees_cuda() -> bool:
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        return True
    try:
        probe = subprocess.run(  # noqa: S603 (our own interpreter, a constant program)
            [sys.executable, "-c", _PROBE],
            capture_output=True,
            check=False,
            timeout=_PROBE_LIMIT_S,
        )
    except subprocess.TimeoutExpired:
        return False
    return probe.returncode == 0
