"""A CUDA GPU as a device: synchronised host latency and the span between events.

Host latency ends when everything the call started on this GPU has finished, on
whatever stream. The span between two events sees the current stream alone.
"""

import contextlib
import itertools
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from pytest_perfgate import units
from pytest_perfgate.errors import DeviceUnavailable, MeasurementError
from pytest_perfgate.measure.cpu_guard import CpuGuard, Reading
from pytest_perfgate.measure.cuda_memory import memory_of
from pytest_perfgate.measure.device import Hidden, Pipelined, Timed
from pytest_perfgate.measure.flushing import Flush
from pytest_perfgate.measure.health import Telemetry
from pytest_perfgate.measure.memory import MemoryUse
from pytest_perfgate.measure.nvml_telemetry import SilentTelemetry, worker_telemetry
from pytest_perfgate.measure.on_gpu import OnGpu, on_gpu

_TRIAL_CYCLES = 10_000_000
_ALLOCATOR = ("num_device_alloc", "reserved_bytes.all.current")


def open_cuda(name: str) -> "CudaDevice":
    """Open `cuda:N`.

    Raises
    ------
    DeviceUnavailable
        torch cannot use that GPU.
    """
    import torch

    index = int(name.partition(":")[2] or 0)
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if index >= count:
        raise DeviceUnavailable(
            f"device {name!r} cannot be used: torch sees {count} GPUs; "
            "use --perfgate-device=cpu, or look at CUDA_VISIBLE_DEVICES"
        )
    torch.cuda.set_device(index)
    return CudaDevice(torch.cuda, index, telemetry=_telemetry(torch.cuda, index))


def _telemetry(cuda: Any, index: int) -> Telemetry:  # noqa: ANN401 (a module)
    # never by the integer: the driver counts in another order than CUDA
    uuid = getattr(cuda.get_device_properties(index), "uuid", None)
    if uuid is None:
        return SilentTelemetry("this version of torch does not tell the GPU's UUID")
    return worker_telemetry(str(uuid))


def _periods(ends: Sequence[Any]) -> list[float]:
    return [
        first.elapsed_time(last) * 1e6  # milliseconds
        for first, last in itertools.pairwise(ends)
    ]


