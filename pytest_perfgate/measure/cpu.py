"""The CPU as a device: the loops that measure, and nothing else in them."""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from itertools import repeat

from pytest_perfgate.measure.cpu_guard import CpuGuard, Reading
from pytest_perfgate.measure.device import Hidden, Pipelined, Timed
from pytest_perfgate.measure.flushing import Flush
from pytest_perfgate.measure.health import Telemetry
from pytest_perfgate.measure.memory import MemoryUse, host_peak

Clock = Callable[[], int]


class CpuDevice:
    """Wall time of this process, with the clock handed in."""

    name = "cpu"
    fake = False
    telemetry: Telemetry | None = None
    """The guard of the processor has all there is to say."""

    def __init__(
        self, *, clock: Clock = time.perf_counter_ns, guard: CpuGuard | None = None
    ) -> None:
        self.now_ns = clock
        self._guard = CpuGuard() if guard is None else guard
        self._slowdown = 0.0
        self.tick_s = time.get_clock_info("perf_counter").resolution

    @property
    def stretches(self) -> bool:
        return self._slowdown > 0

    def begin(self, benchmark: str, *, run: int, slowdown: float) -> None:
        del benchmark, run
        self._slowdown = slowdown

    def measuring(self) -> None:
        """Nothing to tell the processor."""

    def synchronize(self) -> None:
        """Nothing to wait for: a call has done its work when it returns."""

    def flushing(self) -> AbstractContextManager[Flush | None]:
        """Give nothing to flush with: only a GPU's cache is."""
        return nullcontext()

    def time_calls(
        self,
        call: Callable[[], object],
        *,
        count: int,
        inner: int,
        flush: Flush | None = None,
    ) -> Timed:
        del flush
        times = [0] * count
        if self.stretches:
            result = _time_slowed(call, times, inner, self.now_ns, self._slowdown)
        elif inner > 1:
            result = _time_inner(call, times, inner, self.now_ns)
        else:
            result = _time_each(call, times, self.now_ns)
        return Timed(host_ns=times, device_ns=None, result=result)

    def stretch(self, own_ns: int, part: str) -> None:
        del part
        spin(self.now_ns, int(own_ns * self._slowdown))

    def mark(self) -> int:
        return self.now_ns()

    def span_s(self, first: object, second: object) -> float:
        return (_ns(second) - _ns(first)) / 1e9

    def reading(self, *, closing: bool) -> Reading:
        return self._guard.read(self.now_ns, closing=closing)

    def settled(self) -> bool:
        return True

    def allocator_state(self) -> object:
        return None

    def pipelined(
        self, call: Callable[[], object], *, count: int, own_ns: int
    ) -> Pipelined | None:
        """Return nothing: a call is done when it returns."""
        del call, count, own_ns
        return None

    @property
    def queues(self) -> bool:
        return False

    def hidden(
        self, call: Callable[[], object], *, count: int, own_ns: int, hold_ns: float
    ) -> Hidden | None:
        """Return nothing: there is no queue to hold up."""
        del call, count, own_ns, hold_ns
        return None

    def peak_memory(self, call: Callable[[], object]) -> MemoryUse:
        peak = host_peak(call)
        return MemoryUse(values={} if peak is None else {"host_peak_memory": peak})


def spin(now_ns: Clock, duration_ns: int) -> None:
    """Keep the processor busy for a while: sleeping would be too coarse."""
    until = now_ns() + duration_ns
    while now_ns() < until:
        pass


def _ns(mark: object) -> int:
    if not isinstance(mark, int):
        raise TypeError(f"{mark!r} is not a mark of this device")
    return mark


# The three loops below are the instrument: local names only, one clock reading
# on each side of the call, and the release of the previous result outside.


def _time_each(call: Callable[[], object], times: list[int], now: Clock) -> object:
    result = None
    for index in range(len(times)):
        result = None
        started = now()
        result = call()
        stopped = now()
        times[index] = stopped - started
    return result


def _time_inner(
    call: Callable[[], object], times: list[int], inner: int, now: Clock
) -> object:
    result = None
    for index in range(len(times)):
        result = None
        rounds = repeat(None, inner)
        started = now()
        for _ in rounds:
            result = call()
        stopped = now()
        times[index] = stopped - started
    return result


def _time_slowed(
    call: Callable[[], object],
    times: list[int],
    inner: int,
    now: Clock,
    slowdown: float,
) -> object:
    result = None
    for index in range(len(times)):
        result = None
        rounds = repeat(None, inner)
        started = now()
        for _ in rounds:
            result = call()
        stopped = now()
        until = stopped + (stopped - started) * slowdown
        while stopped < until:
            stopped = now()
        times[index] = stopped - started
    return result
