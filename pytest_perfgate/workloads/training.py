"""A training step: one iteration is one step, its order fixed.

`zero_grad(set_to_none=True)`, forward (under autocast, if asked), loss,
backward (scaled, if asked), then unscaling, clipping and the optimizer's step
with the scaler's update, together the phase `optimizer`.
"""

import contextlib
import math
import statistics
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pytest_perfgate.errors import BadSample, UsageError
from pytest_perfgate.measure.context import MeasureContext
from pytest_perfgate.measure.device import Device
from pytest_perfgate.measure.recipe import recipe
from pytest_perfgate.measure.runner import Outcome, drive, schedule
from pytest_perfgate.measure.settling import Inner, Request
from pytest_perfgate.measured import METRICS, Measurement, Metric, Samples
from pytest_perfgate.workloads.assembly import (
    Findings,
    assemble,
    counted,
    memory_samples,
    samples,
    throughput,
    workload_digest,
)
from pytest_perfgate.workloads.host_bound import bound_remarks, enqueue_share
from pytest_perfgate.workloads.loading import Job, Loader, Loading, measure_loading
from pytest_perfgate.workloads.target import Target

LEFT_OVER, LEFT_OVER_S = 0.02, 50e-6
"""What phases may leave over of a step: a share of it, or what waiting costs."""
STILL_STEPS = 10
"""Steps in a row that leave a loss scale as it is, before it is measured."""
PHASES = ("zero_grad", "forward", "loss", "backward", "optimizer")


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What a step is made of; torch's own objects, used but not imported."""

    model: Any
    optimizer: Any
    loss_fn: Callable[..., Any]
    batch: Any
    """A pair (inputs, target); or a mapping or a tensor without target. Inputs
    that are a tuple or list are positional arguments, a mapping is keywords."""
    autocast: Any = None
    scaler: Any = None
    clip: float | None = None

    def __post_init__(self) -> None:
        if isinstance(self.batch, tuple | list) and len(self.batch) != 2:
            raise UsageError(
                f"training_step: batch has {len(self.batch)} parts; "
                "give a pair (inputs, target), or a mapping for model(**batch)"
            )

    @property
    def inputs(self) -> tuple[tuple[Any, ...], Mapping[str, Any]]:
        paired = isinstance(self.batch, tuple | list)
        inputs = self.batch[0] if paired else self.batch
        if isinstance(inputs, Mapping):
            return (), inputs
        return (tuple(inputs) if isinstance(inputs, tuple | list) else (inputs,)), {}

    @property
    def targets(self) -> tuple[Any, ...]:
        return (self.batch[1],) if isinstance(self.batch, tuple | list) else ()

    def device_type(self) -> str:
        parameter = next(iter(self.model.parameters()), None)
        return "cpu" if parameter is None else str(parameter.device.type)

    def autocasting(self) -> Callable[[], contextlib.AbstractContextManager[Any]]:
        if self.autocast is None:
            return contextlib.nullcontext
        torch, kind = sys.modules["torch"], self.device_type()
        return lambda: torch.autocast(device_type=kind, dtype=self.autocast)


def run_step(step: Step, boundary: Callable[[str], None]) -> Any:  # noqa: ANN401 (a loss tensor)
    """Make one step and return its loss; `boundary` is called after each phase."""
    args, kwargs = step.inputs
    step.optimizer.zero_grad(set_to_none=True)
    boundary("zero_grad")
    with step.autocasting()():
        output = step.model(*args, **kwargs)
        boundary("forward")
        loss = step.loss_fn(output, *step.targets)
        boundary("loss")
    (loss if step.scaler is None else step.scaler.scale(loss)).backward()
    boundary("backward")
    _optimize(step)
    boundary("optimizer")
    return loss.detach()


def _optimize(step: Step) -> None:
    if step.clip is not None:
        if step.scaler is not None:
            step.scaler.unscale_(step.optimizer)
        clip = sys.modules["torch"].nn.utils.clip_grad_norm_
        clip(step.model.parameters(), step.clip)
    if step.scaler is None:
        step.optimizer.step()
    else:
        step.scaler.step(step.optimizer)
        step.scaler.update()


