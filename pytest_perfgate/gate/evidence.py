"""The numbers that two sides of runs hold of one statistic, and their estimate."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, islice

from pytest_perfgate.gate.bounds import Bar, bar_of
from pytest_perfgate.gate.budgets import Budget
from pytest_perfgate.gate.clocks import Clocks, compare_clocks
from pytest_perfgate.gate.host_bound import Bound, compare_bounds
from pytest_perfgate.gate.looks import Look
from pytest_perfgate.measured import Metric
from pytest_perfgate.model import Better, Comparison, RunStatistic, RunSummary
from pytest_perfgate.stats.interval import (
    SPREAD_FLOOR,
    Estimate,
    detectable,
    pairs,
    sample_mean,
    two_samples,
)

Runs = tuple[RunSummary, ...]


_TOLERATED_SHARE = 0.25


@dataclass(frozen=True, kw_only=True)
class Sides:
    """The runs that are compared: baseline runs by session, candidate runs.

    What every statistic asks of them is worked out once.
    """

    baseline: tuple[Runs, ...]
    candidate: Runs

    collected: dict[tuple[str, str], "Numbers"] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    """The statistics collected so far, by metric and statistic."""
    counted: dict[str, tuple[list[int], list[int]]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    """The samples counted so far, by metric."""

    @cached_property
    def base_runs(self) -> Runs:
        return tuple(chain.from_iterable(self.baseline))

    @cached_property
    def both(self) -> tuple[Runs, Runs]:
        return self.base_runs, self.candidate

    @cached_property
    def health(self) -> "Health":
        base, now = self.both
        runs = base + now
        tick = max([run.clock_tick_s for run in runs])
        if not [run for run in runs if run.disturbed or run.drift or not run.steady]:
            return Health(clock_tick_s=tick)
        return Health(
            clock_tick_s=tick,
            disturbed=_many([run.disturbed for run in base])
            or _many([run.disturbed for run in now]),
            unsteady=_many([not run.steady for run in base])
            or _many([not run.steady for run in now]),
            drifting=bool([run for run in runs if run.drift]),
        )

    @cached_property
    def clocks(self) -> Clocks:
        return compare_clocks(*self.both)

    @cached_property
    def bound(self) -> Bound:
        return compare_bounds(*self.both)

    def samples(self, metric: str) -> tuple[list[int], list[int]]:
        """Count the samples that each run of a side has of a metric."""
        if metric not in self.counted:
            base, now = self.both
            self.counted[metric] = _samples(base, metric), _samples(now, metric)
        return self.counted[metric]


def _samples(runs: Runs, metric: str) -> list[int]:
    return [run.samples.get(metric, run.iterations) for run in runs]


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """What stands in the way of a verdict, whatever the statistic."""

    clock_tick_s: float
    disturbed: bool = False
    """Many runs of a side were."""
    unsteady: bool = False
    """Many runs of a side never became warm."""
    drifting: bool = False
    """A trend was proven in some run."""


def _many(flags: list[bool]) -> bool:
    """Tell whether more runs are affected than a mean can take."""
    return sum(flags) > _TOLERATED_SHARE * len(flags)


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
    key = metric.name, statistic
    if key not in sides.collected:
        sides.collected[key] = _collect(sides, metric, statistic)
    return sides.collected[key]


def _collect(sides: Sides, metric: Metric, statistic: str) -> Numbers:
    columns = [_column(session, metric.name, statistic) for session in sides.baseline]
    complete = [
        column
        for column, session in zip(columns, sides.baseline, strict=True)
        if len(column) == len(session)
    ]
    found = _column(sides.candidate, metric.name, statistic)
    return Numbers(
        metric=metric,
        baseline=tuple(complete),
        candidate=found,
        base_values=tuple([one.value for column in complete for one in column]),
        values=tuple([one.value for one in found]),
        sessions_left_out=len(columns) - len(complete),
    )


def _column(runs: Runs, metric: str, statistic: str) -> tuple[RunStatistic, ...]:
    try:
        return tuple([run.statistics[metric][statistic] for run in runs])
    except KeyError:
        found = [run.get(metric, statistic) for run in runs]
        return tuple([one for one in found if one is not None])


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """How values become numbers of which bigger is worse, and back."""

    sign: float
    """1 where lower is better, else −1."""
    absolute: bool

    def to(self, values: Iterable[float]) -> list[float]:
        numbers = list(values) if self.absolute else list(map(math.log, values))
        return numbers if self.sign > 0 else [-number for number in numbers]

    def oriented(self, difference: float) -> float:
        """Turn a difference of logs so that above nothing is worse."""
        return self.sign * difference

    def back(self, number: float) -> float:
        number *= self.sign
        return number if self.absolute else math.exp(number)

    def effect(self, delta: float) -> float:
        """Turn an effect into a ratio, or leave it a difference."""
        return delta if self.absolute else math.exp(delta)

    def variances(self, runs: Iterable[RunStatistic]) -> list[float]:
        """Give the variance of each run's number within its run."""
        if self.absolute:
            return [one.se * one.se for one in runs]
        return [(share := one.se / one.value) * share for one in runs]


_SCALES = {
    (lower, absolute): Scale(sign=1.0 if lower else -1.0, absolute=absolute)
    for lower in (True, False)
    for absolute in (True, False)
}


def scale_of(metric: Metric, budget: Budget) -> Scale:
    return _SCALES[metric.better is Better.LOWER, budget.absolute]


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
        apart = [now - before for before, now in zip(flat, candidate, strict=True)]
        variance = sample_mean(base_within) + sample_mean(within)
        twins = [one.twin for one in numbers.candidate if one.twin is not None]
        if len(twins) == len(apart) and not scale.absolute:
            apart = [scale.oriented(twin.log_ratio) for twin in twins]
            variance = sample_mean([twin.se * twin.se for twin in twins])
        return pairs(
            apart,
            level=sample_mean(flat),
            within_variance=variance,
            spread_floor=floor,
        )
    return two_samples(
        _by_session(flat, numbers),
        candidate,
        within_variance=sample_mean(base_within + within),
        spread_floor=floor,
    )


def _by_session(flat: list[float], numbers: Numbers) -> list[list[float]]:
    if len(numbers.baseline) == 1:
        return [flat]
    ordered = iter(flat)
    return [list(islice(ordered, len(session))) for session in numbers.baseline]


def comparison(
    scale: Scale, found: Estimate, *, bar: Bar | None, look: Look
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
        baseline=scale.back(found.level),
        candidate=scale.back(found.level + found.delta),
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
    return stored_detectable(collect(sides, metric, statistic), budget, look)


def stored_detectable(numbers: Numbers, budget: Budget, look: Look) -> float | None:
    """Say what `recorded_detectable` does, of a baseline that is already collected."""
    values = numbers.base_values
    if budget.absolute or len(values) < 3 or min(values) <= 0:
        return None
    scale = scale_of(numbers.metric, budget)
    flat = scale.to(values)
    within = sample_mean(scale.variances(chain.from_iterable(numbers.baseline)))
    # the candidate is taken to be as noisy: the baseline against itself
    found = two_samples(_by_session(flat, numbers), flat, within_variance=within)
    theta = bar_of(budget).theta
    return math.expm1(detectable(found, theta=theta, runs=look.final_runs))