class CudaDevice:
    """Measures on one GPU; `cuda` is the module torch.cuda, handed in."""

    fake = False

    def __init__(
        self,
        cuda: Any,  # noqa: ANN401 (a module)
        index: int,
        *,
        clock: Callable[[], int] = time.perf_counter_ns,
        guard: CpuGuard | None = None,
        telemetry: Telemetry | None = None,
    ) -> None:
        self.name = f"cuda:{index}"
        self.now_ns = clock
        self.tick_s = time.get_clock_info("perf_counter").resolution
        self.telemetry = telemetry
        self._cuda = cuda
        self._index = index
        self._guard = CpuGuard() if guard is None else guard
        self._slowdown = 0.0
        self._cycles_per_ns: float | None = None
        self._calls: OnGpu | None = None

    @property
    def stretches(self) -> bool:
        return self._slowdown > 0

    def begin(self, benchmark: str, *, run: int, slowdown: float) -> None:
        del benchmark, run
        self._slowdown = slowdown
        if slowdown:
            self._rate()

    def measuring(self) -> None:
        """Nothing to tell the GPU."""

    def synchronize(self) -> None:
        self._cuda.synchronize(self._index)

    @contextlib.contextmanager
    def flushing(self) -> Iterator[Flush]:
        """Hold a buffer of twice the cache's size, which a flush fills.

        It comes before the warm-up and goes before memory is measured.
        """
        buffers = [self._twice_the_cache()]

        def fill() -> None:
            buffers[0].zero_()
            self.synchronize()

        try:
            yield Flush(fill=fill, now_ns=self.now_ns)
        finally:
            buffers.clear()
            self._cuda.empty_cache()

    def _twice_the_cache(self) -> Any:  # noqa: ANN401 (a tensor)
        import torch

        known = self._cuda.get_device_properties(self._index)
        size = 2 * int(getattr(known, "L2_cache_size", 0))
        if not size:
            raise MeasurementError(
                f"cache='flush': this version of torch does not tell how large the L2 "
                f"cache of {self.name} is; use a newer one, or cache='hot'"
            )
        try:
            return torch.empty(size, dtype=torch.uint8, device=self.name)
        except RuntimeError as error:  # out of memory is one
            raise MeasurementError(
                f"cache='flush' needs {units.format_bytes(size)} on {self.name}, twice "
                f"its L2 cache, and cannot have them: {error}"
            ) from error

    def time_calls(
        self,
        call: Callable[[], object],
        *,
        count: int,
        inner: int,
        flush: Flush | None = None,
    ) -> Timed:
        starts = [self._event() for _ in range(count)]
        ends = [self._event() for _ in range(count)]
        times, enqueued = [0] * count, [0] * count
        result = None
        for index in range(count):
            result = None
            if flush is not None:
                flush()
            self.synchronize()
            started = self.now_ns()
            starts[index].record()
            for _ in range(inner):
                result = call()
            if self.stretches:
                self.synchronize()
                self.stretch(self.now_ns() - started, "call")
            ends[index].record()
            enqueued[index] = self.now_ns() - started
            self.synchronize()
            times[index] = self.now_ns() - started
        spans = [
            first.elapsed_time(last) * 1e6  # milliseconds
            for first, last in zip(starts, ends, strict=True)
        ]
        if not self.stretches:
            self._calls = on_gpu(times, enqueued, spans)
        return Timed(
            host_ns=times,
            device_ns=spans,
            result=result,
            # a planted slowdown waits in between
            enqueue_ns=None if self.stretches else enqueued,
        )

    def pipelined(
        self, call: Callable[[], object], *, count: int, own_ns: int
    ) -> Pipelined:
        """Mark the end of every call on the current stream, and wait once."""
        ends = [self._event() for _ in range(count + 1)]
        self.synchronize()
        started = self.now_ns()
        self._queue(call, ends, own_ns)
        self.synchronize()
        wall_ns = self.now_ns() - started
        return Pipelined(period_ns=_periods(ends), wall_ns=wall_ns)

    @property
    def queues(self) -> bool:
        return True

    def hidden(
        self, call: Callable[[], object], *, count: int, own_ns: int, hold_ns: float
    ) -> Hidden | None:
        """Queue the calls behind a spin, which ends by itself whatever they do.

        The spin kernel is loaded, and tried out, with an empty queue behind it.
        """
        if not hasattr(self._cuda, "_sleep"):
            return None
        rate = self._rate()
        before, *ends = (self._event() for _ in range(count + 2))
        self.synchronize()
        started = self.now_ns()
        before.record()
        if hold_ns > 0:
            self._cuda._sleep(math.ceil(hold_ns * rate))  # noqa: SLF001 (torch has no public way)
        self._queue(call, ends, own_ns)
        handed_ns = self.now_ns() - started
        self.synchronize()
        return Hidden(
            period_ns=_periods(ends),
            handed_ns=handed_ns,
            held_ns=before.elapsed_time(ends[0]) * 1e6,  # milliseconds
        )

    def _queue(
        self, call: Callable[[], object], ends: Sequence[Any], own_ns: int
    ) -> None:
        """Hand calls over, with a mark before the first and after each."""
        ends[0].record()
        for end in ends[1:]:
            call()
            if self.stretches:
                self.stretch(own_ns, "call")
            end.record()

    def allocator_state(self) -> object:
        stats = self._cuda.memory_stats(self._index)
        return tuple(stats.get(name, 0) for name in _ALLOCATOR)

    def stretch(self, own_ns: int, part: str) -> None:
        """Keep the GPU busy on the current stream."""
        del part
        cycles = math.ceil(own_ns * self._slowdown * (self._cycles_per_ns or 0.0))
        if cycles > 0:
            self._cuda._sleep(cycles)  # noqa: SLF001 (torch has no public way)

    def mark(self) -> object:
        event = self._event()
        event.record()
        return event

    def span_s(self, first: Any, second: Any) -> float:  # noqa: ANN401 (torch's events)
        return float(first.elapsed_time(second)) / 1e3

    def reading(self, *, closing: bool) -> Reading:
        # asked on the far side of the clocks: it is no part of the block
        retries = 0 if closing else self._retries()
        self._calls = self._calls if closing else None
        read = self._guard.read(self.now_ns, closing=closing)
        if closing:
            retries = self._retries()
        return replace(read, allocation_retries=retries, calls=self._calls)

    def _retries(self) -> int:
        """How often the caching allocator had to empty itself to go on, so far."""
        return int(self._cuda.memory_stats(self._index).get("num_alloc_retries", 0))

    def settled(self) -> bool:
        return True

    def peak_memory(self, call: Callable[[], object]) -> MemoryUse:
        """Peaks of the caching allocator over two calls, from an empty cache."""
        return memory_of(self._cuda, self._index, call)

    def _event(self) -> Any:  # noqa: ANN401 (torch's)
        return self._cuda.Event(enable_timing=True)

    def _rate(self) -> float:
        """Cycles of the GPU's spin kernel in a nanosecond, tried out once."""
        if self._cycles_per_ns is None:
            self._cycles_per_ns = self._spin_rate()
        return self._cycles_per_ns

    def _spin_rate(self) -> float:
        self._cuda._sleep(_TRIAL_CYCLES)  # noqa: SLF001 (the first includes loading)
        first = self.mark()
        self._cuda._sleep(_TRIAL_CYCLES)  # noqa: SLF001 (as above)
        second = self.mark()
        self.synchronize()
        return _TRIAL_CYCLES / (self.span_s(first, second) * 1e9)
