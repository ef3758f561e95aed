import math

import numpy as np
import pytest

from pytest_perfgate.stats.samples import drift, mean_error, quantile, standard_errors


def generator():
    return np.random.default_rng(20240501)


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.95, 0.99, 1.0])
@pytest.mark.parametrize("n", [1, 2, 9, 200])
def test_type_7_is_the_quantile_everybody_computes(share, n):
    ordered = np.sort(generator().normal(size=n))
    assert quantile(ordered, share) == pytest.approx(np.quantile(ordered, share))


@pytest.mark.parametrize("share", [0.001, 0.5, 0.99, 0.9999])
def test_type_8_is_the_median_unbiased_quantile(share):
    ordered = np.sort(generator().normal(size=50))
    expected = np.quantile(ordered, share, method="median_unbiased")
    assert quantile(ordered, share, alpha=1 / 3, beta=1 / 3) == pytest.approx(expected)


def test_the_standard_error_is_near_the_true_one_for_independent_samples():
    draws = generator().lognormal(0, 0.05, (400, 1000))
    truth = {
        "median": np.median(draws, axis=1).std(),
        "p99": np.quantile(draws, 0.99, axis=1).std(),
    }
    shares = {"median": 0.5, "p99": 0.99}
    found = [standard_errors(draws[i], shares) for i in range(40)]
    for name, value in truth.items():
        mean = np.mean([one[name] for one in found])
        assert mean == pytest.approx(value, rel=0.2)


def test_the_standard_error_grows_with_the_likeness_of_neighbours():
    noise = generator().normal(size=2000)
    alike = np.repeat(noise[:100], 20)
    shares = {"median": 0.5}
    independent = standard_errors(1 + 0.01 * noise, shares)["median"]
    clustered = standard_errors(1 + 0.01 * alike, shares)["median"]
    assert clustered > 2.5 * independent


def test_the_same_samples_always_have_the_same_standard_error():
    values = generator().normal(size=333)
    assert standard_errors(values, {"p95": 0.95}) == standard_errors(
        values, {"p95": 0.95}
    )


def test_a_single_sample_says_nothing_about_its_spread():
    assert standard_errors([3.0], {"median": 0.5}) == {"median": 0.0}
    assert mean_error([3.0]) == 0.0


def test_equal_samples_have_no_standard_error():
    assert standard_errors([2.0] * 50, {"median": 0.5, "floor": 0.0}) == {
        "median": 0.0,
        "floor": 0.0,
    }


def test_nothing_asked_nothing_answered():
    assert standard_errors([1.0, 2.0], {}) == {}


def test_a_long_run_is_cut_into_sections_and_agrees():
    values = generator().lognormal(0, 0.05, 16384)
    long = standard_errors(values, {"median": 0.5, "floor": 0.0})
    short = standard_errors(values[:8192], {"median": 0.5})
    assert long["median"] == pytest.approx(short["median"] / math.sqrt(2), rel=0.35)
    assert long["floor"] > 0


@pytest.mark.parametrize("n", [500, 16384])
def test_the_standard_error_of_a_mean(n):
    values = generator().normal(1, 0.1, n)
    assert mean_error(values) == pytest.approx(0.1 / math.sqrt(n), rel=0.35)


def test_no_trend_is_no_drift():
    assert drift(1 + 0.01 * generator().normal(size=300)) is None


def test_a_trend_is_the_last_third_over_the_first():
    ramp = np.linspace(1.0, 1.3, 300) + 0.001 * generator().normal(size=300)
    assert drift(ramp) == pytest.approx(math.log(1.25 / 1.05), rel=0.02)
    assert drift(ramp[::-1]) == pytest.approx(-math.log(1.25 / 1.05), rel=0.02)


def test_a_perfect_order_is_a_trend():
    assert drift([1.0 + i for i in range(60)]) > 0


def test_too_few_samples_have_no_trend():
    assert drift(np.linspace(1, 2, 49)) is None


def test_equal_samples_have_no_trend():
    assert drift([1.0] * 200) is None


@pytest.mark.parametrize("values", [np.linspace(-1, 1, 90), np.linspace(1, -1, 90)])
def test_a_trend_through_zero_is_no_ratio(values):
    assert drift(values) is None


def test_ties_share_their_ranks():
    # steps of equal values: a trend, seen through many ties
    assert drift([1.0] * 100 + [1.2] * 100 + [1.4] * 100) == pytest.approx(
        math.log(1.4)
    )
