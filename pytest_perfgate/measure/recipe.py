"""How a benchmark is measured: what is fixed beforehand, and what durations choose."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace

from pytest_perfgate.errors import UsageError
from pytest_perfgate.measure.context import Agreement, MeasureContext, Pair
from pytest_perfgate.measure.flushing import Flush
from pytest_perfgate.measure.warming import MOST
from pytest_perfgate.measured import HOT

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
    lengthens: bool = False
    """Nothing says how many calls an iteration has: more than one where it needs to."""
    fewest: int = FEWEST
    for_p99: int | None = None
    """Iterations that P99 needs; None where nobody wants it."""
    pair: Pair | None = None
    """The other side, where two processes take turns."""
    per_turn: int | None = None
    """Iterations in a turn, where the two have agreed on it."""
    cache: str = HOT
    """What a call is to find in the device's cache."""
    hides: bool = False
    """A full queue is to begin only when all of it is handed over."""

    def single(self, kind: str) -> "Recipe":
        """Insist on what every workload knows: one call an iteration, a hot cache."""
        for asked, said in (
            (self.inner_loop > 1, f"inner_loop={self.inner_loop}"),
            (self.cache != HOT, f"cache={self.cache!r}"),
            (self.hides, "hide_launch=True"),
        ):
            if asked:
                raise UsageError(
                    f"{said} means nothing for {kind}; "
                    "leave it out, it is for plain calls and inference"
                )
        return replace(self, lengthens=False)


def recipe(
    context: MeasureContext, benchmark: str, *, samples_per_iteration: int = 1
) -> Recipe:
    """Choose between the stored plan, what the user says, and finding out."""
    enough = math.ceil(FOR_P99 / samples_per_iteration)
    stored = context.plans.get(benchmark)
    own = context.calibrated.get(benchmark, context.iterations)
    agreed = context.pair.begin(benchmark) if context.pair else None
    inner_loop = _inner_loop(context, benchmark, agreed)
    if agreed is not None:
        return _agreed(context, agreed, inner_loop or 1)
    return Recipe(
        iterations=stored.iterations if stored else own,
        warmup=stored.warmup if stored else context.warmup,
        inner_loop=inner_loop or 1,
        lengthens=inner_loop is None,
        max_time_s=context.max_time_s,
        for_p99=enough if context.wants_p99 else None,
        pair=context.pair,
        cache=context.cache,
        hides=context.hide_launch,
    )


def _inner_loop(
    context: MeasureContext, benchmark: str, agreed: Agreement | None
) -> int | None:
    """Say how many calls an iteration has; None where nothing has settled it."""
    stored = context.plans.get(benchmark)
    if stored is not None:
        return stored.inner_loop
    if agreed is not None and agreed.inner_loop is not None:
        return agreed.inner_loop
    if context.inner_loop is not None:
        return context.inner_loop
    return context.calibrated_inner.get(benchmark)


def _agreed(context: MeasureContext, agreed: Agreement, inner_loop: int) -> Recipe:
    """Measure as the side did that came first."""
    return Recipe(
        iterations=agreed.iterations,
        warmup=agreed.warmup,
        inner_loop=inner_loop,
        max_time_s=context.max_time_s,
        pair=context.pair,
        per_turn=agreed.per_turn,
        cache=context.cache,
        hides=context.hide_launch,
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
        to what P99 needs where that takes no more than three times as long, and
        where an iteration is one call: means of several have no P99.
    """
    typical_s = max(statistics.median(recent), 1) / 1e9
    filling = math.ceil(wanted.max_time_s / typical_s)
    chosen = min(max(filling, wanted.fewest), MOST)
    affordable = P99_PATIENCE * wanted.max_time_s / typical_s
    needed = wanted.for_p99 if wanted.inner_loop == 1 else None
    if needed and chosen < needed <= affordable:
        return needed
    return chosen
