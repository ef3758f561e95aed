import math

import pytest

from pytest_perfgate.gate.sight import paired_sight, stored_sight


def test_a_machine_of_one_per_cent_sees_six_and_a_half():
    # the figures of the statistics page, for sessions that do not differ
    spread = math.log(1.01)
    values = [math.exp(k * spread) for k in (-1, 1)]  # sd √2 times as much
    sight = stored_sight([math.exp(math.log(v) / math.sqrt(2)) for v in values])
    assert sight.spread == pytest.approx(spread)
    assert 0.065 < sight.sees < 0.075  # a quarter of the spread between sessions


def test_more_noise_sees_less_and_a_larger_budget_less_again():
    quiet, noisy = stored_sight([1.0, 1.01, 0.99]), stored_sight([1.0, 1.1, 0.9])
    assert quiet.sees < noisy.sees
    assert stored_sight([1.0, 1.01, 0.99], budget=0.1).sees > quiet.sees + 0.04


def test_the_unit_of_the_values_does_not_matter():
    one, other = stored_sight([1.0, 1.2, 1.1]), stored_sight([1e-6, 1.2e-6, 1.1e-6])
    assert one.sees == pytest.approx(other.sees)


def test_pairs_are_judged_by_their_differences():
    found = paired_sight([0.01, -0.01, 0.01, -0.01])
    assert found.spread == pytest.approx(0.0115, abs=1e-4)
    assert 0.05 < found.sees < 0.08


def test_no_machine_is_believed_to_have_no_noise():
    assert stored_sight([1.0, 1.0]).spread == 0.001
    assert paired_sight([0.0, 0.0]).sees > 0.05
