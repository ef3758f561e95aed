"""Any callable: one iteration is one call."""

import functools
import inspect
import math
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace

from pytest_perfgate.errors import UsageError
from pytest_perfgate.measure.context import MeasureContext
from pytest_perfgate.measure.counters import Counted
from pytest_perfgate.measure.device import Device, Pipelined
from pytest_perfgate.measure.flushing import Flush
from pytest_perfgate.measure.garbage import quiet_garbage
from pytest_perfgate.measure.lengthening import (
    MOST_CALLS,
    SHORTEST_SPAN_S,
    TRIED,
    calls_needed,
)
from pytest_perfgate.measure.memory import MemoryUse
from pytest_perfgate.measure.recipe import BLOCK_S, FEWEST, TURN_S, recipe
from pytest_perfgate.measure.runner import Outcome, drive, schedule
from pytest_perfgate.measure.settling import Request
from pytest_perfgate.measured import FLUSH, METRICS, Measurement, Metric, Samples
from pytest_perfgate.workloads.assembly import (
    Findings,
    assemble,
    counted,
    samples,
    workload_digest,
)
from pytest_perfgate.workloads.hidden import Period, hidden_period
from pytest_perfgate.workloads.host_bound import bound_remarks, enqueue_share
from pytest_perfgate.workloads.outputs import output_of, output_remarks
from pytest_perfgate.workloads.target import Target

SPANNED = 0.5
"""A span below this share of what the kernels took has not spanned them."""
MOST_QUEUED = 1000
DEVICE_PERIOD = Metric(name="device_period", unit="s", definition="event-period/1")


def check_callable(function: object) -> None:
    """Refuse what would be measured without doing its work.

    Raises
    ------
    UsageError
        Not callable; or a coroutine or generator function, whose call does
        nothing yet.
    """
    if not callable(function):
        raise UsageError(
            f"perfgate measures a callable, and {function!r} is none; "
            "pass the function itself, not its result: perfgate(fn, arg)"
        )
    if inspect.iscoroutinefunction(function):
        raise UsageError(
            f"{function!r} is a coroutine function: calling it only makes a "
            "coroutine; measure lambda: asyncio.run(...)"
        )
    if inspect.isgeneratorfunction(function):
        raise UsageError(
            f"{function!r} is a generator function: calling it does no work yet; "
            "measure lambda: list(...)"
        )


def bound(
    function: Callable[..., object],
    args: tuple[object, ...],
    kwargs: Mapping[str, object],
) -> Callable[[], object]:
    """Bind arguments where there are any; a plain call is the cheapest."""
    return functools.partial(function, *args, **kwargs) if args or kwargs else function


@dataclass(slots=True, kw_only=True)
class Calls:
    """Performs iterations by calling, and keeps the last result."""

    device: Device
    call: Callable[[], object]
    inner: int
    flush: Flush | None = None
    device_s: list[float] = field(default_factory=list)
    enqueued: list[float] = field(default_factory=list)
    """The share of each latency after which all work was handed over."""
    result: object = None
    spans_ns: Sequence[float] | None = None
    """Of the last iterations before the measured ones, the cold call's apart."""

    def __call__(self, request: Request) -> list[int]:
        self.result = None  # it shall not lie beside the next one
        if request.dropped:
            del self.device_s[-request.dropped :]
            del self.enqueued[-request.dropped :]
        inner = 1 if request.first else self.inner
        timed = self.device.time_calls(
            self.call, count=request.count, inner=inner, flush=self.flush
        )
        self.result = timed.result
        if timed.device_ns is not None and not request.measured:
            self._warm(timed.device_ns)
        elif timed.device_ns is not None:
            self.device_s += (span / self.inner / 1e9 for span in timed.device_ns)
            pairs = zip(timed.enqueue_ns or (), timed.host_ns, strict=False)
            self.enqueued += (handed / max(whole, 1) for handed, whole in pairs)
        return timed.host_ns

    def enqueue_share(self, counts: Counted, *, typical_s: float) -> float | None:
        """See `enqueue_share`."""
        return enqueue_share(
            self.enqueued, counts, typical_s=typical_s, fake=self.device.fake
        )

    def _warm(self, spans_ns: Sequence[float]) -> None:
        """Keep the last few; the first request of all is the cold call."""
        cold = self.spans_ns is None
        self.spans_ns = () if cold else (*(self.spans_ns or ()), *spans_ns)[-TRIED:]

    def again(self) -> object:
        """Call once more, untimed, with no earlier result in memory."""
        self.result = None
        self.result = self.call()
        return self.result


