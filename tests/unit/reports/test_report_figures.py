"""Numbers read the same everywhere, and agree with each other."""

import math

import pytest

from pytest_perfgate.model import Outcome, Reason, RunStatistic, RunSummary
from pytest_perfgate.reports import figures


@pytest.fixture
def judge(make_judgement):
    def make(metric="latency", ratio=1.421, **changes):
        return make_judgement(
            metric,
            "median",
            Outcome.REGRESSED,
            Reason.CONFIRMED_WITHOUT_BASE,
            ratio,
            **changes,
        )

    return make


def test_a_latency(judge):
    judgement = judge()
    assert figures.judged(judgement).baseline == "812 µs"
    assert figures.judged(judgement).now == "1.15 ms"
    assert figures.judged(judgement).change_with_interval == "+42.1 % [+37.8…+47.1]"
    assert figures.budget_text(judgement) == "5 %"
    assert figures.judged(judgement).sees == "6.1 %"
    assert (
        figures.ratio_sentence(judgement) == "1.42× (interval 1.38–1.47), allowed 1.05×"
    )


def test_a_change_says_percent_and_times_without_contradiction(judge, make_comparison):
    judgement = judge(comparison=make_comparison(2.3, baseline=0.1, candidate=0.23))
    assert figures.change_text(judgement) == "+130 % (2.30×)"


def test_a_throughput_falls(judge, make_comparison):
    judgement = judge(
        "throughput", comparison=make_comparison(1.25, baseline=500.0, candidate=400.0)
    )
    assert figures.change_text(judgement) == "-20.0 %"
    assert figures.interval_text(judgement) == "-22.7…-17.5 %"
    assert (
        figures.ratio_sentence(judgement) == "0.80× (interval 0.77–0.82), allowed 0.95×"
    )


def test_an_exact_count_changes_by_a_number(judge, launches, make_comparison):
    comparison = make_comparison(1.1, baseline=30.0, candidate=33.0, detectable=None)
    judgement = judge(launches, comparison=comparison, budget=0.0)
    assert figures.judged(judgement).change_with_interval == "+3"
    assert figures.judged(judgement).sees == figures.NOTHING
    assert figures.ratio_sentence(judgement) == "+3, allowed 0 %"


@pytest.mark.parametrize("ratio", [math.inf, 0.0, math.nan])
def test_no_ratio_no_percentage(judge, make_comparison, ratio):
    comparison = make_comparison(
        ratio, baseline=0.0, candidate=0.003, low=ratio, high=math.inf
    )
    judgement = judge(comparison=comparison)
    assert figures.judged(judgement).change_with_interval == "+3.00 ms"
    assert figures.ratio_sentence(judgement).startswith("+3.00 ms")


def test_nothing_compared_is_a_dash_everywhere(judge):
    judgement = judge(ratio=None, budget=None)
    assert figures.judged(judgement) == figures.Figures(metric="latency·median")
    assert figures.ratio_sentence(judgement) == ""


def test_without_a_budget_nothing_is_allowed_or_forbidden(judge):
    assert figures.ratio_sentence(judge(budget=None)) == "1.42× (interval 1.38–1.47)"


def test_an_infinite_detectable_change_is_a_dash(judge, make_comparison):
    judgement = judge(comparison=make_comparison(1.1, detectable=math.inf))
    assert figures.judged(judgement).sees == figures.NOTHING


def test_a_wide_interval_drops_its_decimals(judge, make_comparison):
    judgement = judge(comparison=make_comparison(5.0, low=0.4, high=20.0))
    assert figures.interval_text(judgement) == "-60.0…+1,900 %"


def test_a_large_ratio():
    assert figures.ratio_text(9.994) == "9.99×"
    assert figures.ratio_text(12.345) == "12.3×"


def test_another_unit(judge, energy, make_comparison):
    judgement = judge(energy, comparison=make_comparison(1.1, baseline=12.5))
    assert figures.judged(judgement).baseline == "12.5 J"