def check_loss(loss: Any, *, where: str) -> None:  # noqa: ANN401 (a tensor)
    """Refuse a step that trains nothing.

    Raises
    ------
    BadSample
        The loss is NaN or infinite.
    """
    value = float(loss)
    if not math.isfinite(value):
        raise BadSample(
            f"{where}: the loss is {value} at the end; a step that diverged does "
            "other work than one that trains: lower the learning rate, or look "
            "for the error in the code under test"
        )


@dataclass(slots=True, kw_only=True)
class Steps:
    """Performs iterations by stepping, and collects the phases."""

    device: Device
    step: Step
    phases_s: dict[str, list[float]] = field(
        default_factory=lambda: {phase: [] for phase in PHASES}
    )
    loss: Any = None
    unaccounted_s: list[float] = field(default_factory=list)
    """Of each step, what its phases leave over."""
    enqueued: list[float] = field(default_factory=list)
    """The share of each step after which all work was handed over."""
    _marks: list[object] = field(default_factory=list)

    def __call__(self, request: Request) -> list[int]:
        if request.dropped:
            for spans in self.phases_s.values():
                del spans[-request.dropped :]
            del self.unaccounted_s[-request.dropped :]
            del self.enqueued[-request.dropped :]
        self.device.synchronize()
        return [self.once(measured=request.measured) for _ in range(request.count)]

    def once(self, *, measured: bool) -> int:
        """Make a step and wait for its work, once; returns nanoseconds.

        Nothing else may be under way when it begins.
        """
        device = self.device
        boundary = self._stretched if device.stretches else self._boundary
        started = device.now_ns()
        self._marks = [device.mark()]
        self.loss = run_step(self.step, boundary)
        handed = device.now_ns() - started
        device.synchronize()
        duration = device.now_ns() - started
        if measured:
            self._file(duration)
            if not device.stretches:  # a planted slowdown waits in between
                self.enqueued.append(handed / max(duration, 1))
        return duration

    def _boundary(self, phase: str) -> None:
        del phase
        self._marks.append(self.device.mark())

    def _stretched(self, phase: str) -> None:
        """Slow a phase down; on a GPU the device must have caught up first."""
        self.device.synchronize()
        own_s = self.device.span_s(self._marks[-1], self._now())
        self.device.stretch(int(own_s * 1e9), f"phase:{phase}")
        self._boundary(phase)

    def _now(self) -> object:
        mark = self.device.mark()
        self.device.synchronize()
        return mark

    def _file(self, duration_ns: int) -> None:
        spans = zip(PHASES, self._marks, self._marks[1:], strict=False)
        for phase, first, second in spans:
            self.phases_s[phase].append(self.device.span_s(first, second))
        phases_s = self.device.span_s(self._marks[0], self._marks[-1])
        self.unaccounted_s.append(duration_ns / 1e9 - phases_s)


def measure_training(
    context: MeasureContext,
    target: Target,
    step: Step,
    *,
    batch_size: int | None,
    loader: Loader | None = None,
) -> tuple[Measurement, Any]:
    """Measure a training step; returns the record and the last loss.

    Parameters
    ----------
    batch_size : items in the batch, and in each of the loader's
    loader : brings batches for the share of data loading, once all is timed
    """
    device = context.device
    steps = Steps(device=device, step=step)
    wanted = recipe(context, target.benchmark).single("a training step")
    device.begin(target.benchmark, run=context.run, slowdown=context.slowdown)
    scale = _Scale(step.scaler)
    outcome = drive(
        schedule(device, wanted, inner=scale.inner()), scale.watching(steps)
    )
    check_loss(steps.loss, where=target.benchmark)

    def again() -> object:
        return run_step(step, lambda _: None)

    memory = device.peak_memory(again)
    counts = counted(context, outcome, again, of_a_model=True)
    loading = _loading(
        context, target, step, outcome, batch_size=batch_size, loader=loader
    )
    phases, odd = _phases(target, outcome, steps)
    share = enqueue_share(
        steps.enqueued, counts, typical_s=outcome.typical_s, fake=False
    )
    found = Findings(
        series=(
            samples(METRICS["step_time"], outcome.seconds, where=target.benchmark),
            *phases,
            *_throughput(outcome, batch_size),
            *memory_samples(memory),
            *loading.series,
        ),
        workload=workload_digest("training_step", step.batch),
        batch_size=batch_size,
        remarks=(
            *odd,
            *bound_remarks(share),
            *scale.remarks(),
            *memory.remarks,
            *loading.remarks,
        ),
        counted=counts,
        enqueue_share=share,
    )
    return assemble(context, target, outcome, found), steps.loss


