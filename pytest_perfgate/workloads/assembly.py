"""From what was measured to the record that travels."""

import hashlib
import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from pytest_perfgate.errors import BadSample
from pytest_perfgate.measure.context import MeasureContext
from pytest_perfgate.measure.counters import NOTHING, Counted, Occasion, take_counts
from pytest_perfgate.measure.memory import MemoryUse
from pytest_perfgate.measure.runner import Outcome
from pytest_perfgate.measured import METRICS, Measurement, Metric, Plan, Samples
from pytest_perfgate.model import Better
from pytest_perfgate.workloads.target import Target

HOST_PEAK_MEMORY = Metric(
    name="host_peak_memory", unit="B", definition="process-peak/1"
)
MEMORY = {
    metric.name: metric
    for metric in (
        METRICS["peak_memory"],
        HOST_PEAK_MEMORY,
        Metric(name="base_memory", unit="B", definition="allocated-before/1"),
        Metric(
            name="working_memory", unit="B", definition="allocated-peak-over-base/1"
        ),
        Metric(name="reserved_memory", unit="B", definition="reserved-peak/1"),
        Metric(
            name="inactive_split_memory", unit="B", definition="inactive-split-peak/1"
        ),
        Metric(
            name="outside_memory", unit="B", definition="used-over-reserved-growth/1"
        ),
        Metric(
            name="memory_fragmentation", unit="1", definition="unused-of-reserved/1"
        ),
        Metric(name="allocator_retries", unit="1", definition="from-empty-cache/1"),
        Metric(name="allocator_ooms", unit="1", definition="from-empty-cache/1"),
        Metric(name="device_allocations", unit="1", definition="from-empty-cache/1"),
    )
}
_DEEPEST = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """What a workload found besides the outcome of its schedule."""

    series: tuple[Samples, ...]
    workload: str
    batch_size: int | None = None
    output: Mapping[str, float] = field(default_factory=dict)
    """`Measurement.output`."""
    remarks: tuple[str, ...] = ()
    counted: Counted = NOTHING
    enqueue_share: float | None = None


def samples(metric: Metric, values: Sequence[float], *, where: str) -> Samples:
    """Make samples, or say which value cannot be one.

    Raises
    ------
    BadSample
        There is no value, or one is NaN or infinite.
    """
    if not values:
        raise BadSample(f"{where}: {metric.name} has no sample")
    for index, value in enumerate(values):
        if not math.isfinite(value):
            raise BadSample(
                f"{where}: {metric.name}[{index}] is {value!r}; "
                "every sample must be a finite number"
            )
    return Samples(metric=metric, values=tuple(values))


def assemble(
    context: MeasureContext, target: Target, outcome: Outcome, found: Findings
) -> Measurement:
    """Put together what one process measured of one benchmark."""
    plan = Plan(
        iterations=outcome.iterations,
        warmup=outcome.warmup,
        inner_loop=outcome.inner_loop,
        seed=context.seed,
        batch_size=found.batch_size,
        threads=torch_threads(),
        device=context.device.name,
        workload=found.workload,
        cache=outcome.cache,
    )
    slow = outcome.slow
    cpu_time = Samples(metric=METRICS["cpu_time"], values=outcome.cpu_time_s)
    first = () if outcome.first_s is None else (outcome.first_s,)
    first_call = [Samples(metric=METRICS["first_call"], values=first)] if first else ()
    return Measurement(
        benchmark=target.benchmark,
        nodeid=target.nodeid,
        run=context.run,
        plan=plan,
        samples=(*found.series, cpu_time, *first_call, *_counts(found)),
        health=outcome.health,
        clock_tick_s=context.device.tick_s / outcome.inner_loop,
        output=found.output,
        alone=context.alone,
        remarks=(*outcome.remarks, *found.remarks, *found.counted.remarks),
        turns=outcome.turns,
        profile=found.counted.profile,
        slow=None if slow is None else replace(slow, run=context.run),
        enqueue_share=found.enqueue_share,
    )


