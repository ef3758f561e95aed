"""A host that decides is told from a call that waits for the GPU itself."""

import pytest

from pytest_perfgate.measure.counters import NOTHING, Counted
from pytest_perfgate.measured import Metric, Samples
from pytest_perfgate.workloads.host_bound import bound_remarks, enqueue_share

TYPICAL_S = 0.001


def traced(busy_s, syncs):
    metric = Metric(name="syncs", unit="1", exact=True)
    return Counted(
        series=(Samples(metric=metric, values=(float(syncs),)),),
        kernels_busy_s=busy_s,
    )


def share(counts, *, shares=(0.9, 0.95, 0.97), fake=False):
    return enqueue_share(shares, counts, typical_s=TYPICAL_S, fake=fake)


@pytest.mark.parametrize(
    ("counts", "known"),
    [
        (traced(0.0002, 0), True),  # tiny kernels
        (traced(0.0009, 0), True),  # handed over one by one
        (traced(0.0002, 1), True),  # waits, and hardly for the GPU
        (traced(0.0009, 1), False),  # a busy GPU, and a call that reads its result
        (traced(0.0, 0), False),  # a profiler that sees no GPU
        (NOTHING, False),
    ],
)
def test_a_trace_tells_who_is_waited_for(counts, known):
    assert share(counts) == (0.95 if known else None)


@pytest.mark.parametrize("counts", [NOTHING, traced(0.0009, 1)])
def test_a_small_share_needs_no_trace(counts):
    assert share(counts, shares=(0.1, 0.3, 0.7)) == 0.3


def test_a_scripted_device_and_one_without_events():
    assert share(NOTHING, fake=True) == 0.95
    assert share(NOTHING, shares=()) is None


@pytest.mark.parametrize(("told", "count"), [(None, 0), (0.79, 0), (0.8, 1)])
def test_what_is_remarked(told, count):
    assert len(list(bound_remarks(told))) == count
