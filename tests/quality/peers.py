"""How other tools decide, each restated from its documentation in a few lines.

All work on samples of shape (n, processes, iterations), one side each, and tell
for each of n comparisons whether the tool would call the candidate slower. Where
a tool measures one process a side, so does its rule here.
"""

import numpy as np
from scipy.special import ndtri, stdtr
from scipy.stats import mannwhitneyu

ASV_FACTOR = 1.1
CRITERION_NOISE = 0.01


def _rank_p(base, now):
    return mannwhitneyu(base, now, axis=1, method="asymptotic").pvalue


def _exact_rank_p(base, now):
    return mannwhitneyu(base, now, axis=1, method="exact").pvalue


def pytest_benchmark(base, now):
    """`--benchmark-compare-fail=median:5%`: one stored process against one new."""
    before, after = np.median(base[:, 0], axis=1), np.median(now[:, 0], axis=1)
    return after / before - 1 > 0.05


def pyperf(base, now):
    """`compare_to`: Student's t at 95 % on three values a process, all pooled.

    pyperf makes twenty processes; here it gets those that there are, as many on
    each side, since it calls samples of different sizes significant.
    """
    count = min(base.shape[1], now.shape[1])
    one, two = (side[:, :count, :3].reshape(len(side), -1) for side in (base, now))
    size = one.shape[1]
    pooled = (one.var(axis=1, ddof=1) + two.var(axis=1, ddof=1)) / 2
    difference = two.mean(axis=1) - one.mean(axis=1)
    t = difference / np.sqrt(pooled * 2 / size)
    return (2 * stdtr(2 * size - 2, -np.abs(t)) < 0.05) & (difference > 0)


def asv(base, now):
    """`continuous`: beyond a factor of 1.1, and U test p < 0.002 on 2 × 5 values."""
    one, two = (side[:, :2, :5].reshape(len(side), -1) for side in (base, now))
    larger = np.median(two, axis=1) > ASV_FACTOR * np.median(one, axis=1)
    return larger & (_exact_rank_p(one, two) < 0.002)


def benchstat(base, now):
    """U test p < 0.05 on ten values of one process, as `-count=10` makes them."""
    one, two = base[:, 0, :10], now[:, 0, :10]
    slower = np.median(two, axis=1) > np.median(one, axis=1)
    return slower & (_exact_rank_p(one, two) < 0.05)


def criterion(base, now):
    """A hundred samples of one process: p < 0.05, and the interval beyond +1 %.

    The bootstrap of the relative change of the mean is taken for normal, which
    at a hundred samples it nearly is.
    """
    one, two = base[:, 0, :100], now[:, 0, :100]
    before, after = one.mean(axis=1), two.mean(axis=1)
    ratio = after / before
    parts = [
        side.var(axis=1, ddof=1) / side.shape[1] / mean**2
        for side, mean in ((one, before), (two, after))
    ]
    return ratio - 1 + ndtri(0.025) * ratio * np.sqrt(sum(parts)) > CRITERION_NOISE


def mann_whitney(base, now):
    """U test p < 0.05 on all iterations of one process a side."""
    one, two = base[:, 0], now[:, 0]
    slower = np.median(two, axis=1) > np.median(one, axis=1)
    return slower & (_rank_p(one, two) < 0.05)


RULES = {
    "pytest-benchmark, median:5%": pytest_benchmark,
    "pyperf compare_to": pyperf,
    "asv continuous": asv,
    "benchstat, p < 0.05": benchstat,
    "Criterion, beyond +1 %": criterion,
    "Mann–Whitney on iterations": mann_whitney,
}
