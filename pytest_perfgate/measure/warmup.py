"""Finds out when a stream of durations has settled.

The marginal standard error rule (MSER-5: K. P. White, "An effective truncation
heuristic for bias reduction in simulation output", Simulation 69, 1997) on
batches of five iterations. Medians take the place of the batch means, so that
one interrupted call does not prolong the warm-up.
"""

import math
import statistics
from collections.abc import Sequence

BATCH = 5
FEW = 8
"""Below this many values nothing can be said about steadiness."""
MATTERS = 0.02
"""A level that moved by less than this share is steady enough."""
NOISE_FACTOR = 4.0
MEDIAN_BEND = 1.652
"""Median size of a second difference of normal draws: 0.6745 √6 deviations."""


def batch_medians(durations: Sequence[float], *, size: int = BATCH) -> list[float]:
    """Medians of whole batches; what does not fill a batch at the end is left out."""
    starts = range(0, len(durations) - size + 1, size)
    return [statistics.median(durations[start : start + size]) for start in starts]


def truncation(values: Sequence[float]) -> int:
    """Count the leading values that belong to the warm-up.

    Parameters
    ----------
    values : any positive unit, in order of time

    Returns
    -------
    int
        The d that minimises sum((v - mean)²) / (n - d)² over values[d:], among
        those that leave at least three values and a quarter of all: fewer may
        agree by luck. 0 for fewer than four values, and for equal ones.
    """
    keep = max(3, len(values) // 4)
    best, best_score = 0, float("inf")
    mean = squares = 0.0
    for count, value in enumerate(reversed(values), start=1):  # Welford's update
        step = value - mean
        mean += step / count
        squares += step * (value - mean)
        score = squares / count**2
        if count >= keep and score <= best_score:
            best, best_score = len(values) - count, score
    return best


def is_steady(durations: Sequence[float]) -> bool:
    """Whether the warm-up of a stream is over.

    It is if its truncation point lies in the first half, or if the third
    quarter differs from the fourth by less than matters, or than noise
    explains. With fewer than `FEW` batches the durations themselves are judged;
    with fewer than `FEW` durations there is no telling, and the answer is yes.
    """
    values: Sequence[float] = batch_medians(durations)
    if len(values) < FEW:
        values = durations
    half = len(values) // 2
    if len(values) < FEW or truncation(values) <= half:
        return True
    later = values[half:]
    early, late = later[: len(later) // 2], later[len(later) // 2 :]
    shift = abs(statistics.median(early) - statistics.median(late))
    noise = NOISE_FACTOR * _noise(values) * math.sqrt(1 / len(early) + 1 / len(late))
    return shift <= max(MATTERS * statistics.median(late), noise)


def _noise(values: Sequence[float]) -> float:
    """Estimate the standard deviation from bends, which no trend touches."""
    bends = [
        abs(values[index - 1] - 2 * values[index] + values[index + 1])
        for index in range(1, len(values) - 1)
    ]
    return statistics.median(bends) / MEDIAN_BEND
