import numpy as np
import pytest

from pytest_perfgate.api import compare, load_report
from pytest_perfgate.errors import BaselineError
from pytest_perfgate.model import Outcome, Reason


def runs(count, *, center=1.0, sd=0.01, samples=40, seed=0):
    """Runs whose medians have exactly the spread and the center asked for."""
    rng = np.random.default_rng(seed)
    effects = rng.normal(size=count)
    effects = sd * (effects - effects.mean()) / effects.std(ddof=1)
    noise = np.linspace(-0.01, 0.01, samples)
    return [
        (center * np.exp(effect + rng.permutation(noise))).tolist()
        for effect in effects
    ]


def test_identical_code():
    judgement = compare(runs(10), runs(12, seed=1))
    assert judgement.outcome is Outcome.UNCHANGED
    assert judgement.reason is Reason.WITHIN_BUDGET
    assert judgement.verdict.outcome is judgement.outcome
    assert judgement.comparison.ratio == pytest.approx(1.0)


def test_a_slowdown_is_flagged_until_it_is_confirmed():
    slow = runs(12, center=1.2, seed=1)
    assert compare(runs(10), slow).reason is Reason.FLAGGED
    fresh = runs(5, center=1.2, seed=2)
    assert (
        compare(runs(10), slow, confirmation=fresh).reason
        is Reason.CONFIRMED_WITHOUT_BASE
    )
    assert (
        compare(runs(10), slow, confirmation=tuple(fresh)).outcome is Outcome.REGRESSED
    )
    pairs = (runs(5, seed=2), fresh)
    assert compare(runs(10), slow, confirmation=pairs).reason is Reason.CONFIRMED
    stale = (runs(5, seed=2), runs(5, seed=2))
    assert compare(runs(10), slow, confirmation=stale).outcome is Outcome.UNCHANGED
    luck = runs(5, seed=3)
    assert compare(runs(10), slow, confirmation=luck).reason is Reason.UNCONFIRMED


def test_numpy_arrays_are_runs_too():
    base, now = np.array(runs(10)), np.array(runs(12, center=1.2, seed=1))
    fresh = (np.array(runs(5)), np.array(runs(5, center=1.2)))
    assert compare(base, now, confirmation=fresh).reason is Reason.CONFIRMED


def test_a_rate_is_better_when_higher():
    fall = compare(runs(10, center=1000), runs(12, center=900, seed=1), better="higher")
    assert fall.outcome is Outcome.REGRESSED
    assert fall.comparison.ratio == pytest.approx(1000 / 900)


@pytest.mark.parametrize("budget", ["30%", 0.3])
def test_the_budget_decides(budget):
    found = compare(runs(10), runs(12, center=1.2, seed=1), budget=budget)
    assert found.outcome is Outcome.UNCHANGED
    assert found.budget == pytest.approx(0.3)


def test_pairs_cancel_what_they_share():
    base = runs(8, sd=0.3)
    slow = (np.array(base) * 1.1).tolist()
    assert compare(base, slow, paired=True).outcome is Outcome.REGRESSED
    assert compare(base, slow).outcome is Outcome.INCONCLUSIVE


def test_the_floor_alone_is_suspect_unless_paired():
    slow = runs(12, center=1.2, seed=1)
    assert compare(runs(10), slow, statistic="floor").reason is Reason.SUSPECT
    assert (
        compare(runs(10), runs(12, seed=1), statistic="floor").outcome
        is Outcome.UNCHANGED
    )
    paired = compare(runs(8), runs(8, center=1.2), statistic="floor", paired=True)
    assert paired.outcome is Outcome.REGRESSED
    confirmed = compare(
        runs(10), slow, statistic="floor", confirmation=(runs(5), runs(5, center=1.2))
    )
    assert confirmed.reason is Reason.CONFIRMED
    alone = compare(
        runs(10), slow, statistic="floor", confirmation=runs(5, center=1.2, seed=2)
    )
    assert alone.reason is Reason.SUSPECT


def test_the_family_makes_it_harder():
    base, slow = runs(3, sd=0.015), runs(3, center=1.15, sd=0.015, seed=1)
    assert compare(base, slow).reason is Reason.FLAGGED
    assert compare(base, slow, comparisons=3000).reason is Reason.SUSPECT


def test_every_run_counts_as_the_shortest_where_length_matters():
    long = runs(10, samples=2000)
    short = runs(10, samples=1000, seed=1)
    cut = [run[:1000] for run in long]
    for statistic in ("floor", "p95", "max"):
        assert (
            compare(long, short, statistic=statistic).comparison
            == compare(cut, short, statistic=statistic).comparison
        )
    assert compare(long, short).comparison != compare(cut, short).comparison


def test_a_tail_needs_samples():
    found = compare(runs(10, samples=50), runs(12, samples=50), statistic="p99")
    assert found.reason is Reason.TOO_FEW_TAIL_SAMPLES
    assert "P99 needs 200 and 1,000" in found.verdict.detail


def test_drifting_runs_are_not_steady():
    ramp = [np.linspace(1.0, 1.1 + 0.001 * i, 300).tolist() for i in range(6)]
    assert compare(ramp, ramp).reason is Reason.NOT_STEADY


GOOD = [[1.0, 1.1], [1.0, 1.2], [1.0, 1.1]]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"candidate_runs": [[1.0], [float("nan")]]},
            r"candidate_runs\[1\]\[0\] is nan",
        ),
        ({"baseline_runs": [[1.0, float("inf")]]}, r"baseline_runs\[0\]\[1\] is inf"),
        ({"candidate_runs": []}, "candidate_runs is empty"),
        ({"candidate_runs": [[1.0], []]}, r"candidate_runs\[1\] has no sample"),
        ({"candidate_runs": [[1.0], [0.0]]}, r"the median of candidate_runs\[1\] is 0"),
        ({"baseline_runs": [[-1.0]]}, r"the median of baseline_runs\[0\] is -1"),
        ({"statistic": "medain"}, "statistic='medain' is none of median"),
        ({"better": "faster"}, "better='faster' is neither"),
        ({"budget": "5 percent"}, "budget='5 percent' is neither"),
        ({"budget": 0}, "budget=0 allows nothing"),
        ({"paired": True, "baseline_runs": GOOD[:2]}, "got 2 and 3"),
        ({"comparisons": 0}, r"Look\.comparisons=0"),
        ({"confirmation": (GOOD, GOOD[:2])}, "3 baseline and 2 candidate runs; made"),
        (
            {"confirmation": [[1.0, float("nan")]]},
            r"fresh candidate runs\[0\]\[1\] is nan",
        ),
        ({"confirmation": []}, "fresh candidate runs is empty"),
        ({"confirmation": ()}, "fresh candidate runs is empty"),
    ],
)
def test_what_cannot_be_compared_is_refused_by_name(arguments, message):
    with pytest.raises(ValueError, match=message):
        compare(**{"baseline_runs": GOOD, "candidate_runs": GOOD, **arguments})


def test_a_file_that_is_no_report_is_refused(tmp_path):
    path = tmp_path / "report.json"
    path.write_text("{}")
    with pytest.raises(BaselineError, match=r"report\.json"):
        load_report(path)
