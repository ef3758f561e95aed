"""Deterministic counts of one call, taken when all timing of a benchmark is over.

In each pass the function is called once more, or the loop makes one more round.
Two kinds of pass are made, each twice: under a mode that counts operators, and
under torch's profiler. What differs between two passes is marked unstable, and
not compared.
"""

import gc
import sys
import warnings
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import TypeVar

from pytest_perfgate.measure.compile_watch import BreakBook
from pytest_perfgate.measure.count_metrics import MFU, count_metric
from pytest_perfgate.measure.device import Device
from pytest_perfgate.measure.flops import Flops
from pytest_perfgate.measure.operators import (
    Dispatched,
    can_count,
    dispatching,
    uncompiled,
)
from pytest_perfgate.measure.peaks import utilisation
from pytest_perfgate.measure.profile import profile_of
from pytest_perfgate.measure.profiling import ProfilerTaken, tracing
from pytest_perfgate.measure.threads import Others, watching_threads
from pytest_perfgate.measure.traces import CPU_MEMORY, CUDA_MEMORY, Trace
from pytest_perfgate.measured import Profile, Samples

COSTLIEST_CALL_S = 5.0
"""Above it no counts are taken: they need about six more calls."""
MOST_OPERATORS = 200_000
"""Above it no trace is made: reading it would take minutes."""
SETTLED = 3
"""Calls after which lazy state (an optimizer's, say) is there."""
_ASIDE = (
    "other threads worked during the call: what torch does in them is in no count of "
    "operators, reads, memory or operations"
)
_UNWATCHED = (
    "launches, waits and copies were not counted: torch's profiler was told nothing of "
    "the GPU, not even of our own wait; the driver may keep its counters to root "
    "(NVreg_RestrictProfilingToAdminUsers), or another profiler has them"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Occasion:
    """What is to be counted, and what is known of it already."""

    device: Device
    made: int
    """Calls made so far."""
    typical_s: float
    recompiles: int | None
    """While it was timed; None where nobody could tell."""
    breaks: BreakBook
    per_call_s: float = 0.0
    """Wall time of the measured iterations ÷ their calls; 0 gives no utilisation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """What was counted; nothing where the call has no part in torch."""

    series: tuple[Samples, ...] = ()
    remarks: tuple[str, ...] = ()
    profile: Profile | None = None
    kernels_busy_s: float = 0.0
    """How long kernels of one call ran, side by side or one after the other."""


NOTHING = Counted()
Found = TypeVar("Found")
Passes = Generator[AbstractContextManager[object], None, Found]
"""Hands out what one call each is to be made in."""


class Count:
    """Counts what is done in each of the passes that it hands out.

    They are for one call each, of whatever kind, and are left before the next one
    is asked for. Whoever stops early closes the iterator, which puts everything
    back.
    """

    def __init__(self, occasion: Occasion) -> None:
        self._occasion = occasion
        self.found = NOTHING
        """What was counted, once there are no more passes."""

    def __iter__(self) -> Passes[None]:
        occasion = self._occasion
        if "torch" not in sys.modules:
            return
        if occasion.typical_s > COSTLIEST_CALL_S:
            self.found = not_taken(
                f"one call takes {occasion.typical_s:.3g} s, "
                f"more than {COSTLIEST_CALL_S:g} s"
            )
            return
        with _without_garbage(), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the timed calls have given them
            self.found = yield from _Counting(occasion=occasion).all()


def take_counts(occasion: Occasion, call: Callable[[], object]) -> Counted:
    """Count what one call does, if the code under test has imported torch."""
    return count_prepared(occasion, lambda: nullcontext(call))


def count_prepared(
    occasion: Occasion,
    prepare: Callable[[], AbstractContextManager[Callable[[], object]]],
) -> Counted:
    """Count what one call does, without what is done before it and after it.

    Parameters
    ----------
    prepare : entered before each call, which it gives, and left after it
    """
    count = Count(occasion)
    try:
        with closing(iter(count)) as passes:
            for one in passes:
                with prepare() as call, one:
                    call()
    except Exception as error:  # noqa: BLE001 (whatever the user's code or torch raises here must not cost the times, which are there already)
        return failed(error)
    return count.found


def failed(error: Exception) -> Counted:
    """Say what kept counts from being taken."""
    return not_taken(f"{type(error).__name__}: {error}".splitlines()[0][:200])


def not_taken(why: str) -> Counted:
    """Say why there are no counts."""
    return Counted(remarks=(f"counts were not taken: {why}",))


@contextmanager
def _without_garbage() -> Iterator[None]:
    """Keep the collector from freeing, in one call of two, what others left."""
    enabled = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


@dataclass(slots=True, kw_only=True)
class _Counting:
    """The passes over one call, and what they brought."""

    occasion: Occasion
    remarks: list[str] = field(default_factory=list)
    retries: list[int] = field(default_factory=list)
    others: list[Others] = field(default_factory=list)
    """What other threads did, in each pass that counts operators."""

    def all(self) -> Passes[Counted]:
        for _ in range(SETTLED - self.occasion.made):
            yield self._synchronised()
        operators: list[Dispatched] = []
        if can_count():
            yield self._operators(operators)
            if not operators[0].total and self._surely_nothing():
                return self._nothing()
            yield self._operators(operators)
        most = max((one.total for one in operators), default=0)
        traces = yield from self._traces(most)
        counts = self._of_operators(operators) | self._of_traces(traces)
        if not any(value for pair in counts.values() for value in pair):
            return self._nothing()
        if self.occasion.recompiles is not None:
            counts["recompiles"] = (self.occasion.recompiles,) * 2
        flops = yield from self._flops(operators, traces, counts)
        self.remarks += [_ASIDE] if self.aside else []
        unstable = sorted(name for name, (one, two) in counts.items() if one != two)
        self.remarks += [
            f"{name} is unstable: {min(counts[name]):,} and {max(counts[name]):,}"
            " in two calls one after the other; it is not compared"
            for name in unstable
        ]
        series = [self._series(name, pair) for name, pair in counts.items()]
        series += self._utilisation(flops)  # may add a remark
        return Counted(
            series=tuple(series),
            remarks=tuple(self.remarks),
            profile=profile_of(traces) if traces else None,
            kernels_busy_s=min((trace.busy_s for trace in traces), default=0.0),
        )

    def _nothing(self) -> Counted:
        """Say that nothing was seen only where there was nothing to be seen."""
        return Counted(remarks=(_ASIDE,)) if self.aside else NOTHING

    @property
    def aside(self) -> bool:
        """Whether other threads work for the call: one may wake up by chance, once."""
        begun = any(one.started for one in self.others)
        return begun or (bool(self.others) and all(one.busy for one in self.others))

    def _surely_nothing(self) -> bool:
        """Whether no operator means no part in torch: a compiled function has none."""
        return not self._on_gpu and "torch._dynamo" not in sys.modules

    def _remark(self, text: str) -> None:
        if text not in self.remarks:
            self.remarks.append(text)

    # -- the passes

    @contextmanager
    def _synchronised(self) -> Iterator[None]:
        yield
        self.occasion.device.synchronize()

    @contextmanager
    def _operators(self, found: list[Dispatched]) -> Iterator[None]:
        with (
            self._synchronised(),
            watching_threads() as others,
            dispatching() as dispatched,
        ):
            yield
        self.others.append(others)
        found.append(dispatched)

    def _traces(self, operators: int) -> Passes[list[Trace]]:
        if operators > MOST_OPERATORS:
            self.remarks.append(
                f"no trace was made: one call dispatches {operators:,} operators, "
                f"more than {MOST_OPERATORS:,}"
            )
            return []
        found: list[Trace] = []
        # the first only warms the profiler, and tells it of memory freed later
        for made in range(1, 1 + 1 + 2):
            yield self._trace(found)
            if len(found) < made:
                return []
        return found[1:]

    @contextmanager
    def _trace(self, found: list[Trace]) -> Iterator[None]:
        before = self._retries()
        wait = self.occasion.device.synchronize
        try:
            with tracing(on_gpu=self._on_gpu, wait=wait) as traced:
                yield
        except ProfilerTaken as taken:
            self._remark(f"no trace was made: {taken}")
            return
        found.append(traced.trace)
        self.retries.append(self._retries() - before)

    def _retries(self) -> int:
        """How often the GPU's allocator had to free its cache to go on, so far."""
        if not self._on_gpu:
            return 0
        stats = sys.modules["torch"].cuda.memory_stats(self.occasion.device.name)
        return int(stats.get("num_alloc_retries", 0))

    def _flops(
        self,
        operators: list[Dispatched],
        traces: list[Trace],
        counts: dict[str, tuple[int, int]],
    ) -> Passes[Flops | None]:
        """Add the operations of one call, and of compiled code its operators.

        What is compiled or fused is run once more operator by operator, so that
        there is a formula for each. None where one has no formula all the same.
        """
        if not operators:
            return None
        one, two = (each.flops for each in operators)
        compiled = any(trace.compiled for trace in traces)
        if compiled or one.unknown:
            again: list[Dispatched] = []
            with uncompiled():
                yield self._operators(again)
            one = two = again[0].flops
            if compiled:
                counts["ops_eager"] = (again[0].total,) * 2
        if any(trace.driven for trace in traces) and not compiled:
            one.unknown["kernels launched by the driver, such as Triton's"] += 1
        if self.aside:
            one.unknown["what other threads do"] += 1
        if one.unknown:
            self._explain(f"no formula for {', '.join(sorted(one.unknown))}")
            return None
        counts["flops"] = one.total, two.total
        return one if one.total == two.total else None

    def _utilisation(self, flops: Flops | None) -> Iterator[Samples]:
        """Give the share of the GPU's peak, or say why there is none."""
        occasion = self.occasion
        if not (self._on_gpu and flops and flops.total and occasion.per_call_s):
            return
        found = utilisation(flops, occasion.device.name, occasion.per_call_s)
        if isinstance(found, str):
            self._explain(found)
        else:
            yield Samples(metric=MFU, values=(found,))

    def _explain(self, why_not: str) -> None:
        if self._on_gpu and self.occasion.per_call_s:
            self.remarks.append(f"no mfu: {why_not}")

    # -- what they say, each twice

    @property
    def _on_gpu(self) -> bool:
        return self.occasion.device.name.startswith("cuda")

    def _of_operators(self, passes: list[Dispatched]) -> dict[str, tuple[int, int]]:
        if not passes:
            self.remarks.append(
                "ops were not counted: this torch would run compiled code "
                "uncompiled from then on"
            )
            return {}
        one, two = passes
        found = {"ops": (one.total, two.total)}
        if not self._on_gpu:
            found["syncs"] = (one.reads, two.reads)
        return found

    def _of_traces(self, traces: list[Trace]) -> dict[str, tuple[int, int]]:
        if not traces:
            return {}
        one, two = (self._of_trace(trace) for trace in traces)
        found = {name: (one[name], two[name]) for name in one if name in two}
        if self._on_gpu and not any(trace.watched for trace in traces):
            self.remarks.append(_UNWATCHED)
        if self._on_gpu:
            found["allocation_retries"] = self.retries[-2], self.retries[-1]
        return found

    def _of_trace(self, trace: Trace) -> Mapping[str, int]:
        memory = CUDA_MEMORY if self._on_gpu else CPU_MEMORY
        found = {
            "allocations": trace.allocations(memory),
            "compiled_graphs": len(trace.compiled),
        }
        breaks = self.occasion.breaks.of(trace.compiled)
        if breaks is None:
            self._remark(
                "graph breaks were not counted: a graph was made before anyone watched"
            )
        else:
            found["graph_breaks"] = breaks
        if not self._on_gpu:
            return found | _of_cpu(trace)
        return found | (_of_gpu(trace) if trace.watched else {})

    def _series(self, name: str, pair: tuple[int, int]) -> Samples:
        metric = count_metric(name, on_gpu=self._on_gpu, stable=pair[0] == pair[1])
        return Samples(metric=metric, values=(float(max(pair)),))


def _of_cpu(trace: Trace) -> dict[str, int]:
    return {"peak_memory": trace.peak_bytes(CPU_MEMORY)}


def _of_gpu(trace: Trace) -> dict[str, int]:
    inward, outward = trace.copies("h2d"), trace.copies("d2h")
    return {
        "kernel_launches": trace.kernel_launches,
        "graph_launches": trace.graph_launches,
        "kernels": trace.kernels,
        "syncs": trace.syncs,
        "copies_h2d": inward[0],
        "bytes_h2d": inward[1],
        "copies_d2h": outward[0],
        "bytes_d2h": outward[1],
        "copies_pageable": trace.pageable_copies,
    }
