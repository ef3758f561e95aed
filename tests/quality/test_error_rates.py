"""How often the gate is wrong, and how often it sees what it must."""

from collections import Counter

import numpy as np
import pytest

from pytest_perfgate.api import compare
from pytest_perfgate.model import Outcome

TRIALS = 120


def simulate(rng, count, *, slower=0.0, sd=0.01):
    """Runs of three samples; what differs is between processes."""
    process = rng.normal(0.0, sd, (count, 1))
    iteration = rng.normal(0.0, 0.002, (count, 3))
    return ((1 + slower) * np.exp(process + iteration)).tolist()


def outcomes(seed, *, slower=0.0, sd=0.01):
    rng = np.random.default_rng(seed)
    return Counter(
        compare(
            simulate(rng, 10, sd=sd), simulate(rng, 12, slower=slower, sd=sd)
        ).outcome
        for _ in range(TRIALS)
    )


@pytest.mark.slow
def test_identical_code_is_never_red_and_nearly_always_green():
    found = outcomes(1)
    assert found[Outcome.REGRESSED] == 0
    # a change that is none may be read as a small gain, not more often than that
    assert found[Outcome.UNCHANGED] >= 0.99 * TRIALS


@pytest.mark.slow
def test_ten_percent_slower_is_seen_and_never_green():
    found = outcomes(2, slower=0.10)
    assert found[Outcome.REGRESSED] >= 0.99 * TRIALS
    assert found[Outcome.UNCHANGED] + found[Outcome.IMPROVED] == 0


@pytest.mark.slow
def test_exactly_at_the_budget_neither_verdict_is_common():
    found = outcomes(3, slower=0.05)
    # one look of three, at its own level: 6 % red before confirmation, 1.5 % green
    assert found[Outcome.REGRESSED] <= 0.07 * TRIALS
    assert found[Outcome.UNCHANGED] <= 0.03 * TRIALS


@pytest.mark.slow
def test_noise_of_three_percent_is_not_red_either():
    found = outcomes(4, sd=0.03)
    assert found[Outcome.REGRESSED] == 0
    assert found[Outcome.UNCHANGED] >= 0.5 * TRIALS
