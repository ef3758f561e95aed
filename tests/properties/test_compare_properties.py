"""What holds for any numbers whatever."""

import math

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_perfgate.api import compare
from pytest_perfgate.model import Outcome

# the same examples everywhere, and no clock decides
steady = settings(
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
samples = st.floats(min_value=0.5, max_value=2.0)
one_run = st.lists(samples, min_size=1, max_size=8)
side = st.lists(one_run, min_size=1, max_size=8)
factors = st.sampled_from([1e-9, 0.25, 3.0, 1e6])
statistics = st.sampled_from(["median", "mean", "floor", "p99"])
SEVERITY = {Outcome.REGRESSED: 2, Outcome.INCONCLUSIVE: 1}


def times(factor, runs):
    return [[factor * value for value in run] for run in runs]


def numbers(judgement):
    found = judgement.comparison
    return (
        () if found is None else (found.ratio, found.low, found.high, found.p_identity)
    )


@steady
@given(side, side, factors, statistics)
def test_scaling_both_sides_changes_nothing(base, now, factor, statistic):
    plain = compare(base, now, statistic=statistic)
    scaled = compare(times(factor, base), times(factor, now), statistic=statistic)
    assert scaled.verdict.outcome is plain.verdict.outcome
    assert scaled.reason is plain.reason
    assert numbers(scaled) == pytest.approx(numbers(plain), rel=1e-6, abs=1e-9)


@steady
@given(side, side, st.randoms(use_true_random=False), statistics)
def test_the_order_of_runs_changes_nothing(base, now, random, statistic):
    plain = compare(base, now, statistic=statistic)
    random.shuffle(base)
    random.shuffle(now)
    shuffled = compare(base, now, statistic=statistic)
    assert shuffled.verdict.outcome is plain.verdict.outcome
    assert numbers(shuffled) == pytest.approx(numbers(plain), rel=1e-9, abs=1e-12)


@steady
@given(side, side)
def test_swapping_the_sides_mirrors_the_ratio(base, now):
    forth, back = compare(base, now).comparison, compare(now, base).comparison
    assert (forth is None) == (back is None)
    if forth is not None:
        assert forth.ratio * back.ratio == pytest.approx(1.0)
        assert forth.p_identity + back.p_identity == pytest.approx(1.0)
        assert forth.spread == pytest.approx(back.spread)


@steady
@given(side, side)
def test_the_direction_mirrors_the_ratio(base, now):
    lower, higher = (
        compare(base, now).comparison,
        compare(base, now, better="higher").comparison,
    )
    if lower is not None:
        assert lower.ratio * higher.ratio == pytest.approx(1.0)


@steady
@given(side, side, st.floats(0.01, 1.0), st.floats(0.01, 1.0), statistics)
def test_a_larger_budget_is_never_worse(base, now, one, other, statistic):
    small, large = sorted((one, other))
    strict = compare(base, now, statistic=statistic, budget=small)
    lenient = compare(base, now, statistic=statistic, budget=large)
    assert SEVERITY.get(lenient.outcome, 0) <= SEVERITY.get(strict.outcome, 0)


@steady
@given(side, side, st.data())
def test_what_is_not_a_number_never_passes(base, now, data):
    runs = data.draw(st.sampled_from([base, now]))
    run = data.draw(st.integers(0, len(runs) - 1))
    place = data.draw(st.integers(0, len(runs[run]) - 1))
    runs[run][place] = data.draw(st.sampled_from([math.nan, math.inf, -math.inf]))
    with pytest.raises(ValueError, match="not a finite number"):
        compare(base, now)


@steady
@given(side, side, statistics)
def test_the_same_numbers_have_the_same_verdict(base, now, statistic):
    assert compare(base, now, statistic=statistic) == compare(
        base, now, statistic=statistic
    )


@steady
@given(side, side)
def test_a_verdict_agrees_with_its_interval(base, now):
    found = compare(base, now, budget=0.1)
    if found.outcome is Outcome.REGRESSED:
        assert found.comparison.low > 1.1
    elif found.outcome in {Outcome.UNCHANGED, Outcome.IMPROVED}:
        assert found.comparison.high < 1.1


@steady
@given(st.lists(samples, min_size=1, max_size=8), st.integers(1, 2))
def test_fewer_than_three_runs_never_decide(run, few):
    found = compare([run] * few, [[2 * value for value in run]] * 12)
    assert found.outcome is Outcome.INCONCLUSIVE
