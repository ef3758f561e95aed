"""How verdicts complete their sentences."""

import math
from collections.abc import Sequence

from pytest_perfgate.gate.budgets import TAIL_IN_RUN, TAIL_ON_SIDE, samples_for
from pytest_perfgate.model import Comparison, Metric
from pytest_perfgate.units import format_change, format_value


def change_text(metric: Metric, found: Comparison) -> str:
    """Say a change with its bounds, as the values show it, not as "worse"."""
    if found.absolute:
        return (
            f"{_signed(found.ratio, metric)}"
            f" ({_signed(found.low, metric)} to {_signed(found.high, metric)})"
        )
    ratios = (found.ratio, found.low, found.high)
    if metric.better != "lower":
        ratios = (1 / found.ratio, 1 / found.high, 1 / found.low)
    change, low, high = map(format_change, ratios)
    return f"{change} ({low} to {high})"


def _signed(difference: float, metric: Metric) -> str:
    # a difference is oriented: what is worse is above zero
    shown = difference if metric.better == "lower" else -difference
    text = format_value(abs(shown), metric.unit)
    return f"-{text}" if math.copysign(1, shown) < 0 else f"+{text}"


def tail_text(statistic: str, counts: Sequence[int]) -> str:
    """Say how many samples the runs of a side have, and what a tail needs."""
    return (
        f"have {min(counts):,} a run and {sum(counts):,} a side, {statistic.upper()}"
        f" needs {samples_for(statistic, TAIL_IN_RUN):,}"
        f" and {samples_for(statistic, TAIL_ON_SIDE):,}"
    )


def runs_text(needed: int | None) -> str:
    if needed is None:
        return "no number of candidate runs is enough, record more baseline runs"
    return f"needs {needed} runs"
