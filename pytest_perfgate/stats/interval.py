"""Student t intervals of one statistic per run.

The run, a fresh process, is the unit of evidence: each contributes one number,
and nothing here ever sees an iteration. Numbers are oriented so that bigger is
worse; for ratios they are logarithms.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain

from scipy.special import fdtri, stdtrit
from scipy.special.cython_special import stdtr  # of scalars, without an array's cost

SPREAD_FLOOR = 0.001
"""Smallest spread between runs that is believed, as a fraction."""

_TAU_SHARE = 0.25
_SESSIONS_FOR_TAU = 4
_VARIABILITY = 0.999
_MOST_RUNS = 10_000
_DETECTION_LEVEL = 0.06
_DETECTION_POWER = 0.95


@lru_cache(maxsize=4096)
def t_quantile(level: float, df: float) -> float:
    """Quantile of Student's t: `level` lies below it."""
    return float(stdtrit(df, level))


@lru_cache(maxsize=256)
def _f_bound(df_above: int, df_below: int) -> float:
    return float(fdtri(df_above, df_below, _VARIABILITY))


def sample_mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def sample_variance(values: Sequence[float]) -> float:
    """Unbiased variance; 0 for a single value."""
    return _moments(values)[1]


def _moments(values: Sequence[float]) -> tuple[float, float]:
    mean = sample_mean(values)
    if len(values) < 2:
        return mean, 0.0
    squares = [(value - mean) ** 2 for value in values]
    return mean, math.fsum(squares) / (len(values) - 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """What the runs say about the effect of a change.

    `delta` is the difference of the means, candidate minus baseline; of
    logarithms, so that exp(delta) is the ratio, or of plain values.
    """

    delta: float
    se: float
    df: float
    spread: float
    """Standard deviation between runs (of the log), pooled."""
    baseline_runs: int
    candidate_runs: int
    level: float = 0.0
    """Mean of the baseline's runs, on the same scale."""
    session_variance: float = 0.0
    """What two sessions add to the variance of delta."""
    paired: bool = False
    variability_changed: bool = False

    def lower(self, alpha: float) -> float:
        """Give the one-sided lower bound of delta at level 1 − alpha."""
        return self.delta - t_quantile(1 - alpha, self.df) * self.se

    def upper(self, alpha: float) -> float:
        """Give the one-sided upper bound of delta at level 1 − alpha."""
        return self.delta + t_quantile(1 - alpha, self.df) * self.se

    @property
    def p_worse(self) -> float:
        """One-sided p-value of "not worse": small where delta is above 0."""
        return stdtr(float(self.df), -self.delta / self.se)

    @property
    def p_better(self) -> float:
        """One-sided p-value of "not better": small where delta is below 0."""
        return stdtr(float(self.df), self.delta / self.se)


def two_samples(
    baseline: Sequence[Sequence[float]],
    candidate: Sequence[float],
    *,
    within_variance: float = 0.0,
    spread_floor: float = SPREAD_FLOOR,
) -> Estimate:
    """Compare runs that were measured apart: stored sessions and new runs.

    Parameters
    ----------
    baseline : one value a run, grouped by session; 3 runs or more in all
    candidate : one value a run, 3 or more, all of one session
    within_variance : mean variance of the values within their runs; the spread
        between runs is never believed to be smaller
    spread_floor : the least spread that is believed, in the unit of the values

    Notes
    -----
    SE² = s²(1/R_b + 1/R_c) + τ²(1 + 1/S_b) with s² pooled over both sides and
    τ², the variance between sessions, from the analysis of variance of four or
    more stored sessions, else (s/4)², which it never falls below. Where the
    variances differ beyond the 99.9 % point of F, Welch's t takes the place of
    the pooled one.

    References
    ----------
    Kalibera and Jones (2013), Rigorous benchmarking in reasonable time. Welch
    (1947). Searle, Casella and McCulloch (1992), Variance Components, 3.6.
    """
    runs = list(chain.from_iterable(baseline))
    least = max(spread_floor**2, within_variance)
    level, raw_base = _moments(runs)
    mean, raw_cand = _moments(candidate)
    var_base, var_cand = max(raw_base, least), max(raw_cand, least)
    n_base, n_cand = len(runs), len(candidate)
    df: float = n_base + n_cand - 2
    pooled = (n_base - 1) * raw_base + (n_cand - 1) * raw_cand
    spread2 = max(pooled / df, least)
    se2 = spread2 * (1 / n_base + 1 / n_cand)
    changed = _variability_changed(var_base, var_cand, n_base, n_cand)
    if changed:
        part_base, part_cand = var_base / n_base, var_cand / n_cand
        se2 = part_base + part_cand
        df = se2**2 / (part_base**2 / (n_base - 1) + part_cand**2 / (n_cand - 1))
    between = _session_variance(baseline, spread2) * (1 + 1 / len(baseline))
    return Estimate(
        delta=mean - level,
        level=level,
        se=math.sqrt(se2 + between),
        df=df,
        spread=math.sqrt(spread2),
        baseline_runs=n_base,
        candidate_runs=n_cand,
        session_variance=between,
        variability_changed=changed,
    )


def _variability_changed(
    var_base: float, var_cand: float, n_base: int, n_cand: int
) -> bool:
    more = var_cand / var_base
    return more > _f_bound(n_cand - 1, n_base - 1) or 1 / more > _f_bound(
        n_base - 1, n_cand - 1
    )


def _session_variance(sessions: Sequence[Sequence[float]], spread2: float) -> float:
    """Estimate τ², the variance between sessions, never below (s/4)²."""
    least = _TAU_SHARE**2 * spread2
    if len(sessions) < _SESSIONS_FOR_TAU:
        return least
    sizes = [len(session) for session in sessions]
    total, count = sum(sizes), len(sessions)
    if total == count:
        return max(least, sample_variance([session[0] for session in sessions]))
    grand = sample_mean(list(chain.from_iterable(sessions)))
    means = [sample_mean(session) for session in sessions]
    msb = math.fsum(
        size * (mean - grand) ** 2 for size, mean in zip(sizes, means, strict=True)
    ) / (count - 1)
    msw = math.fsum(
        (size - 1) * sample_variance(session)
        for size, session in zip(sizes, sessions, strict=True)
    ) / (total - count)
    # sessions of unequal length count with their effective size
    effective = (total - sum(size**2 for size in sizes) / total) / (count - 1)
    return max(least, (msb - msw) / effective)


def pairs(
    differences: Sequence[float],
    *,
    level: float = 0.0,
    within_variance: float = 0.0,
    spread_floor: float = SPREAD_FLOOR,
) -> Estimate:
    """Compare runs that were measured in alternation, pair by pair.

    Parameters
    ----------
    differences : candidate minus baseline of each pair, 2 or more
    level : mean of the baseline's halves
    within_variance : mean variance of a difference within its pair

    Notes
    -----
    One-sample t. Both halves of a pair share their session, which cancels.
    """
    count = len(differences)
    least = max(spread_floor**2, within_variance)
    delta, variance = _moments(differences)
    spread2 = max(variance, least)
    return Estimate(
        delta=delta,
        level=level,
        se=math.sqrt(spread2 / count),
        df=count - 1,
        spread=math.sqrt(spread2),
        baseline_runs=count,
        candidate_runs=count,
        paired=True,
    )


def _error_at(
    estimate: Estimate, runs: int, *, sessions: bool = True
) -> tuple[float, float]:
    """Give the standard error and the degrees of freedom at so many runs."""
    spread2 = estimate.spread**2
    if estimate.paired:
        return (spread2 / runs) ** 0.5, runs - 1
    variance = spread2 * (1 / estimate.baseline_runs + 1 / runs)
    if sessions:
        variance += estimate.session_variance
    return variance**0.5, estimate.baseline_runs + runs - 2


def detectable(estimate: Estimate, *, theta: float, runs: int) -> float:
    """Find the smallest effect that so many candidate runs see, 95 % of the time.

    Returns
    -------
    float
        θ + (t(1 − .06) + t(.95))·SE, on the scale of delta.
    """
    se, df = _error_at(estimate, runs)
    reach = t_quantile(1 - _DETECTION_LEVEL, df) + t_quantile(_DETECTION_POWER, df)
    return theta + reach * se


def half_width(
    estimate: Estimate, *, alpha: float, runs: int, sessions: bool = True
) -> float:
    """Foretell how far the bound at level 1 − α will lie from the estimate.

    Parameters
    ----------
    runs : how many candidate runs, or pairs, there will be
    sessions : False leaves out what two sessions add, which no run can mend
    """
    se, df = _error_at(estimate, runs, sessions=sessions)
    return t_quantile(1 - alpha, df) * se


def runs_needed(
    estimate: Estimate, *, theta: float, alpha: float, sessions: bool = True
) -> int | None:
    """Find how many candidate runs tell identical code from the budget.

    Returns
    -------
    int or None
        The smallest R_c that is enough; None where no number up to 10,000 is,
        for the baseline has too few runs or sessions.
    """

    def enough(runs: int) -> bool:
        width = half_width(estimate, alpha=alpha, runs=runs, sessions=sessions)
        return width < theta

    low, high = 2, 3
    while not enough(high):
        if high > _MOST_RUNS:
            return None
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
