"""Absolute limits: `p99<=150ms`, `throughput>=500/s`."""

import math
from collections.abc import Mapping, Sequence

from pytest_perfgate.gate.budgets import (
    SHARE,
    TYPE_8,
    Limit,
    fits_unit,
    is_tail,
    main_statistic,
    quantile_of,
)
from pytest_perfgate.gate.evidence import Runs
from pytest_perfgate.gate.looks import PLANNED, Look
from pytest_perfgate.gate.policy import BenchmarkPolicy
from pytest_perfgate.gate.readings import OF_ROUNDS, Reading, State, inconclusive
from pytest_perfgate.measured import Metric
from pytest_perfgate.model import Judgement, Outcome, Reason, RunStatistic, Verdict
from pytest_perfgate.stats.interval import SPREAD_FLOOR, sample_mean
from pytest_perfgate.stats.limits import (
    Bounds,
    mean_bounds,
    samples_needed,
    share_bounds,
)
from pytest_perfgate.units import format_value

OVER_LEVEL = 0.01
"""How often "over the limit" may be wrong, all looks together."""

_FEWEST_RUNS = 3


def read_limits(
    policy: BenchmarkPolicy,
    metrics: Mapping[str, Metric],
    candidate: Runs,
    look: Look,
) -> list[Reading]:
    """Hold a benchmark's runs against its absolute limits."""
    if not policy.gate:
        return []
    return [
        _read(limit, policy.limited(limit, metrics), candidate, look)
        for limit in policy.limits
    ]


def _read(limit: Limit, metric: Metric | None, runs: Runs, look: Look) -> Reading:
    if metric is None:
        name = limit.metric or limit.statistic or ""
        detail = f"the limit {limit.source} names no metric of this benchmark"
        verdict = Verdict(
            outcome=Outcome.ERROR, reason=Reason.METRIC_ABSENT, detail=detail
        )
        return _reading(
            limit, Metric(name=name, unit=limit.unit), verdict, State.SETTLED
        )
    if not fits_unit(limit.unit, metric.unit):
        detail = (
            f"the limit {limit.source} is in {limit.unit or 'no unit'}, and"
            f" {metric.name} is measured in {metric.unit or 'no unit'}"
        )
        verdict = Verdict(
            outcome=Outcome.ERROR, reason=Reason.UNIT_DIFFERS, detail=detail
        )
        return _reading(limit, metric, verdict, State.SETTLED)
    statistic = limit.statistic or main_statistic(metric)
    if is_tail(statistic) and limit.operator == "<=":
        verdict = _tail(limit, metric, runs, look)
    else:
        verdict = _central(limit, metric, statistic, runs, look)
    waits = verdict.outcome is Outcome.INCONCLUSIVE
    return _reading(limit, metric, verdict, State.OPEN if waits else State.SETTLED)


def _reading(limit: Limit, metric: Metric, verdict: Verdict, state: State) -> Reading:
    statistic = limit.statistic or main_statistic(metric)
    judgement = Judgement(
        metric=metric,
        statistic=statistic,
        verdict=verdict,
        bound=limit.text(metric.unit),
        remarks=(OF_ROUNDS,) if metric.of_rounds and is_tail(statistic) else (),
    )
    return Reading(judgement=judgement, state=state)


def _found(runs: Runs, name: str, statistic: str) -> list[RunStatistic]:
    found = [run.get(name, statistic) for run in runs]
    return [one for one in found if one is not None]


def _absent(metric: Metric, statistic: str, have: int, runs: Runs) -> Verdict:
    detail = f"{metric.name} {statistic} in {len(runs) - have} of {len(runs)} runs"
    return Verdict(outcome=Outcome.ERROR, reason=Reason.METRIC_ABSENT, detail=detail)


def _too_few(have: int) -> Verdict:
    detail = f"candidate {have}; needs {_FEWEST_RUNS} runs"
    return inconclusive(Reason.TOO_FEW_RUNS, detail)


def _over(detail: str) -> Verdict:
    return Verdict(outcome=Outcome.REGRESSED, reason=Reason.OVER_LIMIT, detail=detail)


def _within(detail: str) -> Verdict:
    return Verdict(outcome=Outcome.UNCHANGED, reason=Reason.WITHIN_LIMIT, detail=detail)


# a mean of runs against the limit ---------------------------------------------


def _central(
    limit: Limit, metric: Metric, statistic: str, runs: Runs, look: Look
) -> Verdict:
    found = _found(runs, metric.name, statistic)
    if len(found) < len(runs) or not found:
        return _absent(metric, statistic, len(found), runs)
    if metric.exact:
        return _exactly(limit, metric, [one.value for one in found])
    if len(found) < _FEWEST_RUNS:
        return _too_few(len(found))
    plain = limit.value <= 0 or min(one.value for one in found) <= 0
    bounds = (
        _plain_bounds(found, look, limit) if plain else _log_bounds(found, look, limit)
    )
    detail = _interval_text(bounds, limit, metric)
    if limit.operator == ">=":
        # what is over a floor is under it
        bounds = Bounds(value=-bounds.value, low=-bounds.high, high=-bounds.low)
    bound = limit.value if limit.operator == "<=" else -limit.value
    if bounds.low > bound:
        return _over(detail)
    return (
        _within(detail)
        if bounds.high <= bound
        else inconclusive(Reason.AT_BUDGET, detail)
    )


