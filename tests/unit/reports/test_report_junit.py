"""Properties are few, named for machines, and agree with the values."""

from dataclasses import replace

from pytest_perfgate.model import Outcome, Reason
from pytest_perfgate.reports.junit import properties


def test_a_regression(each_outcome):
    assert properties(each_outcome.results[2]) == (
        ("perfgate_outcome", "regressed"),
        ("perfgate_reason", "confirmed-without-base"),
        ("perfgate_ratio_latency_median", "1.421"),
        ("perfgate_ratio_latency_p99", "1.2"),
        ("perfgate_ratio_device_time_median", "1.001"),
    )


def test_no_numbers_no_ratios(each_outcome):
    assert properties(each_outcome.results[4])[2] == (
        "perfgate_detail",
        "needs 14 runs",
    )
    assert properties(each_outcome.results[5]) == (
        ("perfgate_outcome", "no-baseline"),
        ("perfgate_reason", "nothing-stored"),
        ("perfgate_detail", "nvidia-h200"),
    )


def test_a_throughput_that_fell_is_below_one(
    make_result, make_judgement, make_comparison
):
    judgement = make_judgement(
        "throughput",
        "mean",
        Outcome.REGRESSED,
        Reason.OVER_LIMIT,
        comparison=make_comparison(1.25, baseline=500.0, candidate=400.0),
    )
    result = make_result(
        "a", Outcome.REGRESSED, Reason.OVER_LIMIT, judgements=(judgement,)
    )
    assert ("perfgate_ratio_throughput_mean", "0.8") in properties(result)


def test_names_and_details_are_harmless(make_result, make_judgement, energy):
    metric = replace(energy, name='stage:"pre"\n<x>')
    judgement = make_judgement(
        metric, "p99.9", Outcome.UNCHANGED, Reason.WITHIN_BUDGET, 1.0
    )
    result = make_result(
        "a", Outcome.UNCHANGED, detail="a\n\x00", judgements=(judgement,)
    )
    found = dict(properties(result))
    assert found["perfgate_ratio_stage_pre_x_p99_9"] == "1"
    assert found["perfgate_detail"] == r"a \x00"


def test_an_absolute_comparison_is_a_difference(
    make_result, make_judgement, make_comparison
):
    judgement = make_judgement(
        "latency",
        "median",
        Outcome.UNCHANGED,
        Reason.WITHIN_BUDGET,
        comparison=make_comparison(-0.25, absolute=True),
    )
    result = make_result("a", Outcome.UNCHANGED, judgements=(judgement,))
    assert ("perfgate_difference_latency_median", "-0.25") in properties(result)
