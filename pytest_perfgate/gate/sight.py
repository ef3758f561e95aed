"""How small a change a machine lets the gate see, foretold from identical code."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from pytest_perfgate.gate.budgets import DEFAULT_BUDGET
from pytest_perfgate.stats.interval import (
    SPREAD_FLOOR,
    Estimate,
    detectable,
    sample_variance,
)

STORED_RUNS, CANDIDATE_RUNS = 10, 12
"""A session of baselines, and the runs of the last look."""
_TAU_SHARE = 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """Spread between runs, and the smallest slowdown seen 95 % of the time."""

    spread: float
    """Standard deviation of the log."""
    sees: float
    """As a fraction."""


def stored_sight(values: Sequence[float], *, budget: float = DEFAULT_BUDGET) -> Sight:
    """Foretell comparisons with a stored baseline from runs of one session.

    Parameters
    ----------
    values : one statistic a run, two runs or more, all above 0

    Notes
    -----
    One stored session of ten runs against twelve. What two sessions differ by
    cannot be seen in one: a quarter of the spread is taken, as the gate does.
    """
    spread = _spread([math.log(value) for value in values])
    found = Estimate(
        delta=0.0,
        se=spread,
        df=STORED_RUNS + CANDIDATE_RUNS - 2,
        spread=spread,
        baseline_runs=STORED_RUNS,
        candidate_runs=CANDIDATE_RUNS,
        session_variance=2 * (_TAU_SHARE * spread) ** 2,
    )
    return _sight(found, budget)


def paired_sight(
    differences: Sequence[float], *, budget: float = DEFAULT_BUDGET
) -> Sight:
    """Foretell comparisons in pairs from pairs of identical code.

    Parameters
    ----------
    differences : log ratio of each pair's halves, two pairs or more
    """
    spread = _spread(differences)
    found = Estimate(
        delta=0.0,
        se=spread,
        df=CANDIDATE_RUNS - 1,
        spread=spread,
        baseline_runs=CANDIDATE_RUNS,
        candidate_runs=CANDIDATE_RUNS,
        paired=True,
    )
    return _sight(found, budget)


def _spread(logs: Sequence[float]) -> float:
    return max(math.sqrt(sample_variance(logs)), SPREAD_FLOOR)


def _sight(found: Estimate, budget: float) -> Sight:
    sees = detectable(found, theta=math.log1p(budget), runs=CANDIDATE_RUNS)
    return Sight(spread=found.spread, sees=math.expm1(sees))
