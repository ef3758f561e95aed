"""Plots share a scale, clip honestly, and put worse to the right."""

import math

import pytest

from pytest_perfgate.model import Outcome, Reason
from pytest_perfgate.reports.plot import MARGIN, WIDTH, plot, scale

SPAN = math.log(1.2)


@pytest.fixture
def place(make_judgement, make_comparison):
    def make(ratio, low, high, *, metric="latency", budget=0.05):
        comparison = make_comparison(ratio, low=low, high=high)
        judgement = make_judgement(
            metric,
            "median",
            Outcome.UNCHANGED,
            Reason.WITHIN_BUDGET,
            comparison=comparison,
            budget=budget,
        )
        return plot(judgement, span=SPAN)

    return make


def test_no_change_is_in_the_middle(place):
    made = place(1.0, 1 / 1.1, 1.1)
    assert made.zero == made.estimate == WIDTH / 2
    assert made.high - made.zero == pytest.approx(made.zero - made.low, abs=0.2)
    assert made.zero < made.budget < made.high
    assert not made.more_left
    assert not made.more_right


def test_worse_is_to_the_right_for_a_throughput_too(place):
    assert place(1.1, 1.05, 1.15, metric="throughput").estimate > WIDTH / 2


def test_beyond_the_frame_is_an_arrow_and_no_dot(place):
    made = place(10.0, 9.0, 11.0)
    assert made.low == made.high == WIDTH - MARGIN
    assert made.estimate is None
    assert made.more_right
    assert not made.more_left
    assert place(0.1, 0.09, 0.2).more_left


def test_a_budget_beyond_the_frame_or_absent_has_no_line(place):
    assert place(1.0, 0.9, 1.1, budget=0.5).budget is None
    assert place(1.0, 0.9, 1.1, budget=None).budget is None


@pytest.mark.parametrize(
    ("ratio", "low", "high"),
    [
        (math.inf, 1.0, math.inf),
        (0.0, 0.0, 1.0),
        (1.0, math.nan, 1.0),
        (-1.0, -2.0, 1.0),
    ],
)
def test_no_ratio_no_plot(place, ratio, low, high):
    assert place(ratio, low, high) is None


def test_nothing_compared_no_plot(make_judgement):
    judgement = make_judgement(
        "latency", "median", Outcome.NO_BASELINE, Reason.NOTHING_STORED
    )
    assert plot(judgement, span=SPAN) is None


def test_the_scale_shows_the_largest_budget_with_room_around(make_judgement):
    def judged(budget):
        return make_judgement(
            "latency", "median", Outcome.UNCHANGED, Reason.WITHIN_BUDGET, budget=budget
        )

    assert scale([]) == pytest.approx(math.log(1.15))
    assert scale([judged(0.05), judged(0.1), judged(None)]) == pytest.approx(
        3 * math.log(1.1)
    )
    assert scale([judged(0.01)]) == pytest.approx(math.log(1.15))


def test_differences_have_no_place_on_a_scale_of_ratios(
    make_judgement, make_comparison
):
    judgement = make_judgement(
        "latency",
        "median",
        Outcome.UNCHANGED,
        Reason.WITHIN_BUDGET,
        comparison=make_comparison(1.0, absolute=True),
    )
    assert plot(judgement, span=SPAN) is None