def _counts(found: Findings) -> Iterator[Samples]:
    """Yield the counts; a peak that the device itself knows is not counted again."""
    known = {series.metric.name for series in found.series}
    for series in found.counted.series:
        if series.metric.name not in known:
            yield series


def counted(
    context: MeasureContext,
    outcome: Outcome,
    call: Callable[[], object],
    *,
    of_a_model: bool = False,
) -> Counted:
    """Count what one more call does, now that all timing is over.

    Parameters
    ----------
    of_a_model : it is a pass through a model, whose use of the GPU is of interest
    """
    if not context.counting:
        return NOTHING
    return take_counts(occasion(context, outcome, of_a_model=of_a_model), call)


def occasion(
    context: MeasureContext, outcome: Outcome, *, of_a_model: bool = False
) -> Occasion:
    """Say what is known of what is to be counted."""
    measured = outcome.iterations * outcome.inner_loop
    return Occasion(
        device=context.device,
        made=outcome.calls,
        typical_s=outcome.typical_s,
        recompiles=outcome.recompiles,
        breaks=context.breaks,
        per_call_s=sum(outcome.host_ns) / 1e9 / measured if of_a_model else 0.0,
    )


def throughput(
    outcome: Outcome,
    *,
    work_per_iteration: float,
    unit: str,
    wall_ns: int | None = None,
) -> tuple[Samples, ...]:
    """Work done ÷ wall time of the measured blocks: one value a run.

    Parameters
    ----------
    wall_ns : wall time to divide by, where a driver's own book-keeping between
        the iterations would show in that of the blocks
    """
    wall_s = (outcome.wall_ns if wall_ns is None else wall_ns) / 1e9
    if not wall_s:
        return ()
    work = work_per_iteration * outcome.iterations * outcome.inner_loop
    metric = replace(METRICS["throughput"], unit=f"{unit}/s", better=Better.HIGHER)
    return (Samples(metric=metric, values=(work / wall_s,)),)


def queue_throughput(rate: float, *, unit: str) -> tuple[Samples, ...]:
    """Work done a second while the queue of a device was kept full."""
    metric = replace(
        METRICS["throughput"],
        unit=f"{unit}/s",
        better=Better.HIGHER,
        definition="work-over-queued-wall/1",
    )
    return (Samples(metric=metric, values=(rate,)),)


def memory_samples(memory: MemoryUse) -> tuple[Samples, ...]:
    """One value a run for all that a device reports."""
    return tuple(
        Samples(metric=MEMORY[name], values=(float(value),))
        for name, value in memory.values.items()
    )


def torch_threads() -> int | None:
    """Threads torch computes with, where somebody imported torch."""
    torch = sys.modules.get("torch")
    return None if torch is None else int(torch.get_num_threads())


def workload_digest(kind: str, *inputs: object, **keywords: object) -> str:
    """Digest of kind, shapes and types: the same in every process.

    Values stay out, for a path or a port differs from run to run; so does the
    model, for what changed in it is what the gate is to judge.
    """
    named = sorted((key, describe(value)) for key, value in keywords.items())
    text = repr((kind, [describe(value) for value in inputs], named))
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def describe(value: object, *, depth: int = 0) -> str:
    """Name the type of a value and, where it has one, its shape."""
    name = type(value).__name__
    shape = getattr(value, "shape", None)
    if shape is not None:
        kind = getattr(value, "dtype", "")
        return f"{name}{list(shape)!r}:{kind}" if isinstance(shape, tuple) else name
    if depth >= _DEEPEST:
        return name
    if isinstance(value, Mapping):
        items = ((str(key), describe(value[key], depth=depth + 1)) for key in value)
        return f"{name}{sorted(items)!r}"
    if isinstance(value, list | tuple):
        return f"{name}[{len(value)}]{_kinds(value, depth)!r}"
    return name


def _kinds(values: Sequence[object], depth: int) -> list[str]:
    return sorted({describe(value, depth=depth + 1) for value in values})
