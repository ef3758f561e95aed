"""A gain is one only where the same came out; what is unstable says nothing."""

import pytest

from pytest_perfgate.gate.outputs import other_work
from pytest_perfgate.model import Outcome, Reason

MEDIAN = "latency__median"
NAME = "float32[8,10]"


@pytest.fixture
def sides(make):
    def build(before, now, *, center=0.8):
        return (
            make.noisy(MEDIAN, 10, output=before),
            make.noisy(MEDIAN, 12, center=center, seed=1, output=now),
        )

    return build


def judged(make, sides):
    stored, candidate = sides
    return make.judge(make.baseline(stored), candidate)


def test_a_gain_with_the_same_output_is_one(make, sides):
    found = judged(make, sides({NAME: 0.5}, {NAME: 0.503}))
    assert found.verdict.reason is Reason.FASTER_BEYOND_BUDGET
    assert found.remarks == ()


@pytest.mark.parametrize(
    ("now", "text"),
    [
        ({NAME: 0.51}, f"the mean magnitude of {NAME} was 0.5 and is 0.51"),
        ({"float16[8,10]": 0.5}, f"the output was {NAME} and is float16[8,10]"),
        (
            {NAME + " not finite": 0.0},
            f"the output was {NAME} and is {NAME} not finite",
        ),
    ],
)
def test_a_gain_with_another_output_is_other_work(make, sides, now, text):
    found = judged(make, sides({NAME: 0.5}, now))
    assert found.verdict.outcome is Outcome.IMPROVED
    assert found.verdict.reason is Reason.CHANGED_WORK
    assert found.verdict.detail == text
    assert {one.verdict.reason for one in found.judgements} == {Reason.CHANGED_WORK}
    assert found.remarks == ()


def test_what_is_no_gain_keeps_its_reason_and_remarks_the_output(make, sides):
    found = judged(make, sides({NAME: 0.5}, {NAME: 1.0}, center=1.0))
    assert found.verdict.reason is Reason.WITHIN_BUDGET
    assert found.remarks == (f"the mean magnitude of {NAME} was 0.5 and is 1",)


def test_a_side_that_says_nothing_decides_nothing(make):
    one, none = make.run(output={NAME: 0.5}), make.run()
    assert other_work((), (one,)) is None
    assert other_work((one,), ()) is None
    assert other_work((none,), (one,)) is None
    assert other_work((one,), (none,)) is None
    assert other_work((one, none), (make.run(output={NAME: 1.0}),)) is None


def test_runs_that_do_not_agree_decide_nothing(make):
    first, second = make.run(output={NAME: 0.5}), make.run(output={NAME: 0.6})
    assert other_work((first, second), (make.run(output={NAME: 9.0}),)) is None
    assert other_work((make.run(output={NAME: 9.0}),), (first, second)) is None
