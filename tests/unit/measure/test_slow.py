"""Which iterations stand out, and what is known of them."""

import pytest

from pytest_perfgate.measure.slow import KEPT, BlockEvidence, slow_iterations


def one(found):
    (slow,) = found.worst
    return slow


def test_where_nothing_stands_out_there_is_nothing():
    assert slow_iterations([0.001] * 10, [BlockEvidence(iterations=10)]) is None
    assert slow_iterations([], []) is None
    assert slow_iterations([0.0, 0.0, 0.0, 1.0], []) is None


def test_with_few_iterations_the_bound_is_five_medians():
    times = [0.001, 0.001, 0.001, 0.006, 0.001]
    found = slow_iterations(times, [BlockEvidence(iterations=5)])
    assert (found.rule, found.count) == ("5 × median", 1)
    assert found.beyond_s == pytest.approx(0.005)
    assert (one(found).index, one(found).value_s) == (3, 0.006)
    assert one(found).at_s == pytest.approx(0.003)


def test_with_many_it_is_twice_p99():
    times = [0.001] * 198 + [0.5, 0.0019]
    found = slow_iterations(times, [BlockEvidence(iterations=200)])
    assert (found.rule, found.count) == ("2 × P99", 1)
    assert one(found).index == 198


def test_the_place_is_that_in_measured_time_inner_loops_and_all():
    times = [0.001, 0.001, 0.5]
    found = slow_iterations(times, [BlockEvidence(iterations=3)], inner_loop=10)
    assert one(found).at_s == pytest.approx(0.02)


def test_the_worst_are_kept_and_all_are_counted():
    times = [0.001] * 40 + [1.0 + n for n in range(KEPT + 10)]
    found = slow_iterations(times, [BlockEvidence(iterations=len(times))])
    assert found.count == KEPT + 10
    assert len(found.worst) == KEPT
    assert [slow.value_s for slow in found.worst[:2]] == [KEPT + 10.0, KEPT + 9.0]


@pytest.mark.parametrize(
    ("evidence", "known"),
    [
        ({}, ()),
        ({"collections": 1}, ("1 garbage collection",)),
        (
            {"collections": 2, "compilations": 1},
            ("2 garbage collections", "1 compilation"),
        ),
        ({"retries": 1}, ("1 retry of the allocator",)),
        ({"retries": 3}, ("3 retries of the allocator",)),
        ({"sm_mhz": 1900.0}, ()),
        ({"sm_mhz": 990.0}, ("SM clock 990 of 1980 MHz",)),
        ({"waited_ns": 200_000_000}, ("waited 200 ms for a CPU",)),
        (
            {"waited_ns": 1_000_000, "disturbed": "kept waiting for a CPU"},
            ("kept waiting for a CPU",),
        ),
        ({"pushed": 1}, ("1 involuntary context switch",)),
        ({"pushed": 1200}, ("1,200 involuntary context switches",)),
    ],
)
def test_what_is_known_of_its_block(evidence, known):
    blocks = [
        BlockEvidence(iterations=3, sm_mhz=1980.0, collections=7),
        BlockEvidence(iterations=1, **evidence),
    ]
    found = slow_iterations([0.001, 0.001, 0.001, 1.0], blocks)
    assert one(found).known == known


def test_without_a_block_nothing_is_known():
    assert one(slow_iterations([0.001, 0.001, 1.0], [])).known == ()
