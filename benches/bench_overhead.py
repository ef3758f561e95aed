"""What the instrument itself costs: the time it adds to a sample.

A pair of clock readings around nothing is the smallest sample there can be.
Whatever a timed loop shows beyond it for a function that does nothing is the
call of that function and what the loop adds.
"""

from statistics import fmean, median
from time import perf_counter_ns

import pytest

from pytest_perfgate.measure.cpu import CpuDevice

ALLOWED_S = 150e-9
ROUNDS = 50
PAIRS = 9
"""In each round; their median is one sample, so that no neighbour's visit is."""
SAMPLES_PER_BLOCK = 500


def nothing():
    pass


def bare_pairs(count):
    """Time nothing at all, `count` times, as tightly as Python can."""
    now = perf_counter_ns
    times = [0] * count
    for index in range(count):
        started = now()
        stopped = now()
        times[index] = stopped - started
    return times


def middle_mean(times):
    """Average the middle half, in seconds: finer than the tick of the clock."""
    ordered = sorted(times)
    quarter = len(ordered) // 4
    return fmean(ordered[quarter:-quarter]) / 1e9


def added_per_sample():
    """Measure one pair of neighbouring blocks, and take their difference."""
    device = CpuDevice()
    timed = device.time_calls(nothing, count=SAMPLES_PER_BLOCK, inner=1)
    return middle_mean(timed.host_ns) - middle_mean(bare_pairs(SAMPLES_PER_BLOCK))


def bench_nothing(perfgate):
    perfgate(nothing)


@pytest.mark.perfgate(gate=False)  # the bound is the gate: it moves in clock ticks
def bench_added_per_sample(perfgate):
    added_per_sample()  # warm
    differences = [
        median(added_per_sample() for _ in range(PAIRS)) for _ in range(ROUNDS)
    ]
    assert median(differences) <= ALLOWED_S
    perfgate.record("added_per_sample", differences, unit="s", better="lower")
