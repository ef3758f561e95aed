"""Iterations that took far longer than the others of their run, and what is known.

Worked out when all is measured, from what was read at the boundaries of blocks: so
what is known is known of a block, in which the slow iteration is one of many.
"""

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pytest_perfgate.gate.budgets import TAIL_IN_RUN, tail_samples
from pytest_perfgate.measured import SlowIteration, SlowIterations
from pytest_perfgate.units import format_duration

TIMES_P99 = 2
TIMES_MEDIAN = 5
"""Where there are too few iterations for a P99."""
KEPT = 20
DIP = 0.95
"""A clock below this share of the run's highest has dipped."""
WAITED_SHARE = 0.1
"""Waiting for a CPU that may be so much of the iteration is worth telling."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockEvidence:
    """What is known of one measured block besides its times."""

    iterations: int
    collections: int = 0
    """Garbage collections that ran inside, though the collector was off."""
    compilations: int = 0
    retries: int = 0
    """How often the GPU's allocator had to empty its cache to go on."""
    disturbed: str | None = None
    waited_ns: int = 0
    """For a CPU, of the thread that waited longest."""
    pushed: int = 0
    """Involuntary context switches."""
    sm_mhz: float | None = None
    """Read right after the block; None where it was not."""


def slow_iterations(
    seconds: Sequence[float], blocks: Sequence[BlockEvidence], *, inner_loop: int = 1
) -> SlowIterations | None:
    """Find what took longer than twice P99, or five medians where there is no P99.

    Parameters
    ----------
    seconds : an iteration, per call of its inner loop; as they were measured
    blocks : in the same order; their iterations add up to all
    """
    bound, rule = _bound(seconds)
    found = [at for at, value in enumerate(seconds) if value > bound > 0]
    if not found:
        return None
    worst = sorted(found, key=lambda at: (-seconds[at], at))[:KEPT]
    starts = _starts(seconds, inner_loop)
    highest = max((block.sm_mhz or 0.0 for block in blocks), default=0.0)
    return SlowIterations(
        run=0,
        beyond_s=bound,
        rule=rule,
        count=len(found),
        worst=tuple(
            SlowIteration(
                index=at,
                at_s=starts[at],
                value_s=seconds[at],
                known=tuple(_known(_block_of(at, blocks), seconds[at], highest)),
            )
            for at in worst
        ),
    )


def _bound(seconds: Sequence[float]) -> tuple[float, str]:
    if tail_samples("p99", len(seconds)) >= TAIL_IN_RUN:
        p99 = statistics.quantiles(seconds, n=100, method="inclusive")[98]
        return TIMES_P99 * p99, f"{TIMES_P99} × P99"
    median = statistics.median(seconds or (0.0,))
    return TIMES_MEDIAN * median, f"{TIMES_MEDIAN} × median"


def _starts(seconds: Sequence[float], inner_loop: int) -> list[float]:
    starts, total = [], 0.0
    for value in seconds:
        starts.append(total)
        total += value * inner_loop
    return starts


def _block_of(at: int, blocks: Sequence[BlockEvidence]) -> BlockEvidence:
    last = 0
    for block in blocks:
        last += block.iterations
        if at < last:
            return block
    return BlockEvidence(iterations=1)


def _known(block: BlockEvidence, value_s: float, highest: float) -> Iterator[str]:
    for number, noun in (
        (block.collections, "garbage collection"),
        (block.compilations, "compilation"),
        (block.retries, "retry of the allocator"),
    ):
        if number:
            yield _counted(number, noun)
    if block.sm_mhz is not None and block.sm_mhz < DIP * highest:
        yield f"SM clock {block.sm_mhz:.0f} of {highest:.0f} MHz"
    waited_s = block.waited_ns / 1e9
    if waited_s >= WAITED_SHARE * value_s:
        yield f"waited {format_duration(waited_s)} for a CPU"
    elif block.disturbed:
        yield block.disturbed
    elif block.pushed:
        yield _counted(block.pushed, "involuntary context switch")


def _counted(number: int, noun: str) -> str:
    if number == 1:
        return f"1 {noun}"
    plural = {"retry of the allocator": "retries of the allocator"}
    return (
        f"{number:,} {plural.get(noun, noun + ('es' if noun.endswith('ch') else 's'))}"
    )
