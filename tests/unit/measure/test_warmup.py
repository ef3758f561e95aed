import math
import random

import pytest

from pytest_perfgate.measure.warmup import batch_medians, is_steady, truncation


def noise(count, *, level=1.0, sd=0.02, seed=1):
    draw = random.Random(seed)  # noqa: S311
    return [level * math.exp(draw.gauss(0, sd)) for _ in range(count)]


def test_batches_are_whole_and_robust_to_one_interrupted_call():
    assert batch_medians([1, 1, 90, 1, 1, 2, 2, 2, 2, 2, 7]) == [1, 2]


@pytest.mark.parametrize("values", [[], [3.0], [3.0] * 3, [3.0] * 40])
def test_nothing_is_cut_off_a_level_stream(values):
    assert truncation(values) == 0


def test_the_warm_up_is_cut_off_where_it_ends():
    assert truncation([9.0, 7.0, 5.0, 3.0] + [1.0, 1.1] * 20) == 4


def test_a_quarter_of_the_stream_is_always_left():
    falling = [100.0 - index for index in range(100)]
    assert truncation(falling) == 75


def test_three_values_are_always_left():
    assert truncation([8.0, 4.0, 2.0, 1.0, 0.5]) == 2


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("sd", [0.01, 0.1, 0.3])
def test_noise_alone_is_steady(seed, sd):
    assert is_steady(noise(200, sd=sd, seed=seed))


@pytest.mark.parametrize("seed", range(20))
def test_a_stream_that_still_falls_is_not(seed):
    falling = [
        value * (1 + math.exp(-index / 60))
        for index, value in enumerate(noise(100, seed=seed))
    ]
    assert not is_steady(falling)


def test_a_few_slow_calls_are_judged_one_by_one():
    assert is_steady([3.0, 2.0, 1.0, 1.01, 1.0, 1.02, 1.01, 1.0, 1.0, 1.01])
    assert not is_steady([3.0, 2.6, 2.2, 1.9, 1.6, 1.4, 1.2, 1.0, 0.8, 0.7])


def test_of_seven_calls_nothing_can_be_said():
    assert is_steady([7.0, 6.0, 5.0, 4.0, 3.0, 2.0, 1.0])


def test_a_shift_too_small_to_matter_is_steady():
    assert is_steady([1.0] * 150 + [0.99] * 50)


def test_a_clock_that_ticks_coarsely_is_steady():
    assert is_steady([70, 80, 70, 70, 80] * 20 + [70] * 100)
