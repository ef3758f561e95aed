import math

import numpy as np
import pytest
import scipy.stats

from pytest_perfgate.stats.limits import mean_bounds, samples_needed, share_bounds


@pytest.mark.parametrize(
    ("alpha", "needed"),
    [(0.01, (459, 662, 838, 1001, 1157)), (0.05, (299, 473, 628, 773, 913))],
)
def test_samples_that_prove_one_percent(alpha, needed):
    found = [samples_needed(misses, allowed=0.01, alpha=alpha) for misses in range(5)]
    assert tuple(found) == needed


def test_the_bounds_of_a_mean_are_students():
    values = [1.0, 1.1, 0.9, 1.05]
    bounds = mean_bounds(values, alpha_low=0.01, alpha_high=0.05)
    se = np.std(values, ddof=1) / 2
    assert bounds.value == pytest.approx(1.0125)
    assert bounds.low == pytest.approx(1.0125 - scipy.stats.t.ppf(0.99, 3) * se)
    assert bounds.high == pytest.approx(1.0125 + scipy.stats.t.ppf(0.95, 3) * se)


def test_equal_values_still_have_an_interval():
    bounds = mean_bounds([2.0] * 4, alpha_low=0.01, alpha_high=0.01)
    assert bounds.low < 2.0 < bounds.high


def test_no_miss_in_any_run():
    bounds = share_bounds([0.0] * 12, samples=200, alpha_low=0.01, alpha_high=0.01)
    assert bounds.value == 0
    assert bounds.low == 0
    cost = (scipy.stats.t.ppf(0.99, 2399) / scipy.stats.t.ppf(0.99, 11)) ** 2
    assert bounds.high == pytest.approx(1 - 0.01 ** (1 / (2400 * cost)))


def test_nothing_but_misses():
    bounds = share_bounds([1.0] * 5, samples=50, alpha_low=0.01, alpha_high=0.01)
    assert bounds.high == 1
    assert 0.9 < bounds.low < 1


def test_many_runs_come_near_clopper_and_pearson():
    rng = np.random.default_rng(8)
    shares = (rng.binomial(100, 0.05, 200) / 100).tolist()
    bounds = share_bounds(shares, samples=100, alpha_low=0.025, alpha_high=0.025)
    misses = round(sum(shares) * 100)
    exact = scipy.stats.binomtest(misses, 20000).proportion_ci(0.95)
    assert bounds.low == pytest.approx(exact.low, rel=0.05)
    assert bounds.high == pytest.approx(exact.high, rel=0.05)


def test_runs_that_differ_by_more_than_chance_count_for_less():
    even = share_bounds([0.02] * 6, samples=500, alpha_low=0.02, alpha_high=0.02)
    clustered = share_bounds(
        [0.12, 0.0, 0.0, 0.0, 0.0, 0.0], samples=500, alpha_low=0.02, alpha_high=0.02
    )
    assert math.isclose(even.value, clustered.value)
    assert clustered.high > 2 * even.high
