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
MAD_TO_SD = 1.4826


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

    It is if its truncation point lies in the first half, or if what lies
    before that point differs from what lies after it by less than matters.
    With fewer than `FEW` batches the durations themselves are judged; with
    fewer than `FEW` durations there is no telling, and the answer is yes.
    """
    values: Sequence[float] = batch_medians(durations)
    if len(values) < FEW:
        values = durations
    if len(values) < FEW:
        return True
    point = truncation(values)
    return point <= len(values) // 2 or not _differs(values[:point], values[point:])


def _differs(early: Sequence[float], late: Sequence[float]) -> bool:
    """Whether two medians differ by more than matters and than noise explains."""
    level = statistics.median(late)
    spread = statistics.median(abs(value - level) for value in late)
    noise = NOISE_FACTOR * MAD_TO_SD * spread / math.sqrt(len(late))
    return abs(statistics.median(early) - level) > max(MATTERS * level, noise)
