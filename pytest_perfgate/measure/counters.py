"""Deterministic counts of one call, taken when all timing of a benchmark is over.

Each pass calls the function once more. Two kinds of pass are made, each twice:
under a mode that counts operators, and under torch's profiler. What differs
between two calls is marked unstable, and not compared.
"""

import gc
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from pytest_perfgate.measure.compile_watch import BreakBook
from pytest_perfgate.measure.device import Device
from pytest_perfgate.measure.operators import Dispatched, can_count, dispatched
from pytest_perfgate.measure.traces import (
    CALL,
    CPU_MEMORY,
    CUDA_MEMORY,
    Trace,
    read_trace,
)
from pytest_perfgate.model import UNSTABLE, Metric, Samples

COSTLIEST_CALL_S = 5.0
"""Above it no counts are taken: they need about six more calls."""
MOST_OPERATORS = 200_000
"""Above it no trace is made: reading it would take minutes."""
SETTLED = 3
"""Calls after which lazy state (an optimizer's, say) is there."""
_BYTES = frozenset({"bytes_h2d", "bytes_d2h", "peak_memory"})
_DEFINITIONS = {
    "ops": "leaf-operators/1",
    "ops_eager": "leaf-operators-uncompiled/1",
    "kernel_launches": "launch-calls/1",
    "graph_launches": "graph-launch-calls/1",
    "kernels": "device-kernels/1",
    "syncs": "host-waits/1",
    "copies_h2d": "device-copies/1",
    "copies_d2h": "device-copies/1",
    "copies_pageable": "pageable-copies/1",
    "bytes_h2d": "device-copies/1",
    "bytes_d2h": "device-copies/1",
    "allocations": "allocation-events/1",
    "allocation_retries": "allocator-retries/1",
    "peak_memory": "allocated-over-start/1",
    "compiled_graphs": "graphs-run/1",
    "graph_breaks": "breaks-of-graphs-run/1",
    "recompiles": "compiled-while-timed/1",
    "flops": "formulas/1",
}
_ON_CPU = {"syncs": "host-reads/1"}
"""Where a count has another meaning without a GPU."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Occasion:
    """What is to be counted, and what is known of it already."""

    device: Device
    call: Callable[[], object]
    made: int
    """Calls made so far."""
    typical_s: float
    recompiles: int
    breaks: BreakBook


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """What was counted; nothing where the call has no part in torch."""

    series: tuple[Samples, ...] = ()
    remarks: tuple[str, ...] = ()


NOTHING = Counted()


def take_counts(occasion: Occasion) -> Counted:
    """Count what one call does, if the code under test has imported torch."""
    if "torch" not in sys.modules:
        return NOTHING
    if occasion.typical_s > COSTLIEST_CALL_S:
        return _not_taken(
            f"one call takes {occasion.typical_s:.3g} s, more than {COSTLIEST_CALL_S:g} s"
        )
    try:
        with _without_garbage():
            return _Counting(occasion=occasion).all()
    except Exception as error:  # noqa: BLE001 (whatever the user's code or torch raises here must not cost the times, which are there already)
        kind = type(error).__name__
        return _not_taken(f"{kind}: {error}".splitlines()[0][:200])


def _not_taken(why: str) -> Counted:
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

    def all(self) -> Counted:
        for _ in range(SETTLED - self.occasion.made):
            self._call()
        operators = [self._operators()] if can_count() else []
        if operators and not operators[0].total and self._surely_nothing():
            return NOTHING
        operators += [self._operators() for _ in operators]
        traces = self._traces(max((one.total for one in operators), default=0))
        counts = self._of_operators(operators) | self._of_traces(traces)
        if not any(value for pair in counts.values() for value in pair):
            return NOTHING
        counts["recompiles"] = (self.occasion.recompiles,) * 2
        unstable = sorted(name for name, (one, two) in counts.items() if one != two)
        self.remarks += [
            f"{name} is unstable: {min(counts[name]):,} and {max(counts[name]):,}"
            " in two calls one after the other; it is not compared"
            for name in unstable
        ]
        return Counted(
            series=tuple(self._series(name, pair) for name, pair in counts.items()),
            remarks=tuple(self.remarks),
        )

    def _surely_nothing(self) -> bool:
        """Whether no operator means no part in torch: a compiled function has none."""
        return not self._on_gpu and "torch._dynamo" not in sys.modules

    # -- the passes

    def _call(self) -> None:
        self.occasion.call()
        self.occasion.device.synchronize()

    def _operators(self) -> Dispatched:
        found = dispatched(self.occasion.call)
        self.occasion.device.synchronize()
        return found

    def _traces(self, operators: int) -> list[Trace]:
        if operators > MOST_OPERATORS:
            self.remarks.append(
                f"no trace was made: one call dispatches {operators:,} operators, "
                f"more than {MOST_OPERATORS:,}"
            )
            return []
        # the first only warms the profiler, and tells it of memory freed later
        passes = 1 + 2
        return [trace_of(self._call, on_gpu=self._on_gpu) for _ in range(passes)][1:]

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
        return {name: (one[name], two[name]) for name in one.keys() & two.keys()}

    def _of_trace(self, trace: Trace) -> Mapping[str, int]:
        memory = CUDA_MEMORY if self._on_gpu else CPU_MEMORY
        found = {
            "allocations": trace.allocations(memory),
            "compiled_graphs": len(trace.compiled),
        }
        breaks = self.occasion.breaks.of(trace.compiled)
        if breaks is not None:
            found["graph_breaks"] = breaks
        return found | (_of_gpu(trace) if self._on_gpu else _of_cpu(trace))

    def _series(self, name: str, pair: tuple[int, int]) -> Samples:
        kind = "cuda" if self._on_gpu else "cpu"
        what = _DEFINITIONS[name] if self._on_gpu else _ON_CPU.get(name)
        what = what or _DEFINITIONS[name]
        version = getattr(sys.modules["torch"], "__version__", "unknown")
        whom = f"{kind} torch {version}" if pair[0] == pair[1] else UNSTABLE
        metric = Metric(
            name=name,
            unit="B" if name in _BYTES else "1",
            definition=f"{what}@{whom}",
            exact=True,
        )
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


def trace_of(call: Callable[[], object], *, on_gpu: bool) -> Trace:
    """Call once under torch's profiler.

    The profiler's inner part is used: the outer one imports torch's compiler,
    which takes seconds, and which the code under test may well do without.
    """
    from torch.autograd import profiler
    from torch.profiler import ProfilerActivity, supported_activities

    sees_gpu = on_gpu and ProfilerActivity.CUDA in supported_activities()
    with (
        profiler.profile(
            use_cpu=True,
            use_device="cuda" if sees_gpu else None,
            use_kineto=True,
            profile_memory=True,
        ) as profile,
        profiler.record_function(CALL),
    ):
        call()
    with tempfile.TemporaryDirectory(prefix="perfgate-") as folder:
        file = Path(folder) / "trace.json"
        profile.export_chrome_trace(str(file))
        return read_trace(file.read_text(encoding="utf-8", errors="replace"))