def _loading(
    context: MeasureContext,
    target: Target,
    step: Step,
    outcome: Outcome,
    *,
    batch_size: int | None,
    loader: Loader | None,
) -> Loading:
    """Measure what loading adds to the step, if there is something to load from."""
    if loader is None:
        return Loading()
    steps = Steps(device=context.device, step=step)

    def train(batch: object) -> int:
        steps.step = _on(step, batch)
        return steps.once(measured=False)

    job = Job(
        batch=step.batch,
        batch_size=batch_size,
        train=train,
        step_s=statistics.fmean(outcome.seconds),
        most=outcome.iterations,
    )
    scale = _Scale(step.scaler)
    before = scale.now()
    found = measure_loading(context, target.benchmark, loader, job)
    if steps.loss is not None:
        check_loss(steps.loss, where=f"{target.benchmark}, on the loader's batches")
    after = scale.now()
    if after == before:
        return found
    text = (
        f"loss scale moved on the loader's batches: {before} → {after}; a step that was "
        "skipped is shorter"
    )
    return replace(found, remarks=(*found.remarks, text))


def _on(step: Step, batch: object) -> Step:
    try:
        return replace(step, batch=batch)
    except UsageError as error:
        raise UsageError(f"the loader brings what is no batch: {error}") from error


def _phases(
    target: Target, outcome: Outcome, steps: Steps
) -> tuple[tuple[Samples, ...], tuple[str, ...]]:
    """Give the phases, if together they are the step.

    Events see the stream that they are recorded on. Where work goes on elsewhere
    after the last of them, the phases say less than they seem to; where they take
    longer than the step, the device's clock is not that of the host.
    """
    over_s = statistics.median(steps.unaccounted_s)
    if abs(over_s) > max(LEFT_OVER * outcome.typical_s, LEFT_OVER_S):
        share = f"{abs(over_s) / outcome.typical_s:.0%}"
        text = (
            f"no phases: they leave {share} of the step over; part of the work is on "
            "another stream"
            if over_s > 0
            else f"no phases: together they take {share} more than the step, by the "
            "device's own clock"
        )
        return (), (text,)
    on_device = steps.device.name.startswith("cuda")
    definition = "event-span/1" if on_device else "host-wall/1"
    return tuple(
        samples(
            Metric(name=f"phase:{phase}", unit="s", definition=definition),
            values,
            where=target.benchmark,
        )
        for phase, values in steps.phases_s.items()
    ), ()


def _throughput(outcome: Outcome, batch_size: int | None) -> tuple[Samples, ...]:
    if batch_size is None:
        return ()
    return throughput(
        outcome,
        work_per_iteration=batch_size,
        unit="items",
        wall_ns=sum(outcome.host_ns),
    )


class _Scale:
    """Notices a loss scale that moves while we measure: such steps are skipped."""

    def __init__(self, scaler: Any) -> None:  # noqa: ANN401 (torch's)
        self._scaler = scaler
        self._seen: list[float | None] = []

    def now(self) -> float | None:
        """Read the scale; that waits for the GPU, so never within a step."""
        return None if self._scaler is None else float(self._scaler.get_scale())

    def inner(self) -> Inner | None:
        """Have the warm-up wait for it, and blocks in which it moved made again."""
        if self._scaler is None:
            return None
        return Inner(what="the loss scale", state=self.now, calls=STILL_STEPS)

    def watching(self, steps: Steps) -> Callable[[Request], list[int]]:
        if self._scaler is None:
            return steps

        def perform(request: Request) -> list[int]:
            if request.dropped:
                self._seen.pop()
            times = steps(request)
            if request.measured:
                self._seen.append(self.now())
            return times

        return perform

    def remarks(self) -> tuple[str, ...]:
        seen = sorted({scale for scale in self._seen if scale is not None})
        return (f"loss scale moved while measuring: {seen}",) if len(seen) > 1 else ()
