import math

import numpy as np
import pytest

from pytest_perfgate.gate import bounds
from pytest_perfgate.gate.budgets import Budget
from pytest_perfgate.gate.looks import Look
from pytest_perfgate.stats.interval import Estimate

BAR = bounds.bar_of(Budget(value=0.05))
LAST = Look(index=2)


def estimate_of(delta, *, se=0.005, df=20, spread=0.01):
    return Estimate(
        delta=delta,
        se=se,
        df=df,
        spread=spread,
        baseline_runs=10,
        candidate_runs=12,
    )


def test_bars_of_fractions_are_logarithms_and_of_amounts_are_not():
    assert math.exp(BAR.theta) == pytest.approx(1.05)
    assert math.exp(BAR.double) == pytest.approx(1.10)
    plain = bounds.bar_of(Budget(value=2.0, absolute=True))
    assert (plain.theta, plain.double) == (2.0, 4.0)


def test_noise_of_a_tenth_cannot_pass_by_luck():
    # the bound of the look is within the budget, the strict one beyond twice it
    lucky = estimate_of(-0.20, se=0.10)
    assert lucky.upper(LAST.green) < BAR.theta
    assert not bounds.is_within(lucky, BAR, LAST)
    assert bounds.is_within(estimate_of(0.0), BAR, LAST)


def test_only_the_last_look_suspects():
    doubtful = estimate_of(0.05, se=0.01)
    assert bounds.is_suspect(doubtful, BAR, LAST)
    assert not bounds.is_suspect(doubtful, BAR, Look(index=1, last=False))


@pytest.mark.parametrize(("delta", "far"), [(0.12, True), (-0.12, True), (0.1, False)])
def test_far_beyond_is_the_whole_interval_beyond_twice_the_budget(delta, far):
    assert bounds.is_far_beyond(estimate_of(delta), BAR, LAST) is far


@pytest.mark.parametrize(("spread", "futile"), [(0.01, False), (0.10, True)])
def test_futile_is_what_twice_the_runs_would_not_tell(spread, futile):
    found = estimate_of(0.0, spread=spread)
    assert bounds.is_futile(found, BAR, Look(index=1, last=False)) is futile


def test_a_larger_family_asks_more_of_a_confirmation():
    # p is 0.006: enough for one comparison, not for a thousand
    found = estimate_of(0.06, se=0.0213)
    assert bounds.is_confirmed(found, BAR, Look(comparisons=1), suspect=False)
    assert not bounds.is_confirmed(found, BAR, Look(comparisons=1000), suspect=False)
    assert not bounds.is_confirmed(found, BAR, Look(comparisons=1), suspect=True)


def test_four_stored_sessions_confirm_by_themselves():
    found = estimate_of(0.08, se=0.015)
    many = Look(comparisons=300_000)
    assert bounds.is_confirmed_alone(found, BAR, many, sessions=4)
    assert not bounds.is_confirmed_alone(found, BAR, many, sessions=3)


def test_one_estimate_gets_a_plain_answer():
    deltas = np.linspace(-0.2, 0.2, 41)
    look = Look(index=2, comparisons=300)
    for predicate in (bounds.is_far_beyond, bounds.is_over, bounds.is_within):
        one_by_one = [
            predicate(estimate_of(delta), BAR, look) for delta in deltas.tolist()
        ]
        assert all(isinstance(told, bool) for told in one_by_one)
        assert 0 < sum(one_by_one) < len(one_by_one)
