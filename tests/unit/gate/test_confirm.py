import pytest

from pytest_perfgate.gate.confirm import FreshPairs
from pytest_perfgate.gate.judge import Look
from pytest_perfgate.model import Outcome, Reason

MEDIAN = "latency__median"
LAST = Look(index=2, last=True)


@pytest.fixture
def baseline(make):
    return make.baseline(make.noisy(MEDIAN, 10))


@pytest.fixture
def slow(make):
    return make.noisy(MEDIAN, 12, center=1.2, seed=1)


def pairs(make, ratio, *, count=5, sd=0.005, key=MEDIAN):
    return FreshPairs(
        baseline=make.noisy(key, count, sd=0.05, seed=7),
        candidate=tuple(
            make.run(
                **{
                    key: b.get("latency", key[9:]).value
                    * c.get("latency", key[9:]).value
                }
            )
            for b, c in zip(
                make.noisy(key, count, sd=0.05, seed=7),
                make.noisy(key, count, center=ratio, sd=sd, seed=8),
                strict=True,
            )
        ),
    )


# without base code ------------------------------------------------------------


def test_fresh_runs_confirm_against_the_stored_baseline(make, baseline, slow):
    judged = make.judge(
        baseline, slow, confirmation=make.noisy(MEDIAN, 5, center=1.19, seed=2)
    )
    assert judged.verdict.outcome is Outcome.REGRESSED
    assert judged.verdict.reason is Reason.CONFIRMED_WITHOUT_BASE
    assert not judged.flagged
    found = judged.judgements[0]
    assert found.comparison.ratio == pytest.approx(1.19)
    assert found.comparison.candidate_runs == 5
    assert found.remarks == ("+20.0 % worse when screened",)


def test_what_was_luck_is_not_confirmed(make, baseline, slow):
    judged = make.judge(baseline, slow, confirmation=make.noisy(MEDIAN, 5, seed=2))
    assert judged.verdict.outcome is Outcome.INCONCLUSIVE
    assert judged.verdict.reason is Reason.UNCONFIRMED
    assert not judged.flagged


def test_beyond_the_budget_is_not_enough_without_its_bound(make, baseline, slow):
    fresh = make.noisy(MEDIAN, 5, center=1.055, seed=2)
    assert (
        make.judge(baseline, slow, confirmation=fresh).verdict.reason
        is Reason.UNCONFIRMED
    )


def test_one_baseline_pays_for_the_family_and_four_sessions_do_not(make):
    fresh = make.noisy(MEDIAN, 5, center=1.2, sd=0.05, seed=2)
    screened = make.noisy(MEDIAN, 12, center=1.9, sd=0.01, seed=1)
    look = Look(index=2, last=True, comparisons=3000)
    one = make.baseline(make.noisy(MEDIAN, 12, sd=0.05))
    assert (
        make.judge(one, screened, look=look, confirmation=fresh).verdict.reason
        is Reason.UNCONFIRMED
    )
    four = make.baseline(*(make.noisy(MEDIAN, 3, sd=0.05, seed=s) for s in range(4)))
    judged = make.judge(four, screened, look=look, confirmation=fresh)
    assert judged.verdict.reason is Reason.CONFIRMED_WITHOUT_BASE


def test_too_few_fresh_runs_confirm_nothing(make, baseline, slow):
    judged = make.judge(baseline, slow, confirmation=make.noisy(MEDIAN, 4, center=1.2))
    assert judged.verdict.reason is Reason.UNCONFIRMED
    assert judged.verdict.detail == "4 fresh runs, needs 5"


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [("latency__floor", 1.0, Reason.METRIC_ABSENT), (MEDIAN, 0.0, Reason.NOT_A_NUMBER)],
)
def test_broken_fresh_runs_are_an_error(make, baseline, slow, key, value, reason):
    fresh = (*make.noisy(MEDIAN, 4, center=1.2), make.run(**{key: value}))
    judged = make.judge(baseline, slow, confirmation=fresh)
    assert (judged.verdict.outcome, judged.verdict.reason) == (Outcome.ERROR, reason)


def test_what_was_not_flagged_is_left_alone(make, baseline):
    judged = make.judge(
        baseline,
        make.noisy(MEDIAN, 12, seed=1),
        confirmation=make.noisy(MEDIAN, 5, center=2.0, seed=2),
    )
    assert judged.verdict.outcome is Outcome.UNCHANGED


def test_a_suspect_is_never_confirmed_without_base_code(make):
    baseline = make.baseline(make.noisy(MEDIAN, 10, sd=0.02))
    screened = make.noisy(MEDIAN, 6, center=1.06, sd=0.02, seed=1)
    judged = make.judge(
        baseline, screened, confirmation=make.noisy(MEDIAN, 5, center=1.5, seed=2)
    )
    assert judged.verdict.reason is Reason.SUSPECT
    assert not judged.suspect


