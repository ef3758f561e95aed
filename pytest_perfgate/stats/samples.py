"""One number from the samples of one run, and how sure that number is.

Everything here is about a single process. What differs between processes is
none of its business: that is what runs are repeated for.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from scipy.special import stdtr

FloatArray = npt.NDArray[np.float64]

_RESAMPLES = 200
_SEED = 0x5EED
_LONGEST = 8192
_SECTIONS = 64
_BATCH = 5
_FEWEST_BATCHES = 10
_TREND_P = 0.001


def quantile(
    ordered: FloatArray, share: float, *, alpha: float = 1.0, beta: float = 1.0
) -> float:
    """Interpolate a quantile of sorted samples.

    Parameters
    ----------
    ordered : float64, shape (n,), n >= 1, ascending
    share : in [0, 1]
    alpha, beta : plotting positions; 1, 1 is type 7, 1/3, 1/3 type 8

    Returns
    -------
    float
        In the unit of the samples; the only sample where n is 1.

    References
    ----------
    Hyndman and Fan (1996), Sample quantiles in statistical packages.
    """
    n = ordered.size
    position = share * (n + 1 - alpha - beta) + alpha - 1
    low = min(max(int(np.floor(position)), 0), n - 1)
    high = min(low + 1, n - 1)
    part = min(max(position - low, 0.0), 1.0)
    first, second = float(ordered[low]), float(ordered[high])
    return first + part * (second - first)


def _ranks(share: float, n: int) -> tuple[int, int, float]:
    position = share * (n - 1)
    low = int(position)
    return low, min(low + 1, n - 1), position - low


@lru_cache(maxsize=8)
def _weights(n: int) -> npt.NDArray[np.int16]:
    """Draw how often each sample is taken in each moving-block resample.

    Returns
    -------
    int16, shape (n, 200)
        Every column sums to n. The draw depends on n alone, so that the same
        samples always have the same standard error.
    """
    block = min(n, max(5, int(np.ceil(np.sqrt(n)))))
    count = -(-n // block)
    generator = np.random.Generator(np.random.PCG64(_SEED))
    starts = generator.integers(0, n - block + 1, size=(_RESAMPLES, count))
    lengths = np.full(count, block)
    lengths[-1] = n - (count - 1) * block
    steps = np.zeros((n + 1, _RESAMPLES), dtype=np.int16)
    columns = np.repeat(np.arange(_RESAMPLES), count)
    np.add.at(steps, (starts.ravel(), columns), 1)
    np.add.at(steps, ((starts + lengths).ravel(), columns), -1)
    return np.cumsum(steps[:n], axis=0, dtype=np.int16)


def _order_statistics(
    cumulated: npt.NDArray[np.int16], ordered: FloatArray, rank: int
) -> FloatArray:
    """Give the sample at a rank of every resample."""
    places = np.count_nonzero(cumulated <= np.int16(rank), axis=0)
    found: FloatArray = ordered[places]
    return found


def standard_errors(
    values: Sequence[float] | FloatArray, shares: Mapping[str, float]
) -> dict[str, float]:
    """Estimate the standard errors of quantiles of one run's samples.

    Parameters
    ----------
    values : shape (n,), n >= 1, in the order they were measured
    shares : by name, the quantiles wanted; 0 is the floor, 1 the maximum

    Returns
    -------
    dict of str to float
        In the unit of the samples; 0 where n is 1, for a single sample says
        nothing about its own spread.

    Notes
    -----
    Moving-block bootstrap with blocks of max(5, √n) samples, 200 resamples and
    a fixed seed: neighbouring iterations resemble each other, and resampling
    them one by one would promise too much. A resample is kept as the number of
    times each sample occurs in it, so that all quantiles of all metrics of a
    length share one draw and nothing is sorted twice. Above 8,192 samples the
    spread of the same quantile over 64 consecutive sections, divided by 8,
    takes its place: as good there, and it needs no table.

    References
    ----------
    Künsch (1989), The jackknife and the bootstrap for general stationary
    observations. For sections: Asmussen and Glynn (2007), Stochastic
    Simulation, III.5.
    """
    samples = np.asarray(values, dtype=np.float64)
    n = samples.size
    if n == 1 or not shares:
        return dict.fromkeys(shares, 0.0)
    if n > _LONGEST:
        return _sectioned(samples, shares)
    order = np.argsort(samples, kind="stable")
    ordered = samples[order]
    # rows in the order of the samples' size: 16 bits hold every count up to n
    cumulated = np.cumsum(_weights(n)[order], axis=0, dtype=np.int16)
    errors = {}
    for name, share in shares.items():
        low, high, part = _ranks(share, n)
        drawn = _order_statistics(cumulated, ordered, low)
        if part > 0:
            above = _order_statistics(cumulated, ordered, high)
            drawn = drawn + part * (above - drawn)
        errors[name] = float(np.std(drawn, ddof=1))
    return errors


def _sectioned(samples: FloatArray, shares: Mapping[str, float]) -> dict[str, float]:
    length = samples.size // _SECTIONS
    sections = samples[: length * _SECTIONS].reshape(_SECTIONS, length)
    drawn = np.quantile(sections, list(shares.values()), axis=1)
    errors = np.std(drawn, axis=1, ddof=1) / np.sqrt(_SECTIONS)
    return dict(zip(shares, map(float, errors), strict=True))


def mean_error(values: Sequence[float] | FloatArray) -> float:
    """Estimate the standard error of the mean of one run's samples.

    Returns
    -------
    float
        From the same moving blocks as `standard_errors`; 0 where n is 1.
    """
    samples = np.asarray(values, dtype=np.float64)
    n = samples.size
    if n == 1:
        return 0.0
    if n > _LONGEST:
        length = n // _SECTIONS
        parts = samples[: length * _SECTIONS].reshape(_SECTIONS, length)
        return float(np.std(parts.mean(axis=1), ddof=1) / np.sqrt(_SECTIONS))
    return float(np.std(samples @ _weights(n) / n, ddof=1))


def _average_ranks(values: FloatArray) -> FloatArray:
    """Rank with ties sharing the mean of their places."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    ranks: FloatArray = (last - (counts - 1) / 2.0)[inverse]
    return ranks