def run_calls(
    context: MeasureContext, target: Target, call: Callable[[], object]
) -> tuple[Outcome, Calls]:
    """Measure a callable without arguments, one call after another."""
    device = context.device
    wanted = recipe(context, target.benchmark)
    device.begin(target.benchmark, run=context.run, slowdown=context.slowdown)
    with device.flushing() if wanted.cache == FLUSH else nullcontext() as flush:
        if flush is not None:
            # whatever was once recorded, and however short: the second would be hot
            wanted = replace(wanted, inner_loop=1, lengthens=False)
        calls = Calls(device=device, call=call, inner=wanted.inner_loop, flush=flush)
        outcome = drive(schedule(device, wanted, flush=flush, calls=calls), calls)
    if outcome.cache != wanted.cache:
        text = f"cache={wanted.cache!r} means nothing on {device.name}: measured hot"
        outcome = replace(outcome, remarks=(*outcome.remarks, text))
    return outcome, calls


def latency_samples(
    target: Target, outcome: Outcome, calls: Calls
) -> tuple[Samples, ...]:
    """Host latency and, where the device has events, its own span."""
    latency = samples(METRICS["latency"], outcome.seconds, where=target.benchmark)
    if not calls.device_s:
        return (latency,)
    span = samples(METRICS["device_time"], calls.device_s, where=target.benchmark)
    return latency, span


def queued(context: MeasureContext, outcome: Outcome, calls: Calls) -> Pipelined | None:
    """Measure once more with a queue that is kept full, for about a block.

    In a pair it is one more turn of each side. Not where the cache is flushed
    before each call: a full queue would find it hot.
    """
    if not outcome.typical_s or outcome.cache == FLUSH:
        return None
    with quiet_garbage() as garbage, garbage.block():
        piped = context.device.pipelined(
            calls.call,
            count=min(max(_filling(outcome), FEWEST), MOST_QUEUED),
            own_ns=context.unslowed_ns(outcome.typical_s),
        )
    if piped is not None:
        context.hand_over()
    return piped


def _filling(outcome: Outcome) -> int:
    """Count the calls that fill a block; as many on both sides of a pair."""
    if outcome.turns:
        agreed = max(outcome.turns) * outcome.inner_loop
        return round(agreed * BLOCK_S / TURN_S)
    return math.ceil(BLOCK_S / outcome.typical_s)


def period_samples(target: Target, piped: Pipelined | None) -> tuple[Samples, ...]:
    """Give what one call adds to a full queue; shown."""
    if piped is None:
        return ()
    periods = [period / 1e9 for period in piped.period_ns]
    return (samples(DEVICE_PERIOD, periods, where=target.benchmark),)


def sample_remarks(
    context: MeasureContext, target: Target, calls: Calls, times: Sequence[Samples]
) -> Iterator[str]:
    """Say what a sample is where it is not one call, or where it is too short.

    Parameters
    ----------
    times : what is kept of latency and the device's time
    """
    if calls.inner > 1:
        yield (
            f"no P99: a sample is the mean of {calls.inner:,} calls "
            "(inner_loop=1 takes them one by one)"
        )
    kept = any(series.metric.name == "device_time" for series in times)
    span_s = statistics.median(calls.device_s) * calls.inner if kept else math.inf
    if span_s < SHORTEST_SPAN_S:
        yield (
            f"device_time of {span_s * 1e6:.3g} µs a sample is mostly gaps between "
            f"launches; {_way_out(context, target, calls, span_s)}"
        )


