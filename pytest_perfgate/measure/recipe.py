"""How a benchmark is measured: what is fixed beforehand, and what durations choose."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from pytest_perfgate.errors import UsageError
from pytest_perfgate.measure.context import Agreement, MeasureContext, Pair
from pytest_perfgate.measure.flushing import Flush
from pytest_perfgate.measure.warming import MOST
from pytest_perfgate.model import HOT, Plan

BLOCK_S = 0.25
TURN_S = 0.02
"""A block where blocks of two sides take turns."""
FEWEST_TURNS = 16
"""Of a side in a run: what is compared is the median over neighbouring turns."""
FEWEST = 10
"""Iterations that calibration chooses between."""
FOR_P99 = 334
"""Iterations a run with which three runs have the ten tail samples P99 needs."""
P99_PATIENCE = 3.0
"""Times the wanted duration that may be spent on having enough for P99."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """What is fixed beforehand; None is found out."""

    iterations: int | None
    warmup: int | None
    inner_loop: int
    max_time_s: float
    fewest: int = FEWEST
    for_p99: int | None = None
    """Iterations that P99 needs; None where nobody wants it."""
    pair: Pair | None = None
    """The other side, where two processes take turns."""
    per_turn: int | None = None
    """Iterations in a turn, where the two have agreed on it."""
    cache: str = HOT
    """What a call is to find in the device's cache."""

    def single(self, kind: str) -> "Recipe":
        """Insist on what every workload knows: one call an iteration, a hot cache."""
        for asked, said in (
            (self.inner_loop > 1, f"inner_loop={self.inner_loop}"),
            (self.cache != HOT, f"cache={self.cache!r}"),
        ):
            if asked:
                raise UsageError(
                    f"{said} means nothing for {kind}; "
                    "leave it out, it is for plain calls and inference"
                )
        return self


def recipe(
    context: MeasureContext, benchmark: str, *, samples_per_iteration: int = 1
) -> Recipe:
    """Choose between the stored plan, what the user says, and finding out."""
    enough = math.ceil(FOR_P99 / samples_per_iteration)
    stored = context.plans.get(benchmark)
    own = context.calibrated.get(benchmark, context.iterations)
    if context.pair is not None:
        agreed = context.pair.begin(benchmark)
        if agreed is not None:
            return _agreed(context, context.pair, agreed, stored)
    return Recipe(
        iterations=stored.iterations if stored else own,
        warmup=stored.warmup if stored else context.warmup,
        inner_loop=stored.inner_loop if stored else context.inner_loop,
        max_time_s=context.max_time_s,
        for_p99=enough if context.wants_p99 else None,
        pair=context.pair,
        cache=context.cache,
    )


def _agreed(
    context: MeasureContext, pair: Pair, agreed: Agreement, stored: Plan | None
) -> Recipe:
    """Measure as the side did that came first."""
    return Recipe(
        iterations=agreed.iterations,
        warmup=agreed.warmup,
        inner_loop=stored.inner_loop if stored else context.inner_loop,
        max_time_s=context.max_time_s,
        pair=pair,
        per_turn=agreed.per_turn,
        cache=context.cache,
    )


def turn_of(iterations: int, each_s: float) -> int:
    """Count the iterations of a turn: about 20 ms, and turns enough to compare."""
    fitting = max(1, round(TURN_S / each_s))
    return max(1, min(fitting, math.ceil(iterations / FEWEST_TURNS)))


def block_of(recent: Sequence[int], flush: Flush | None = None) -> int:
    """Count the iterations that fill a block."""
    return min(max(1, round(BLOCK_S * 1e9 / each_ns(recent, flush))), MOST)


def each_ns(recent: Sequence[int], flush: Flush | None) -> float:
    """Say how soon one iteration follows another: its own time, and a flush's."""
    own = max(statistics.median(recent), 1)
    return own if flush is None else own + flush.typical_ns


def calibrate(recent: Sequence[int], wanted: Recipe) -> int:
    """Choose the number of iterations from recent durations.

    Parameters
    ----------
    recent : nanoseconds of whole iterations, at least one

    Returns
    -------
    int
        As many as fill the wanted time, between ten and five thousand; raised
        to what P99 needs where that takes no more than three times as long.
    """
    typical_s = max(statistics.median(recent), 1) / 1e9
    filling = math.ceil(wanted.max_time_s / typical_s)
    chosen = min(max(filling, wanted.fewest), MOST)
    affordable = P99_PATIENCE * wanted.max_time_s / typical_s
    if wanted.for_p99 and chosen < wanted.for_p99 <= affordable:
        return wanted.for_p99
    return chosen
