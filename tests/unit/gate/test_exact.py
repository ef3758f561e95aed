import pytest

from pytest_perfgate.gate.judge import Look
from pytest_perfgate.model import Outcome, Reason

LAUNCHES = "kernel_launches__max"
FIRST = Look(index=0, last=False)


def judge(make, stored, now, *, key=LAUNCHES, spec="kernel_launches=+0"):
    judged = make.judge(
        make.baseline(make.runs(key, stored)),
        make.runs(key, now),
        specs=[spec],
        look=FIRST,
    )
    return judged, judged.judgements[0]


@pytest.mark.parametrize(
    ("stored", "now", "spec", "outcome"),
    [
        ([12.0], [12.0], "kernel_launches=+0", Outcome.UNCHANGED),
        ([12.0], [13.0], "kernel_launches=+0", Outcome.REGRESSED),
        ([12.0], [11.0], "kernel_launches=+0", Outcome.UNCHANGED),
        ([12.0], [14.0], "kernel_launches=+2", Outcome.UNCHANGED),
        ([12.0], [15.0], "kernel_launches=+2", Outcome.REGRESSED),
        ([100.0], [105.0], "kernel_launches=5%", Outcome.UNCHANGED),
        ([100.0], [106.0], "kernel_launches=5%", Outcome.REGRESSED),
        ([0.0], [0.0], "kernel_launches=+0", Outcome.UNCHANGED),
        ([0.0], [1.0], "kernel_launches=+0", Outcome.REGRESSED),
    ],
)
def test_a_count_needs_one_run_and_no_confirmation(make, stored, now, spec, outcome):
    judged, found = judge(make, stored, now, spec=spec)
    assert found.outcome is outcome
    assert judged.verdict.outcome is outcome
    assert judged.decided
    assert not judged.flagged


@pytest.mark.parametrize(
    ("stored", "now", "spec", "outcome"),
    [
        ([12.0], [11.0], "hits=+0", Outcome.REGRESSED),
        ([12.0], [13.0], "hits=+0", Outcome.UNCHANGED),
        ([100.0], [96.0], "hits=5%", Outcome.UNCHANGED),
        ([100.0], [95.0], "hits=5%", Outcome.REGRESSED),
        ([1.0], [0.0], "hits=+0", Outcome.REGRESSED),
    ],
)
def test_a_count_of_which_more_is_better(make, stored, now, spec, outcome):
    assert judge(make, stored, now, key="hits__max", spec=spec)[1].outcome is outcome


def test_the_numbers_of_a_count(make):
    found = judge(make, [12.0], [15.0])[1]
    assert found.reason is Reason.COUNT_OVER_BUDGET
    assert found.verdict.detail == "12 → 15"
    assert found.bound == "+0"
    comparison = found.comparison
    assert comparison.ratio == comparison.low == comparison.high == 1.25
    assert comparison.p_identity == 0.0
    assert not comparison.absolute


def test_a_count_from_zero_has_a_difference_and_no_ratio(make):
    comparison = judge(make, [0.0], [3.0])[1].comparison
    assert comparison.absolute
    assert comparison.ratio == 3.0
    falling = judge(make, [3.0], [0.0], key="hits__max", spec="hits=+0")[1].comparison
    assert falling.absolute
    assert falling.ratio == 3.0


def test_a_count_that_better_is_more_of_has_its_ratio_the_other_way(make):
    assert (
        judge(make, [10.0], [8.0], key="hits__max", spec="hits=5%")[1].comparison.ratio
        == 1.25
    )


def test_a_count_that_differs_between_runs_is_over_only_if_all_are(make):
    mixed = judge(make, [12.0], [12.0, 14.0, 12.0])[1]
    assert mixed.outcome is Outcome.INCONCLUSIVE
    assert mixed.verdict.detail == "differs between runs: 12 → 12 and 14"
    assert judge(make, [12.0], [13.0, 14.0])[1].outcome is Outcome.REGRESSED


def test_the_middle_of_differing_stored_counts_is_the_reference(make):
    assert judge(make, [12.0, 12.0, 15.0], [13.0])[1].outcome is Outcome.REGRESSED


def test_a_size_that_never_moved_is_compared_exactly(make):
    stored, now = [1e9] * 3, [1.06e9] * 3
    judged, found = judge(
        make, stored, now, key="peak_memory__max", spec="peak_memory=5%"
    )
    assert found.reason is Reason.COUNT_OVER_BUDGET
    assert not judged.flagged


@pytest.mark.parametrize(
    ("stored", "now"),
    [
        ([1e9, 1e9, 1.01e9], [1.06e9] * 3),
        ([1e9] * 3, [1.06e9, 1.06e9, 1.07e9]),
        ([1e9] * 2, [2e9] * 3),
    ],
)
def test_a_size_that_moves_is_noisy(make, stored, now):
    found = judge(make, stored, now, key="peak_memory__max", spec="peak_memory=5%")[1]
    assert found.reason is not Reason.COUNT_OVER_BUDGET


def test_a_time_is_never_taken_for_exact(make):
    judged, found = judge(make, [1.0] * 5, [1.5] * 5, key="latency__median", spec="5%")
    assert found.reason is Reason.FLAGGED
    assert judged.flagged


def test_a_count_that_the_baseline_or_a_run_lacks(make):
    both = tuple(
        make.run(latency__median=1.0, kernel_launches__max=3.0) for _ in range(3)
    )
    mean = tuple(
        make.run(latency__median=1.0, kernel_launches__mean=3.0) for _ in range(3)
    )
    specs = ["kernel_launches.mean=+0"]
    absent = make.judge(make.baseline(both), mean, specs=specs)
    assert absent.verdict.outcome is Outcome.NO_BASELINE
    gone = make.judge(make.baseline(mean), (*mean[:2], *both[:1]), specs=specs)
    assert gone.verdict.outcome is Outcome.ERROR
    assert gone.verdict.detail == "kernel_launches mean in 1 of 3 runs"


def test_a_count_that_is_only_shown_is_shown_as_one(make):
    runs = tuple(
        make.run(latency__median=1.0, kernel_launches__max=n) for n in (3.0, 3.0, 3.0)
    )
    judged = make.judge(make.baseline(runs), runs)
    shown = next(
        one for one in judged.judgements if one.metric.name == "kernel_launches"
    )
    assert not shown.gated
    assert shown.comparison.ratio == 1.0
    assert shown.comparison.p_identity == 1.0
