import math

import numpy as np
import pytest
import scipy.stats

from pytest_perfgate.stats.interval import (
    Estimate,
    detectable,
    pairs,
    runs_needed,
    sample_variance,
    t_quantile,
    two_samples,
)

THETA = math.log(1.05)


def estimate_of(spread, *, baseline=10, candidate=12, paired=False, session=0.0):
    return Estimate(
        delta=0.0,
        se=1.0,
        df=baseline + candidate - 2,
        spread=spread,
        baseline_runs=baseline,
        candidate_runs=candidate,
        session_variance=session,
        paired=paired,
    )


def test_without_session_variance_it_is_students_test():
    rng = np.random.default_rng(5)
    base, cand = rng.normal(0, 0.02, 10), rng.normal(0.03, 0.02, 12)
    found = two_samples([base.tolist()], cand.tolist())
    plain = scipy.stats.ttest_ind(cand, base, alternative="greater")
    # the variance between sessions, (s/4)²·2, is added to the textbook's
    textbook = math.sqrt(found.se**2 - found.session_variance)
    assert found.delta / textbook == pytest.approx(plain.statistic)
    assert found.session_variance == pytest.approx(2 * (found.spread / 4) ** 2)
    assert found.df == 20
    interval = scipy.stats.t.ppf(0.98, 20) * found.se
    assert found.upper(0.02) == pytest.approx(found.delta + interval)
    assert found.lower(0.02) == pytest.approx(found.delta - interval)


def test_p_values_point_both_ways():
    found = two_samples([[0.0, 0.01, -0.01]], [0.1, 0.11, 0.09])
    assert found.p_worse < 0.001
    assert found.p_better == pytest.approx(1 - found.p_worse)


def test_equal_runs_have_the_least_spread_that_is_believed():
    found = two_samples([[1.0] * 5], [1.0] * 5)
    assert found.delta == 0
    assert found.spread == 0.001
    assert not found.variability_changed


def test_the_variance_within_runs_is_a_floor():
    found = two_samples([[1.0] * 5], [1.0] * 5, within_variance=0.02**2)
    assert found.spread == pytest.approx(0.02)


def test_another_variability_calls_for_welch():
    base = [0.0005 * i for i in range(10)]
    cand = [0.2, 0.0, -0.2, 0.1]
    found = two_samples([base], cand)
    welch = scipy.stats.ttest_ind(cand, base, equal_var=False)
    assert found.variability_changed
    assert found.df == pytest.approx(welch.df)
    textbook = math.sqrt(found.se**2 - found.session_variance)
    assert found.delta / textbook == pytest.approx(welch.statistic)


def test_welch_also_where_the_baseline_is_the_noisy_side():
    base = [0.2, 0.0, -0.2, 0.1]
    found = two_samples([base], [0.0005 * i for i in range(10)])
    assert found.variability_changed


def test_three_sessions_do_not_yet_tell_how_sessions_differ():
    sessions = [[0.0, 0.01, 0.02], [0.1, 0.11, 0.12], [0.2, 0.21, 0.22]]
    found = two_samples(sessions, [0.1, 0.11, 0.12])
    assert found.session_variance == pytest.approx(
        (found.spread / 4) ** 2 * (1 + 1 / 3)
    )


def test_four_sessions_tell_how_sessions_differ():
    rng = np.random.default_rng(3)
    means = rng.normal(0, 0.1, 8)
    sessions = [(mean + rng.normal(0, 0.01, 5)).tolist() for mean in means]
    found = two_samples(sessions, [0.0, 0.01, -0.01])
    array = np.array(sessions)
    msb = 5 * array.mean(axis=1).var(ddof=1)
    msw = array.var(axis=1, ddof=1).mean()
    tau2 = (msb - msw) / 5
    assert found.session_variance == pytest.approx(
        max(tau2, (found.spread / 4) ** 2) * (1 + 1 / 8)
    )
    assert tau2 > (found.spread / 4) ** 2


def test_sessions_that_agree_leave_the_least_session_variance():
    sessions = [[0.0, 0.02, -0.02, 0.01]] * 5
    found = two_samples(sessions, [0.0, 0.01, -0.01])
    assert found.session_variance == pytest.approx((found.spread / 4) ** 2 * 1.2)


def test_sessions_of_one_run_each_differ_by_all_they_differ():
    sessions = [[0.0], [0.1], [-0.1], [0.05]]
    found = two_samples(sessions, [0.0, 0.1, -0.1])
    assert found.session_variance == pytest.approx(
        sample_variance([0.0, 0.1, -0.1, 0.05]) * 1.25
    )


def test_pairs_are_a_one_sample_test():
    differences = [0.05, 0.06, 0.04, 0.055, 0.045]
    found = pairs(differences)
    plain = scipy.stats.ttest_1samp(differences, 0)
    assert found.delta / found.se == pytest.approx(plain.statistic)
    assert found.df == 4
    assert found.session_variance == 0


def test_equal_pairs_have_the_least_spread_that_is_believed():
    assert pairs([0.0] * 5).spread == 0.001
    assert pairs([0.0] * 5, within_variance=1e-4).spread == pytest.approx(0.01)


def test_one_value_has_no_variance():
    assert sample_variance([3.0]) == 0.0


@pytest.mark.parametrize(
    ("spread", "percent"),
    [(0.005, 5.8), (0.01, 6.5), (0.02, 8.1), (0.03, 9.6), (0.05, 12.8)],
)
def test_what_ten_runs_against_twelve_can_see(spread, percent):
    seen = detectable(estimate_of(spread), theta=THETA, runs=12)
    assert 100 * math.expm1(seen) == pytest.approx(percent, abs=0.06)


def test_sessions_make_the_gate_less_sharp():
    spread = 0.02
    with_sessions = estimate_of(spread, session=2 * (spread / 4) ** 2)
    assert detectable(with_sessions, theta=THETA, runs=12) > detectable(
        estimate_of(spread), theta=THETA, runs=12
    )


@pytest.mark.parametrize("paired", [False, True])
@pytest.mark.parametrize("sessions", [False, True])
@pytest.mark.parametrize("spread", [0.005, 0.02, 0.04])
def test_the_runs_needed_are_the_smallest_number_that_is_enough(
    spread, paired, sessions
):
    between = 0.0 if paired else 1e-5
    found = estimate_of(spread, paired=paired, session=between)
    needed = runs_needed(found, theta=THETA, alpha=0.015, sessions=sessions)

    def half_width(runs):
        if paired:
            return t_quantile(0.985, runs - 1) * spread / math.sqrt(runs)
        variance = spread**2 * (1 / 10 + 1 / runs) + between * sessions
        return t_quantile(0.985, 8 + runs) * math.sqrt(variance)

    assert half_width(needed) < THETA
    assert needed == 3 or half_width(needed - 1) >= THETA


def test_no_number_of_runs_makes_up_for_a_baseline_that_is_too_noisy():
    assert runs_needed(estimate_of(0.2), theta=THETA, alpha=0.015) is None
