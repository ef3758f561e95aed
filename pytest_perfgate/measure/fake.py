"""A device with a virtual clock, driven by a script: exact and instant.

Real worker processes measure real benchmark files with it, and every number is
known beforehand; no real time enters any of them. Results are marked `fake`. What a
script may say stands in `fake_script`.
"""

import hashlib
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from math import exp
from pathlib import Path
from statistics import NormalDist

from pytest_perfgate.measure.cpu_guard import Reading
from pytest_perfgate.measure.device import Hidden, Pipelined, Timed
from pytest_perfgate.measure.fake_gpu import FakeGpu, GpuScript
from pytest_perfgate.measure.fake_script import (
    RunScript,
    Script,
    number_at,
    read_script,
)
from pytest_perfgate.measure.flushing import Flush
from pytest_perfgate.measure.memory import MemoryUse
from pytest_perfgate.measure.on_gpu import OnGpu, on_gpu

_FLUSH_NS = 50_000
_NORMAL = NormalDist()


class FakeDevice:
    """Calls what it is given once, and then moves its clock by the script."""

    name = "fake"
    fake = True
    tick_s = 1e-9
    stretches = True

    def __init__(self, script: Script) -> None:
        self.script = script
        self._clock_ns = 0
        self._kept_waiting_ns = 0
        self._calls: OnGpu | None = None
        self._stages_in_round = False
        self._block = -1
        self.begin("", run=0, slowdown=0.0)

    @classmethod
    def from_file(cls, path: Path) -> "FakeDevice":
        return cls(read_script(path))

    def begin(self, benchmark: str, *, run: int, slowdown: float) -> None:
        self._law = self.script.governing(benchmark)
        self._this_run = self._law.runs.get(str(run), RunScript())
        self._seed = f"{self.script.salt}\0{benchmark}\0{run}"
        run_sd = 0.0 if self._law.values else self._law.run_sd
        self._factor = (
            self._law.factor
            * self._this_run.factor
            # the code under test may not be there before the first benchmark
            * (number_at(self._law.factor_from) if benchmark else 1.0)
            * (1.0 + slowdown)
            * exp(run_sd * self._deviate("run"))
        )
        self._restart("warm-up")

    def measuring(self) -> None:
        self._block = -1
        self._restart("measured")

    @property
    def telemetry(self) -> FakeGpu | None:
        gpu = {**self._law.gpu, **self._this_run.gpu}
        return FakeGpu(GpuScript(**gpu), self.now_ns) if gpu else None

    def _restart(self, phase: str) -> None:
        self._phase = phase
        self._done: Counter[str] = Counter()

    def now_ns(self) -> int:
        return self._clock_ns

    def synchronize(self) -> None:
        """Wait for nothing: the virtual clock has no work behind it."""

    def flushing(self) -> AbstractContextManager[Flush | None]:
        if self._law.flush is None:
            return nullcontext()
        # a processor that waits is busy
        return nullcontext(
            Flush(fill=self._flush, now_ns=self.now_ns, cpu_ns=self.now_ns)
        )

    def _flush(self) -> None:
        self._clock_ns += _FLUSH_NS

    def time_calls(
        self,
        call: Callable[[], object],
        *,
        count: int,
        inner: int,
        flush: Flush | None = None,
    ) -> Timed:
        times = []
        cold = 1.0 if flush is None else self._law.flush or 1.0
        result = None
        for _ in range(count):
            result = None
            if flush is not None:
                flush()
            started = self._clock_ns
            result = call()
            self._advance("call", times=inner * cold)
            times.append(self._clock_ns - started)
        share = self._law.device
        busy = None if share is None else [duration * share for duration in times]
        handed = self._law.enqueue
        enqueued = None if handed is None else [round(t * handed) for t in times]
        if busy is not None and enqueued is not None:
            self._calls = on_gpu(times, enqueued, busy)
        return Timed(host_ns=times, device_ns=busy, result=result, enqueue_ns=enqueued)

    def stretch(self, own_ns: int, part: str) -> None:
        del own_ns  # what is real is not looked at
        if part == "round" and self._stages_in_round:
            self._stages_in_round = False
            return
        self._stages_in_round = part.startswith("stage:")
        self._advance(part)

    def mark(self) -> int:
        return self._clock_ns

    def span_s(self, first: object, second: object) -> float:
        if not isinstance(first, int) or not isinstance(second, int):
            raise TypeError(f"{first!r}, {second!r} are not marks of this device")
        return (second - first) / 1e9

    def reading(self, *, closing: bool) -> Reading:
        if not closing:
            self._block += 1
            self._calls = None
        return Reading(
            wall_ns=self._clock_ns,
            cpu_ns=self._clock_ns,
            delays_ns={"main": self._kept_waiting_ns},
            calls=self._calls,
        )

    def settled(self) -> bool:
        return self._this_run.steady

    def allocator_state(self) -> object:
        return None

    def pipelined(
        self, call: Callable[[], object], *, count: int, own_ns: int
    ) -> Pipelined | None:
        share = self._law.period
        if share is None:
            return None
        del own_ns  # the script has it
        started, periods = self._clock_ns, []
        for _ in range(count):
            call()
            before = self._clock_ns
            self._advance("call", times=share)
            periods.append(float(self._clock_ns - before))
        return Pipelined(period_ns=periods, wall_ns=self._clock_ns - started)

    @property
    def queues(self) -> bool:
        return self._law.period is not None

    def hidden(
        self, call: Callable[[], object], *, count: int, own_ns: int, hold_ns: float
    ) -> Hidden | None:
        share = self._law.hidden
        if share is None:
            return None
        del own_ns  # the script has it
        handed_ns = round(count * self._law.seconds * (self._law.enqueue or 0.0) * 1e9)
        self._clock_ns += round(max(hold_ns, handed_ns))
        periods = []
        for _ in range(count):
            call()
            before = self._clock_ns
            self._advance("call", times=share)
            periods.append(float(self._clock_ns - before))
        return Hidden(period_ns=periods, handed_ns=handed_ns, held_ns=hold_ns)

    def peak_memory(self, call: Callable[[], object]) -> MemoryUse:
        del call
        peak = self._law.peak_memory
        return MemoryUse(values={} if peak is None else {"peak_memory": peak})

    def _advance(self, part: str, *, times: float = 1) -> None:
        step = max(1, round(self._seconds(part) * times * 1e9))
        self._clock_ns += step
        run = self._this_run
        if run.disturbed or self._block in run.disturbed_blocks:
            self._kept_waiting_ns += step // 2

    def _seconds(self, part: str) -> float:
        index = self._done[part]
        self._done[part] += 1
        law = self._law
        if law.values:
            return law.values[index % len(law.values)] * self._factor
        noise = law.iteration_sd and self._deviate(f"{self._phase}\0{part}\0{index}")
        return (
            law.seconds * law.share(part) * self._factor * exp(law.iteration_sd * noise)
        )

    def _deviate(self, what: str) -> float:
        """Draw a standard normal deviate that depends on nothing but its name."""
        digest = hashlib.blake2b(f"{self._seed}\0{what}".encode(), digest_size=8)
        uniform = (int.from_bytes(digest.digest(), "big") + 0.5) / 2**64
        return _NORMAL.inv_cdf(min(max(uniform, 1e-16), 1 - 1e-16))
