"""A model's forward pass under inference mode: one iteration is one call."""

import contextlib
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace

from pytest_perfgate.measure.context import MeasureContext
from pytest_perfgate.measure.device import Pipelined
from pytest_perfgate.measure.runner import Outcome
from pytest_perfgate.measured import Measurement, Samples
from pytest_perfgate.workloads.assembly import (
    assemble,
    memory_samples,
    queue_throughput,
    throughput,
    workload_digest,
)
from pytest_perfgate.workloads.call import bound, make_calls
from pytest_perfgate.workloads.target import Target


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What one iteration gets done; tokens win where both are known."""

    batch_size: int | None = None
    tokens: int | None = None

    def throughput(
        self, outcome: Outcome, piped: Pipelined | None
    ) -> tuple[Samples, ...]:
        """Divide by the time of a full queue where there is one, else of the blocks."""
        unit = "items" if self.tokens is None else "tokens"
        work = self.batch_size if self.tokens is None else self.tokens
        if work is None:
            return ()
        if piped is None:
            return throughput(outcome, work_per_iteration=work, unit=unit)
        rate = work * len(piped.period_ns) / (piped.wall_ns / 1e9)
        return queue_throughput(rate, unit=unit)


def inference_mode() -> contextlib.AbstractContextManager[object]:
    """Enter torch's inference mode, if there can be a torch model at all."""
    torch = sys.modules.get("torch")
    if torch is None:
        return contextlib.nullcontext()
    mode: contextlib.AbstractContextManager[object] = torch.inference_mode()
    return mode


def measure_inference(
    context: MeasureContext,
    target: Target,
    model: Callable[..., object],
    inputs: tuple[object, ...],
    work: Work,
) -> tuple[Measurement, object]:
    """Measure latency, then (untimed) memory; returns the last output, too."""
    with inference_mode():
        made = make_calls(context, target, bound(model, inputs, {}), of_a_model=True)
    found = made.findings(context, target)
    found = replace(
        found,
        series=(
            *found.series,
            *work.throughput(made.outcome, made.piped),
            *memory_samples(made.memory),
        ),
        workload=workload_digest("inference", *inputs),
        batch_size=work.batch_size,
    )
    return assemble(context, target, made.outcome, found), made.calls.result
