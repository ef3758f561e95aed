"""Where the parts of a small interval plot go; the template draws them.

All plots of a report share one logarithmic scale, so that they can be compared
down the column. Worse is to the right, whatever the metric's direction.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from pytest_perfgate.model import Comparison, Judgement

WIDTH, HEIGHT, MARGIN = 168, 22, 8
_BUDGETS_SHOWN = 3
_LEAST_SPAN = math.log(1.15)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plot:
    """Horizontal positions in pixels; the interval is clipped to the frame."""

    zero: float
    low: float
    high: float
    estimate: float | None
    """None beyond the frame, as is the budget's line."""
    budget: float | None
    more_left: bool
    """The interval goes on beyond the left edge."""
    more_right: bool


def scale(judgements: Iterable[Judgement]) -> float:
    """Choose the half width of all plots, as the log of a ratio.

    Three times the largest budget, so that the lines that matter are well
    inside; what lies farther out is clipped and marked, or one benchmark that
    got ten times slower would squash all others to dots.
    """
    budgets = [math.log1p(one.budget) for one in judgements if one.budget]
    return max([_LEAST_SPAN, *(_BUDGETS_SHOWN * budget for budget in budgets)])


def plot(judgement: Judgement, *, span: float) -> Plot | None:
    """Place one judgement; None where it has no interval in ratios."""
    comparison = judgement.comparison
    if comparison is None or not _has_interval(comparison):
        return None
    low, high = math.log(comparison.low), math.log(comparison.high)
    budget = math.inf if judgement.budget is None else math.log1p(judgement.budget)
    return Plot(
        zero=_position(0, span),
        low=_position(low, span),
        high=_position(high, span),
        estimate=_inside(math.log(comparison.ratio), span),
        budget=_inside(budget, span),
        more_left=low < -span,
        more_right=high > span,
    )


def _has_interval(comparison: Comparison) -> bool:
    bounds = (comparison.low, comparison.ratio, comparison.high)
    positive = all(math.isfinite(bound) and bound > 0 for bound in bounds)
    return positive and not comparison.absolute


def _inside(effect: float, span: float) -> float | None:
    return _position(effect, span) if abs(effect) <= span else None


def _position(effect: float, span: float) -> float:
    clipped = min(max(effect, -span), span)
    return round(WIDTH / 2 + clipped / span * (WIDTH / 2 - MARGIN), 1)