def test_cost():
    cost = {
        "seconds": 182.4,
        "runs": 36.0,
        "workers": 1.0,
        "start_up_s": 2.0,
        "share": 0.25,
    }
    assert (
        figures.cost_text(cost)
        == "182 s, 36 runs, 1 worker, start up 2.00 s, share 0.25"
    )


def test_an_absolute_budget_speaks_in_the_metrics_unit(judge, make_comparison):
    comparison = make_comparison(
        2e-3,
        baseline=10e-3,
        candidate=12e-3,
        low=1e-3,
        high=3e-3,
        detectable=1.5e-3,
        absolute=True,
    )
    judgement = judge(comparison=comparison, budget=None, bound="+1.00 ms")
    assert (
        figures.judged(judgement).change_with_interval == "+2.00 ms [+1.00 ms…+3.00 ms]"
    )
    assert figures.budget_text(judgement) == "+1.00 ms"
    assert figures.judged(judgement).sees == "+1.50 ms"
    assert figures.ratio_sentence(judgement) == (
        "+2.00 ms (interval +1.00 ms…+3.00 ms), allowed +1.00 ms"
    )


def test_an_absolute_loss_of_throughput_is_negative(judge, make_comparison):
    comparison = make_comparison(
        100.0, baseline=500.0, candidate=400.0, low=80.0, high=120.0, absolute=True
    )
    judgement = judge("throughput", comparison=comparison, budget=None)
    assert figures.judged(judgement).change_with_interval == "-100/s [-120/s…-80/s]"


def test_an_infinite_difference_is_a_dash(judge, make_comparison):
    comparison = make_comparison(math.inf, absolute=True)
    assert (
        figures.judged(judge(comparison=comparison)).change_with_interval
        == figures.NOTHING
    )


def test_a_limit_stands_where_the_budget_stands(judge):
    judgement = judge(budget=None, bound="<= 150 ms")
    assert figures.budget_text(judgement) == "<= 150 ms"
    assert figures.ratio_sentence(judgement).endswith("), allowed <= 150 ms")


def test_without_a_judgement_what_was_measured_is_shown(make_result, make_run):
    runs = tuple(make_run(value) for value in (1e-3, 5e-3, 2e-3))
    result = make_result("a", Outcome.NO_BASELINE, runs=runs)
    found = figures.of_result(result, None)
    assert found == figures.Figures(metric="latency·median", now="2.00 ms")


def test_a_metric_without_a_median_is_shown_by_what_it_has(make_result):
    runs = tuple(
        RunSummary(iterations=1, statistics=statistics)
        for statistics in ({"a\nb": {"max": RunStatistic(value=12.0)}}, {})
    )
    result = make_result("a", Outcome.NO_BASELINE, runs=runs)
    assert figures.of_result(result, None) == figures.Figures(
        metric=r"a\nb·max", now="12"
    )


def test_nothing_measured_no_figures(make_result):
    assert figures.of_result(make_result("a", Outcome.MISSING), None) is None
    empty = (RunSummary(iterations=1, statistics={}),)
    assert (
        figures.of_result(make_result("a", Outcome.NO_BASELINE, runs=empty), None)
        is None
    )


@pytest.mark.parametrize(
    ("names", "shown"),
    [
        (("cpu_time", "latency", "peak_memory"), "latency·median"),
        (("throughput", "step_time", "queue_wait"), "step_time·median"),
        (("cpu_time", "queue_wait"), "queue_wait·median"),
        (("peak_memory", "cpu_time"), "cpu_time·median"),
    ],
)
def test_what_users_wait_for_is_shown_first(make_result, names, shown):
    statistics = {name: {"median": RunStatistic(value=1.0)} for name in names}
    runs = (RunSummary(iterations=1, statistics=statistics),)
    found = figures.of_result(make_result("a", Outcome.NO_BASELINE, runs=runs), None)
    assert found.metric == shown
