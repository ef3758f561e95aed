"""What a pair is judged by: its two runs compared turn by turn."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from pytest_perfgate.measured import Measurement, Samples
from pytest_perfgate.model import RunSummary, Twin
from pytest_perfgate.stats.samples import FloatArray, quantile, standard_errors

UNEQUAL = 0.3
"""By how much the shares of disturbed turns of two halves may differ."""
_MEDIAN = "median"


def disturbed_unequally(candidate: Measurement, base: Measurement) -> bool:
    """Whether a disturbance of a pair speaks for or against one of its halves.

    Turns of the two lie 20 ms apart: a neighbour that takes the CPU takes it from
    both, and what it adds to the spread between pairs the interval knows. Only
    where one half had clearly more of it, or where whole runs alternated, is the
    pair no comparison.
    """
    if not (candidate.turns and base.turns):
        return candidate.health.disturbed or base.health.disturbed
    shares = [_share(half) for half in (candidate, base)]
    return abs(shares[0] - shares[1]) > UNEQUAL


def _share(measurement: Measurement) -> float:
    health = measurement.health
    return health.disturbed_blocks / max(1, health.blocks)


def with_twin(
    summary: RunSummary, candidate: Measurement, base: Measurement
) -> RunSummary:
    """Add to a candidate's medians how they differ from its twin's.

    A load that changes in the middle of a run moves the ratio of the two runs'
    medians, but hardly that of two turns 20 ms apart: the median over turns of
    log(candidate's turn median ÷ base's) is what the pair says of the median.
    Where the turns of the two do not match, the medians alone speak.
    """
    theirs = {samples.metric.name: samples for samples in base.samples}
    statistics = dict(summary.statistics)
    for samples in candidate.samples:
        name = samples.metric.name
        median = summary.get(name, _MEDIAN)
        twin = theirs.get(name)
        if median is None or twin is None:
            continue
        found = _twin(_by_turn(samples, candidate), _by_turn(twin, base))
        if found is not None:
            statistics[name] = {
                **statistics[name],
                _MEDIAN: replace(median, twin=found),
            }
    return replace(summary, statistics=statistics)


def _by_turn(samples: Samples, measurement: Measurement) -> FloatArray | None:
    """Return the median of each turn; None where samples belong to no turn."""
    count, turns = len(samples.values), measurement.turns
    if not turns:
        return None
    if count == len(turns):  # one value a turn, as CPU time has
        return np.asarray(samples.values, dtype=np.float64)
    each, rest = divmod(count, sum(turns))
    if rest or not each:
        return None
    ends = np.cumsum(turns)[:-1] * each
    return _medians(np.split(np.asarray(samples.values, dtype=np.float64), ends))


def _medians(turns: Sequence[FloatArray]) -> FloatArray:
    return np.asarray([np.median(turn) for turn in turns], dtype=np.float64)


def _twin(candidate: FloatArray | None, base: FloatArray | None) -> Twin | None:
    if candidate is None or base is None or len(candidate) != len(base):
        return None
    if min(candidate.min(), base.min()) <= 0:
        return None
    ratios = np.log(candidate) - np.log(base)
    error = standard_errors(ratios, {_MEDIAN: 0.5})[_MEDIAN]
    return Twin(log_ratio=quantile(np.sort(ratios), 0.5), se=error)
