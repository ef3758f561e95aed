"""The numbers that two sides of runs hold of one statistic, and their estimate."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice

from pytest_perfgate.gate.budgets import Budget
from pytest_perfgate.gate.looks import Look
from pytest_perfgate.model import Better, Comparison, Metric, RunStatistic, RunSummary
from pytest_perfgate.stats.interval import (
    SPREAD_FLOOR,
    Estimate,
    detectable,
    pairs,
    sample_mean,
    two_samples,
)

Runs = tuple[RunSummary, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sides:
    """The runs that are compared: baseline runs by session, candidate runs."""

    baseline: tuple[Runs, ...]
    candidate: Runs

    @property
    def base_runs(self) -> Runs:
        return tuple(chain.from_iterable(self.baseline))


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbers:
    """One statistic of a metric in every run of both sides."""

    metric: Metric
    baseline: tuple[tuple[RunStatistic, ...], ...]
    """By session; sessions that do not have the statistic are left out."""
    candidate: tuple[RunStatistic, ...]
    base_values: tuple[float, ...]
    values: tuple[float, ...]
    sessions_left_out: int = 0


def collect(sides: Sides, metric: Metric, statistic: str) -> Numbers:
    """Collect a statistic; a candidate run without it simply contributes none."""
    columns = [
        [run.get(metric.name, statistic) for run in session]
        for session in sides.baseline
    ]
    complete = [
        tuple(one for one in column if one is not None)
        for column in columns
        if all(one is not None for one in column)
    ]
    column = [run.get(metric.name, statistic) for run in sides.candidate]
    found = tuple(one for one in column if one is not None)
    return Numbers(
        metric=metric,
        baseline=tuple(complete),
        candidate=found,
        base_values=tuple(one.value for one in chain.from_iterable(complete)),
        values=tuple(one.value for one in found),
        sessions_left_out=len(columns) - len(complete),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """How values become numbers of which bigger is worse, and back."""

    better: Better
    absolute: bool

    @property
    def _sign(self) -> float:
        return 1.0 if self.better is Better.LOWER else -1.0

    def to(self, values: Iterable[float]) -> list[float]:
        sign = self._sign
        if self.absolute:
            return [sign * value for value in values]
        return [sign * math.log(value) for value in values]

    def back(self, number: float) -> float:
        number *= self._sign
        return number if self.absolute else math.exp(number)

    def effect(self, delta: float) -> float:
        """Turn an effect into a ratio, or leave it a difference."""
        return delta if self.absolute else math.exp(delta)

    def variances(self, runs: Iterable[RunStatistic]) -> list[float]:
        """Give the variance of each run's number within its run."""
        if self.absolute:
            return [one.se**2 for one in runs]
        return [(one.se / one.value) ** 2 for one in runs]


def scale_of(metric: Metric, budget: Budget) -> Scale:
    return Scale(better=metric.better, absolute=budget.absolute)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """How far is too far: θ, and twice the budget, on the scale of effects."""

    theta: float
    double: float


def bar_of(budget: Budget) -> Bar:
    if budget.absolute:
        return Bar(theta=budget.value, double=2 * budget.value)
    return Bar(theta=math.log1p(budget.value), double=math.log1p(2 * budget.value))


def estimate(numbers: Numbers, scale: Scale, look: Look) -> Estimate:
    """Estimate the effect from at least two runs a side.

    Where the scale is relative all values must be positive.
    """
    flat = scale.to(numbers.base_values)
    candidate = scale.to(numbers.values)
    floor = SPREAD_FLOOR
    if scale.absolute:
        # a thousandth of the value, or of 1 where the value is nothing
        floor *= abs(sample_mean(flat)) or 1.0
    base_within = scale.variances(chain.from_iterable(numbers.baseline))
    within = scale.variances(numbers.candidate)
    if look.paired:
        return pairs(
            [now - before for before, now in zip(flat, candidate, strict=True)],
            within_variance=sample_mean(base_within) + sample_mean(within),
            spread_floor=floor,
        )
    ordered = iter(flat)
    return two_samples(
        [list(islice(ordered, len(session))) for session in numbers.baseline],
        candidate,
        within_variance=sample_mean(base_within + within),
        spread_floor=floor,
    )


def comparison(
    numbers: Numbers, scale: Scale, found: Estimate, *, bar: Bar | None, look: Look
) -> Comparison:
    """Put an estimate into the words of the domain.

    `low` and `high` are the bounds that the verdicts `regressed` and
    `unchanged` are read from, each one-sided at its own level.
    """
    seen = None
    if bar is not None:
        seen = detectable(found, theta=bar.theta, runs=look.final_runs)
        seen = seen if scale.absolute else math.expm1(seen)
    return Comparison(
        baseline=scale.back(sample_mean(scale.to(numbers.base_values))),
        candidate=scale.back(sample_mean(scale.to(numbers.values))),
        ratio=scale.effect(found.delta),
        low=scale.effect(found.lower(look.red)),
        high=scale.effect(found.upper(look.green)),
        p_identity=found.p_worse,
        baseline_runs=found.baseline_runs,
        candidate_runs=found.candidate_runs,
        spread=found.spread,
        detectable=seen,
        absolute=scale.absolute,
    )


def recorded_detectable(
    sessions: Sequence[Runs],
    metric: Metric,
    statistic: str,
    *,
    budget: Budget,
    look: Look,
) -> float | None:
    """Say how small a change a baseline will let the gate see, as a fraction.

    Returns
    -------
    float or None
        From the spread of the baseline's own runs; None for an absolute
        budget, with fewer than three runs, and where a value is not positive.
    """
    sides = Sides(baseline=tuple(sessions), candidate=())
    numbers = collect(sides, metric, statistic)
    values = numbers.base_values
    if budget.absolute or len(values) < 3 or min(values) <= 0:
        return None
    scale = scale_of(metric, budget)
    # the candidate is taken to be as noisy: the baseline against itself
    alike = replace(numbers, candidate=tuple(chain(*numbers.baseline)), values=values)
    found = estimate(alike, scale, Look(final_runs=look.final_runs))
    theta = bar_of(budget).theta
    return math.expm1(detectable(found, theta=theta, runs=look.final_runs))
