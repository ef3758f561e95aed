"""Statistics that are shown and not judged, each with the reason where there is one."""

import math
from collections.abc import Iterator

from pytest_perfgate.gate.bounds import bar_of
from pytest_perfgate.gate.budgets import (
    DEFAULT_BUDGET,
    TAIL_IN_RUN,
    TAIL_ON_SIDE,
    Budget,
    is_share_of_time,
    main_statistic,
    tail_samples,
)
from pytest_perfgate.gate.evidence import (
    Numbers,
    Sides,
    collect,
    comparison,
    estimate,
    scale_of,
    stored_detectable,
)
from pytest_perfgate.gate.exact import deterministic, exact_comparison
from pytest_perfgate.gate.looks import Look
from pytest_perfgate.gate.policy import Gate
from pytest_perfgate.gate.readings import Reading, State
from pytest_perfgate.gate.wording import tail_text
from pytest_perfgate.measured import Metric
from pytest_perfgate.model import Comparison, Judgement, Outcome, Reason, Verdict
from pytest_perfgate.stats.interval import detectable
from pytest_perfgate.units import format_fraction

_HOPELESS = 2
_SHOWN = Verdict(outcome=Outcome.SKIPPED, reason=Reason.NOT_GATED)
_AS_RATIO = Budget(value=DEFAULT_BUDGET)
_AS_DIFFERENCE = Budget(value=DEFAULT_BUDGET, absolute=True)


def shown(
    metric: Metric,
    statistic: str | None,
    sides: Sides,
    look: Look,
    *,
    remarks: tuple[str, ...] = (),
) -> Iterator[Reading]:
    """Show a statistic, None for the metric's main one, where both sides have it."""
    statistic = statistic or main_statistic(metric)
    numbers = collect(sides, metric, statistic)
    if not numbers.baseline or len(numbers.values) < len(sides.candidate):
        return
    judgement = Judgement(
        metric=metric,
        statistic=statistic,
        verdict=_SHOWN,
        gated=False,
        comparison=_comparison(numbers, look),
        remarks=remarks,
    )
    yield Reading(judgement=judgement, state=State.SETTLED)


def _comparison(numbers: Numbers, look: Look) -> Comparison | None:
    if deterministic(numbers):
        return exact_comparison(numbers)
    base, now = numbers.base_values, numbers.values
    plain = is_share_of_time(numbers.metric)
    if min(len(base), len(now)) < 2 or (min(*base, *now) <= 0 and not plain):
        return None
    scale = scale_of(numbers.metric, _AS_DIFFERENCE if plain else _AS_RATIO)
    found = estimate(numbers, scale, look)
    return comparison(scale, found, bar=None, look=look)


def tail_or_why_not(metric: Metric, gate: Gate, sides: Sides, look: Look) -> str | None:
    """Say why a tail that nobody asked for is not gated; None where it is.

    The baseline decides, so that it is the same in every session: its plan
    must give enough samples, and its own spread let the gate see a change of
    twice the budget.
    """
    name = gate.statistic.upper()
    if metric.of_rounds:
        return f"{name} is one of rounds, and not gated unless a budget names it"
    counts, _ = sides.samples(metric.name)
    few = (
        tail_samples(gate.statistic, min(counts)) < TAIL_IN_RUN
        or tail_samples(gate.statistic, sum(counts)) < TAIL_ON_SIDE
    )
    if few:
        return f"{name} is not gated: {tail_text(gate.statistic, counts)}"
    numbers = collect(sides, metric, gate.statistic)
    if not numbers.baseline:
        return f"{name} is not gated: a sample is the mean of several calls"
    if look.paired:
        seen = _paired_detectable(numbers, gate, look)
    else:
        seen = stored_detectable(numbers, gate.budget, look)
    if seen is None or seen <= _HOPELESS * gate.budget.value:
        return None
    return (
        f"{name} is not gated: the {'pairs let' if look.paired else 'baseline lets'}"
        f" {look.final_runs} {'pairs' if look.paired else 'runs'} see no less than"
        f" {format_fraction(seen)}, beyond twice the budget"
    )


def _paired_detectable(numbers: Numbers, gate: Gate, look: Look) -> float | None:
    """Say how small a change of a tail the pairs can see; their spread decides.

    The spread says nothing of the change itself, so that what is gated does not
    depend on what comes out.
    """
    values = (*numbers.base_values, *numbers.values)
    unlike = len(numbers.base_values) != len(numbers.values)
    if gate.budget.absolute or unlike or len(numbers.values) < 2 or min(values) <= 0:
        return None
    found = estimate(numbers, scale_of(numbers.metric, gate.budget), look)
    theta = bar_of(gate.budget).theta
    return math.expm1(detectable(found, theta=theta, runs=look.final_runs))