def test_a_limit_is_not_for_confirming(make, baseline, slow):
    judged = make.judge(
        baseline,
        slow,
        limits=["median<=1s"],
        confirmation=make.noisy(MEDIAN, 5, seed=2),
    )
    assert judged.verdict.reason is Reason.OVER_LIMIT


def test_a_confirmation_before_the_decision_changes_nothing(make):
    baseline = make.baseline(make.noisy(MEDIAN, 10, sd=0.03))
    runs = make.noisy(MEDIAN, 3, sd=0.03, seed=1)
    look = Look(index=0, last=False)
    fresh = make.noisy(MEDIAN, 5, center=2.0)
    open_ = make.judge(baseline, runs, look=look, confirmation=fresh)
    assert not open_.decided
    assert open_.verdict.reason is Reason.TOO_NOISY


def test_an_absolute_budget_is_confirmed_in_its_unit(make):
    baseline = make.baseline(make.runs("backlog__median", [0.0, 1.0, -1.0, 0.5, -0.5]))
    more = make.runs("backlog__median", [9.5, 10.5, 10.0, 10.1, 9.9])
    judged = make.judge(baseline, more, specs=["backlog=+3"], confirmation=more)
    assert judged.verdict.reason is Reason.CONFIRMED_WITHOUT_BASE
    assert judged.judgements[0].remarks == ()


# with base code ---------------------------------------------------------------


def test_fresh_pairs_confirm(make, baseline, slow):
    judged = make.judge(baseline, slow, confirmation=pairs(make, 1.2))
    assert judged.verdict.outcome is Outcome.REGRESSED
    assert judged.verdict.reason is Reason.CONFIRMED
    assert judged.judgements[0].comparison.ratio == pytest.approx(1.2)


def test_fresh_pairs_that_see_nothing_acquit_and_call_the_baseline_stale(
    make, baseline, slow
):
    judged = make.judge(baseline, slow, confirmation=pairs(make, 1.0))
    assert judged.verdict.outcome is Outcome.UNCHANGED
    assert any(one.startswith("baseline-stale") for one in judged.judgements[0].remarks)


def test_fresh_pairs_that_cannot_tell_leave_it_unconfirmed(make, baseline, slow):
    judged = make.judge(baseline, slow, confirmation=pairs(make, 1.03, sd=0.03))
    assert judged.verdict.reason is Reason.UNCONFIRMED


def test_pairs_pay_for_a_very_large_family(make, baseline, slow):
    look = Look(index=2, last=True, comparisons=10**8, base_code=True)
    judged = make.judge(
        baseline, slow, look=look, confirmation=pairs(make, 1.2, sd=0.02)
    )
    assert judged.verdict.reason is Reason.UNCONFIRMED


def test_a_suspect_is_confirmed_in_pairs_by_a_stricter_bound(make):
    baseline = make.baseline(make.noisy(MEDIAN, 10, sd=0.02))
    screened = make.noisy(MEDIAN, 6, center=1.06, sd=0.02, seed=1)
    clear = make.judge(baseline, screened, confirmation=pairs(make, 1.1))
    assert clear.verdict.reason is Reason.CONFIRMED
    near = make.judge(baseline, screened, confirmation=pairs(make, 1.054))
    assert near.verdict.reason is Reason.UNCONFIRMED


def test_pairs_leave_alone_what_is_not_in_doubt(make, baseline):
    judged = make.judge(
        baseline, make.noisy(MEDIAN, 12, seed=1), confirmation=pairs(make, 2.0)
    )
    assert judged.verdict.outcome is Outcome.UNCHANGED


def test_four_pairs_confirm_nothing(make, baseline, slow):
    judged = make.judge(baseline, slow, confirmation=pairs(make, 1.2, count=4))
    assert judged.verdict.reason is Reason.UNCONFIRMED


def test_base_code_without_the_metric_is_an_error(make, baseline, slow):
    fresh = FreshPairs(
        baseline=make.runs("latency__floor", [1.0] * 5), candidate=make.noisy(MEDIAN, 5)
    )
    judged = make.judge(baseline, slow, confirmation=fresh)
    assert judged.verdict.reason is Reason.METRIC_ABSENT


def test_what_does_not_pair_is_refused(make):
    with pytest.raises(
        ValueError, match="3 baseline and 2 candidate runs are not pairs"
    ):
        FreshPairs(baseline=make.noisy(MEDIAN, 3), candidate=make.noisy(MEDIAN, 2))