def drift(values: Sequence[float] | FloatArray) -> float | None:
    """Measure the trend of a run that should have none left.

    Parameters
    ----------
    values : shape (n,), in the order they were measured

    Returns
    -------
    float or None
        log(median of the last third ÷ median of the first) where the medians
        of five consecutive samples rise or fall with their index by Spearman's
        test at p < 0.001; None where they do not, where there are fewer than
        50 samples, and where a third is not positive.

    Notes
    -----
    The p-value is Student's approximation, two-sided.
    """
    samples = np.asarray(values, dtype=np.float64)
    batches = samples.size // _BATCH
    if batches < _FEWEST_BATCHES:
        return None
    medians = np.median(samples[: batches * _BATCH].reshape(batches, _BATCH), axis=1)
    if _trend_p(medians) >= _TREND_P:
        return None
    third = samples.size // 3
    first = float(np.median(samples[:third]))
    last = float(np.median(samples[-third:]))
    return float(np.log(last / first)) if first > 0 and last > 0 else None


def _trend_p(medians: FloatArray) -> float:
    ranks = _average_ranks(medians)
    spread = float(np.std(ranks))
    if spread == 0:
        return 1.0
    count = medians.size
    index = np.arange(1.0, count + 1)
    rho = float(np.mean((ranks - ranks.mean()) * (index - index.mean())))
    rho /= spread * float(np.std(index))
    # a perfect order would divide by zero
    room = max(1 - rho * rho, 1e-12)
    t = abs(rho) * np.sqrt((count - 2) / room)
    return 2 * float(stdtr(count - 2, -t))
