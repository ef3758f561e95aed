"""The decision rule as comparisons of bounds with bars, and nothing else.

Each function holds for one estimate and for arrays of them alike, which is how
the rule's error rates are measured on millions of comparisons: hence `&` where
Python would say `and`.
"""

import math
from dataclasses import dataclass
from functools import lru_cache

from pytest_perfgate.gate.budgets import Budget
from pytest_perfgate.gate.looks import PLANNED, Look
from pytest_perfgate.stats.interval import Estimate, half_width

_SUSPECT_P = 0.001
_LUCK = 0.001

_FRESH_LEVEL = 0.05
_FRESH_SUSPECT_LEVEL = 0.02
_FRESH_P = 0.01
_FRESH_FAMILY = 2.5
_SESSIONS = 4

_FUTILE = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """How far is too far: θ, and twice the budget, on the scale of effects."""

    theta: float
    double: float


@lru_cache(maxsize=256)
def bar_of(budget: Budget) -> Bar:
    if budget.absolute:
        return Bar(theta=budget.value, double=2 * budget.value)
    return Bar(theta=math.log1p(budget.value), double=math.log1p(2 * budget.value))


def is_over(found: Estimate, bar: Bar, look: Look) -> bool:
    """Tell whether the data put the effect beyond the budget, and not by chance."""
    return (found.lower(look.red) > bar.theta) & (found.p_worse < look.identity)


def is_within(found: Estimate, bar: Bar, look: Look) -> bool:
    """Tell whether the data keep the effect within the budget.

    The second bound is against luck on very noisy data: nobody may be told
    `unchanged` who is off by twice the budget.
    """
    within = found.upper(look.green) < bar.theta
    return within & (found.upper(_LUCK / PLANNED) < bar.double)


def is_faster(found: Estimate, look: Look) -> bool:
    """Tell whether the effect is a gain, and not by chance."""
    return (found.upper(look.green) < 0) & (found.p_better < look.identity)


def is_suspect(found: Estimate, bar: Bar, look: Look) -> bool:
    """Tell whether what the last look leaves open looks like a regression."""
    return look.last & (found.delta > bar.theta) & (found.p_worse < _SUSPECT_P)


def is_far_beyond(found: Estimate, bar: Bar, look: Look) -> bool:
    """Tell whether the whole interval lies beyond twice the budget, either way."""
    slower = found.lower(look.red) > bar.double
    return slower | (found.upper(look.green) < -bar.double)


def is_futile(found: Estimate, bar: Bar, look: Look) -> bool:
    """Tell whether twice the planned runs would not tell identical code."""
    alpha, runs = look.at_last.green, _FUTILE * look.final_runs
    return half_width(found, alpha=alpha, runs=runs, sessions=False) >= bar.theta


def fresh_level(comparisons: int) -> float:
    """Give how small the p-value of fresh pairs must be among so many comparisons."""
    return min(_FRESH_P, _FRESH_FAMILY / comparisons)


def is_confirmed(found: Estimate, bar: Bar, look: Look, *, suspect: bool) -> bool:
    """Tell whether fresh pairs of base and candidate bear out what was flagged."""
    enough = fresh_level(look.comparisons)
    confirmed = (found.delta > bar.theta) & (found.p_worse < enough)
    if suspect:
        confirmed &= found.lower(_FRESH_SUSPECT_LEVEL) > bar.theta
    return confirmed


def is_confirmed_alone(found: Estimate, bar: Bar, look: Look, *, sessions: int) -> bool:
    """Tell whether fresh candidate runs do, held against so many stored sessions."""
    enough = _FRESH_P
    if sessions < _SESSIONS:
        enough /= look.comparisons * PLANNED
    return (found.lower(_FRESH_LEVEL) > bar.theta) & (found.p_worse < enough)