def _way_out(
    context: MeasureContext, target: Target, calls: Calls, span_s: float
) -> str:
    if calls.flush is not None:
        return "one call a sample is what a flushed cache allows"
    if calls.inner >= MOST_CALLS:
        return "and there is no making it long enough"
    if context.inner_loop is None and target.benchmark in context.plans:
        return (
            f"the stored plan has inner_loop={calls.inner}, and "
            "--perfgate-update records one that makes it long enough"
        )
    needed = calls_needed(span_s, inner=calls.inner)
    return f"inner_loop={needed} would make it long enough"


def on_one_stream(
    series: tuple[Samples, ...], busy_s: float
) -> tuple[tuple[Samples, ...], tuple[str, ...]]:
    """Leave device_time out where the events cannot have spanned the work.

    They see the stream that they are recorded on. A trace sees every stream.

    Parameters
    ----------
    busy_s : how long kernels of one call ran, those that overlap counted once
    """
    spans = next((s for s in series if s.metric.name == "device_time"), None)
    if spans is None or statistics.median(spans.values) >= SPANNED * busy_s:
        return series, ()
    text = (
        f"no device_time: kernels ran for {busy_s * 1e6:.3g} µs a call and the events "
        f"span {statistics.median(spans.values) * 1e6:.3g} µs: the work is on another "
        "stream; let the current stream wait for it, or measure inside "
        "`with torch.cuda.stream(...)`"
    )
    return tuple(s for s in series if s is not spans), (text,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Called:
    """What all passes over a callable brought, whatever it computes."""

    outcome: Outcome
    calls: Calls
    piped: Pipelined | None
    memory: MemoryUse
    counts: Counted
    period: Period

    def findings(self, context: MeasureContext, target: Target) -> Findings:
        """Put together what is the same for every callable; the workload is not."""
        outcome, calls, counts = self.outcome, self.calls, self.counts
        times, odd = on_one_stream(
            latency_samples(target, outcome, calls), counts.kernels_busy_s
        )
        share = calls.enqueue_share(counts, typical_s=outcome.typical_s)
        output = output_of(calls.result)
        period, unhidden = self.period
        return Findings(
            series=(*times, *period),
            workload="",
            counted=counts,
            output=output,
            remarks=(
                *sample_remarks(context, target, calls, times),
                *bound_remarks(share),
                *odd,
                *unhidden,
                *self.memory.remarks,
                *output_remarks(output),
            ),
            enqueue_share=share,
        )


def make_calls(
    context: MeasureContext,
    target: Target,
    call: Callable[[], object],
    *,
    of_a_model: bool = False,
) -> Called:
    """Make all passes: timed, with a full queue, and untimed ones after these.

    Parameters
    ----------
    of_a_model : its memory is of interest, and its use of the GPU
    """
    outcome, calls = run_calls(context, target, call)
    piped = queued(context, outcome, calls)
    memory = context.device.peak_memory(calls.again) if of_a_model else MemoryUse()
    counts = counted(context, outcome, call, of_a_model=of_a_model)
    return Called(
        outcome=outcome,
        calls=calls,
        piped=piped,
        memory=memory,
        counts=counts,
        period=hidden_period(context, target, outcome, counts, call)
        if context.hide_launch
        else (period_samples(target, piped), ()),
    )


def measure_call(
    context: MeasureContext,
    target: Target,
    function: Callable[..., object],
    args: tuple[object, ...],
    kwargs: Mapping[str, object],
) -> tuple[Measurement, object]:
    """Measure any callable; returns the record and what it returned last."""
    made = make_calls(context, target, bound(function, args, kwargs))
    found = replace(
        made.findings(context, target),
        workload=workload_digest("call", *args, **kwargs),
    )
    return assemble(context, target, made.outcome, found), made.calls.result