def _levels(look: Look, operator: str) -> tuple[float, float]:
    over, within = OVER_LEVEL / PLANNED, look.green
    return (over, within) if operator == "<=" else (within, over)


def _log_bounds(found: Sequence[RunStatistic], look: Look, limit: Limit) -> Bounds:
    low, high = _levels(look, limit.operator)
    bounds = mean_bounds(
        [math.log(one.value) for one in found],
        alpha_low=low,
        alpha_high=high,
        within_variance=sample_mean([(one.se / one.value) ** 2 for one in found]),
    )
    return Bounds(
        value=math.exp(bounds.value),
        low=math.exp(bounds.low),
        high=math.exp(bounds.high),
    )


def _plain_bounds(found: Sequence[RunStatistic], look: Look, limit: Limit) -> Bounds:
    values = [one.value for one in found]
    low, high = _levels(look, limit.operator)
    return mean_bounds(
        values,
        alpha_low=low,
        alpha_high=high,
        within_variance=sample_mean([one.se**2 for one in found]),
        spread_floor=SPREAD_FLOOR * (abs(sample_mean(values)) or 1.0),
    )


def _exactly(limit: Limit, metric: Metric, values: Sequence[float]) -> Verdict:
    low = min(values)
    high = max(values)
    detail = format_value(high if limit.operator == "<=" else low, metric.unit)
    beyond = [
        value > limit.value if limit.operator == "<=" else value < limit.value
        for value in values
    ]
    if all(beyond):
        return _over(detail)
    if any(beyond):
        return inconclusive(Reason.TOO_NOISY, f"differs between runs: {detail}")
    return _within(detail)


def _interval_text(bounds: Bounds, limit: Limit, metric: Metric) -> str:
    value, low, high = (
        format_value(number, metric.unit)
        for number in (bounds.value, bounds.low, bounds.high)
    )
    return f"{value} ({low} to {high}), limit {limit.text(metric.unit)}"


# a tail against the limit -----------------------------------------------------


def _tail(limit: Limit, metric: Metric, runs: Runs, look: Look) -> Verdict:
    statistic = limit.statistic or ""
    quantiles = _found(runs, metric.name, statistic + TYPE_8)
    shares = _found(runs, limit.share_of(metric.name), SHARE)
    measured = all(run.statistics.get(metric.name) for run in runs)
    if measured and not shares:
        detail = f"{statistic.upper()} needs single calls, not means of inner loops"
        return inconclusive(Reason.TOO_FEW_TAIL_SAMPLES, detail)
    if len(shares) < len(runs):
        return _absent(metric, statistic, len(shares), runs)
    if len(runs) < _FEWEST_RUNS:
        return _too_few(len(runs))
    plain = min(one.value for one in quantiles) <= 0
    bounds = (_plain_bounds if plain else _log_bounds)(quantiles, look, limit)
    # runs of one plan have as many samples; the fewest are the honest number
    samples = min(run.samples.get(metric.name, run.iterations) for run in runs)
    over, within = _levels(look, limit.operator)
    beyond = share_bounds(
        [one.value for one in shares],
        samples=samples,
        alpha_low=over,
        alpha_high=within,
    )
    text = _interval_text(bounds, limit, metric)
    what = "rounds" if metric.of_rounds else "calls"
    detail = f"{text}; {beyond.value:.2%} of {what} over it"
    return _tail_verdict(limit, bounds, beyond, detail) or _more_samples(
        limit, beyond, samples * len(runs), detail, look
    )


def _allowed(limit: Limit) -> float:
    return 1 - (quantile_of(limit.statistic or "") or 0.0)


def _tail_verdict(
    limit: Limit, bounds: Bounds, beyond: Bounds, detail: str
) -> Verdict | None:
    """Ask both: how many calls are over the limit, and where the quantile is."""
    allowed = _allowed(limit)
    if beyond.high <= allowed and bounds.high <= limit.value:
        return _within(detail)
    if beyond.low > allowed and bounds.low > limit.value:
        return _over(detail)
    return inconclusive(Reason.AT_BUDGET, detail) if beyond.value > allowed else None


def _more_samples(
    limit: Limit, beyond: Bounds, total: int, detail: str, look: Look
) -> Verdict:
    misses = round(beyond.value * total)
    needed = samples_needed(misses, allowed=_allowed(limit), alpha=look.green)
    return inconclusive(
        Reason.TOO_FEW_TAIL_SAMPLES,
        f"{detail}; have {total:,} samples with {misses} over,"
        f" needs {needed:,} independent ones",
    )
