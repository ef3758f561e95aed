"""Does what was flagged hold in fresh runs, made for nothing else."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pytest_perfgate.gate.bounds import (
    Bar,
    bar_of,
    is_confirmed,
    is_confirmed_alone,
    is_within,
)
from pytest_perfgate.gate.budgets import Budget
from pytest_perfgate.gate.evidence import (
    Numbers,
    Sides,
    collect,
    comparison,
    estimate,
    scale_of,
)
from pytest_perfgate.gate.looks import Look
from pytest_perfgate.gate.policy import Gate
from pytest_perfgate.gate.readings import (
    Reading,
    State,
    inconclusive,
)
from pytest_perfgate.model import Outcome, Reason, RunSummary, Verdict
from pytest_perfgate.stats.interval import Estimate
from pytest_perfgate.units import format_change

FRESH_RUNS = 5
"""Runs, or pairs, that a confirmation is made of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FreshPairs:
    """Fresh runs of base and candidate, made in alternation, pair by pair."""

    baseline: tuple[RunSummary, ...]
    candidate: tuple[RunSummary, ...]

    def __post_init__(self) -> None:
        if len(self.baseline) != len(self.candidate):
            raise ValueError(
                f"FreshPairs: {len(self.baseline)} baseline and"
                f" {len(self.candidate)} candidate runs are not pairs"
            )


Confirmation = Sequence[RunSummary] | FreshPairs
"""Fresh candidate runs alone, or with runs of the base code."""


def confirm(
    reading: Reading, sides: Sides, *, confirmation: Confirmation, look: Look
) -> Reading:
    """Settle what was flagged, or suspect, by fresh data alone.

    With base code: the fresh estimate is beyond the budget and p0 is below
    min(0.01, 2.5/M); a suspect must besides lie beyond it with 98 %. Without:
    beyond it with 95 % and p0 below 0.01 with four stored sessions or more,
    below 0.01/(M·K) with fewer, where one baseline carries all. A suspect and
    a floor are never confirmed without base code.
    """
    gate = reading.gate
    if gate is None:
        # a limit is read from what is, not from what changed
        return reading
    if isinstance(confirmation, FreshPairs):
        if reading.state is not State.FLAGGED and not reading.suspect:
            return reading
        fresh = Sides(
            baseline=(confirmation.baseline,), candidate=confirmation.candidate
        )
        return _with_base(reading, gate, fresh, look)
    if reading.state is not State.FLAGGED or reading.witness:
        return reading
    fresh = replace(sides, candidate=tuple(confirmation))
    return _without_base(reading, gate, fresh, look)


def _with_base(reading: Reading, gate: Gate, fresh: Sides, look: Look) -> Reading:
    paired = replace(look, paired=True, last=True)
    weighed = _estimate(reading, gate, fresh, paired)
    if isinstance(weighed, Verdict):
        return reading.with_verdict(weighed, State.SETTLED)
    found, bar, reading = weighed
    if is_confirmed(found, bar, look, suspect=reading.suspect):
        return _settle(reading, Outcome.REGRESSED, Reason.CONFIRMED)
    if is_within(found, bar, paired):
        stale = replace(
            reading.judgement,
            remarks=(
                *reading.judgement.remarks,
                "baseline-stale: side by side with its base nothing changed",
            ),
        )
        return _settle(
            replace(reading, judgement=stale),
            Outcome.UNCHANGED,
            Reason.WITHIN_BUDGET,
        )
    return _settle(reading, Outcome.INCONCLUSIVE, Reason.UNCONFIRMED)


def _without_base(reading: Reading, gate: Gate, fresh: Sides, look: Look) -> Reading:
    weighed = _estimate(reading, gate, fresh, replace(look, paired=False, last=True))
    if isinstance(weighed, Verdict):
        return reading.with_verdict(weighed, State.SETTLED)
    found, bar, reading = weighed
    if is_confirmed_alone(found, bar, look, sessions=len(fresh.baseline)):
        return _settle(reading, Outcome.REGRESSED, Reason.CONFIRMED_WITHOUT_BASE)
    return _settle(reading, Outcome.INCONCLUSIVE, Reason.UNCONFIRMED)


def _settle(reading: Reading, outcome: Outcome, reason: Reason) -> Reading:
    return reading.with_verdict(Verdict(outcome=outcome, reason=reason), State.SETTLED)


def _estimate(
    reading: Reading, gate: Gate, fresh: Sides, look: Look
) -> tuple[Estimate, Bar, Reading] | Verdict:
    """Estimate from the fresh runs, which the judgement then shows."""
    metric = reading.judgement.metric
    numbers = collect(fresh, metric, gate.statistic)
    unfit = _unfit(numbers, gate.budget, fresh)
    if unfit is not None:
        return unfit
    scale, bar = scale_of(metric, gate.budget), bar_of(gate.budget)
    found = estimate(numbers, scale, look)
    judgement = replace(
        reading.judgement,
        comparison=comparison(scale, found, bar=bar, look=look),
        remarks=(*reading.judgement.remarks, *_screened(reading)),
    )
    return found, bar, replace(reading, judgement=judgement, estimate=found)


def _screened(reading: Reading) -> tuple[str, ...]:
    """Keep the screening's figure: it was selected, so the fresh one is shown."""
    shown = reading.judgement.comparison
    if shown is None or shown.absolute:
        return ()
    return (f"{format_change(shown.ratio)} worse when screened",)


def _unfit(numbers: Numbers, budget: Budget, fresh: Sides) -> Verdict | None:
    name = numbers.metric.name
    values = (*numbers.base_values, *numbers.values)
    if not numbers.baseline or len(numbers.values) < len(fresh.candidate):
        return Verdict(
            outcome=Outcome.ERROR,
            reason=Reason.METRIC_ABSENT,
            detail=f"{name} in some of the fresh runs",
        )
    if len(numbers.values) < FRESH_RUNS:
        detail = f"{len(numbers.values)} fresh runs, needs {FRESH_RUNS}"
        return inconclusive(Reason.UNCONFIRMED, detail)
    if not budget.absolute and min(values) <= 0:
        return Verdict(
            outcome=Outcome.ERROR,
            reason=Reason.NOT_A_NUMBER,
            detail=f"{name} is {min(values):g} in a fresh run",
        )
    return None
