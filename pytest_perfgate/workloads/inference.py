"""A model's forward pass under inference mode: one iteration is one call."""

import contextlib
import sys
from collections.abc import Callable
from dataclasses import dataclass

from pytest_perfgate.measure.context import MeasureContext
from pytest_perfgate.measure.device import Pipelined
from pytest_perfgate.measure.runner import Outcome
from pytest_perfgate.measured import Measurement, Samples
from pytest_perfgate.workloads.assembly import (
    Findings,
    assemble,
    counted,
    memory_samples,
    queue_throughput,
    throughput,
    workload_digest,
)
from pytest_perfgate.workloads.call import (
    bound,
    latency_samples,
    on_one_stream,
    period_samples,
    queued,
    run_calls,
    sample_remarks,
)
from pytest_perfgate.workloads.hidden import hidden_period
from pytest_perfgate.workloads.host_bound import bound_remarks
from pytest_perfgate.workloads.outputs import output_of, output_remarks
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
    call = bound(model, inputs, {})
    with inference_mode():
        outcome, calls = run_calls(context, target, call)
        piped = queued(context, outcome, calls)
        memory = context.device.peak_memory(calls.again)
        counts = counted(context, outcome, call, of_a_model=True)
        period, unhidden = (
            hidden_period(context, target, outcome, counts, call)
            if context.hide_launch
            else (period_samples(target, piped), ())
        )
    times, odd = on_one_stream(
        latency_samples(target, outcome, calls), counts.kernels_busy_s
    )
    share = calls.enqueue_share(counts, typical_s=outcome.typical_s)
    output = output_of(calls.result)
    found = Findings(
        series=(
            *times,
            *period,
            *work.throughput(outcome, piped),
            *memory_samples(memory),
        ),
        workload=workload_digest("inference", *inputs),
        batch_size=work.batch_size,
        counted=counts,
        output=output,
        remarks=(
            *sample_remarks(context, target, calls, times),
            *bound_remarks(share),
            *odd,
            *unhidden,
            *memory.remarks,
            *output_remarks(output),
        ),
        enqueue_share=share,
    )
    return assemble(context, target, outcome, found), calls.result
