"""What runs say about an absolute limit."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from scipy.special import betaincinv

from pytest_perfgate.stats.interval import (
    SPREAD_FLOOR,
    sample_mean,
    sample_variance,
    t_quantile,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """A number with its one-sided bounds, each at its own level."""

    value: float
    low: float
    high: float


def mean_bounds(
    values: Sequence[float],
    *,
    alpha_low: float,
    alpha_high: float,
    within_variance: float = 0.0,
    spread_floor: float = SPREAD_FLOOR,
) -> Bounds:
    """Bound the mean of one value a run by Student's t.

    Parameters
    ----------
    values : one a run (of the log, for ratios), 2 or more
    alpha_low, alpha_high : how often the lower, the upper bound may be wrong
    """
    count = len(values)
    least = max(spread_floor**2, within_variance)
    se = math.sqrt(max(sample_variance(values), least) / count)
    mean = sample_mean(values)
    return Bounds(
        value=mean,
        low=mean - t_quantile(1 - alpha_low, count - 1) * se,
        high=mean + t_quantile(1 - alpha_high, count - 1) * se,
    )


def share_bounds(
    shares: Sequence[float], *, samples: int, alpha_low: float, alpha_high: float
) -> Bounds:
    """Bound the share of calls over a limit, samples clustered in runs.

    Parameters
    ----------
    shares : share of the samples over the limit in each run, 2 runs or more
    samples : samples in each run

    Notes
    -----
    Clopper and Pearson's interval at the effective sample size: the design
    effect lowers it where runs differ by more than chance, and the ratio of t
    quantiles pays for how few runs that was learned from.

    References
    ----------
    Korn and Graubard (1998), Confidence intervals for proportions with small
    expected number of positive counts estimated from survey data.
    """
    runs = len(shares)
    total = runs * samples
    share = sample_mean(shares)
    effect = 1.0
    if 0 < share < 1:
        chance = share * (1 - share) / samples
        effect = max(1.0, sample_variance(shares) / chance)

    def effective(alpha: float) -> float:
        cost = t_quantile(1 - alpha, total - 1) / t_quantile(1 - alpha, runs - 1)
        return total / effect * cost**2

    n_low, n_high = effective(alpha_low), effective(alpha_high)
    low = betaincinv(share * n_low, (1 - share) * n_low + 1, alpha_low)
    high = betaincinv(share * n_high + 1, (1 - share) * n_high, 1 - alpha_high)
    return Bounds(
        value=share,
        low=float(low) if share > 0 else 0.0,
        high=float(high) if share < 1 else 1.0,
    )


def samples_needed(misses: int, *, allowed: float, alpha: float) -> int:
    """Find how many samples prove a share below `allowed` with so many misses.

    Returns
    -------
    int
        The smallest n whose Clopper–Pearson upper bound is `allowed` or less:
        459, 662, 838 for 0, 1, 2 misses, 1 % allowed and alpha 0.01.
    """

    def enough(samples: int) -> bool:
        bound = betaincinv(misses + 1, samples - misses, 1 - alpha)
        return float(bound) <= allowed

    low, high = misses, max(2 * misses, 16)
    while not enough(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
