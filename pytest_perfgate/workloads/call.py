"""Any callable: one iteration is one call."""

import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from pytest_perfgate.errors import UsageError
from pytest_perfgate.measure.context import MeasureContext
from pytest_perfgate.measure.device import Device
from pytest_perfgate.measure.runner import Outcome, Request, drive, recipe, schedule
from pytest_perfgate.model import METRICS, Measurement, Samples
from pytest_perfgate.workloads.assembly import (
    Findings,
    assemble,
    counted,
    samples,
    workload_digest,
)
from pytest_perfgate.workloads.target import Target


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
    device_s: list[float] = field(default_factory=list)
    result: object = None

    def __call__(self, request: Request) -> list[int]:
        self.result = None  # it shall not lie beside the next one
        if request.dropped:
            del self.device_s[-request.dropped :]
        timed = self.device.time_calls(self.call, count=request.count, inner=self.inner)
        self.result = timed.result
        if request.measured and timed.device_ns is not None:
            self.device_s += (span / self.inner / 1e9 for span in timed.device_ns)
        return timed.host_ns

    def again(self) -> object:
        """Call once more, untimed, with no earlier result in memory."""
        self.result = None
        self.result = self.call()
        return self.result


def run_calls(
    context: MeasureContext, target: Target, call: Callable[[], object]
) -> tuple[Outcome, Calls]:
    """Measure a callable without arguments."""
    wanted = recipe(context, target.benchmark)
    calls = Calls(device=context.device, call=call, inner=wanted.inner_loop)
    context.device.begin(target.benchmark, run=context.run, slowdown=context.slowdown)
    return drive(schedule(context.device, wanted), calls), calls


def latency_samples(
    target: Target, outcome: Outcome, calls: Calls
) -> tuple[Samples, ...]:
    """Host latency and, where the device has events, its own span."""
    latency = samples(METRICS["latency"], outcome.seconds, where=target.benchmark)
    if not calls.device_s:
        return (latency,)
    span = samples(METRICS["device_time"], calls.device_s, where=target.benchmark)
    return latency, span


def measure_call(
    context: MeasureContext,
    target: Target,
    function: Callable[..., object],
    args: tuple[object, ...],
    kwargs: Mapping[str, object],
) -> tuple[Measurement, object]:
    """Measure any callable; returns the record and what it returned last."""
    call = bound(function, args, kwargs)
    outcome, calls = run_calls(context, target, call)
    found = Findings(
        series=latency_samples(target, outcome, calls),
        workload=workload_digest("call", *args, **kwargs),
        counted=counted(context, outcome, call),
    )
    return assemble(context, target, outcome, found), calls.result
