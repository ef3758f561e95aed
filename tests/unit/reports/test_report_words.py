"""Order, marks and the judgement that decided."""

import math

import pytest

from pytest_perfgate.gate.suite import SEVERITY
from pytest_perfgate.measured import METRICS, ROUND_LATENCY
from pytest_perfgate.model import Outcome, Reason, Verdict
from pytest_perfgate.reports import words


def test_every_outcome_has_a_look_and_no_two_share_a_glyph():
    assert set(words.LOOKS) == set(Outcome)
    glyphs = [look.glyph for look in words.LOOKS.values()]
    assert len(set(glyphs)) == len(glyphs)
    assert all(len(glyph) == 1 for glyph in glyphs)


def test_the_order_is_that_of_the_exit_code():
    assert tuple(words.LOOKS) == SEVERITY


def test_ten_comes_before_nine(make_plain):
    results = [make_plain(f"b[{r}]", Outcome.REGRESSED, r) for r in (9.0, 10.0, 2.0)]
    ratios = [one.judgements[0].comparison.ratio for one in words.worst_first(results)]
    assert ratios == [10.0, 9.0, 2.0]


def test_severity_comes_before_size(make_plain, make_result):
    results = [
        make_plain("c", Outcome.UNCHANGED, 9.0),
        make_result("b", Outcome.ERROR),
        make_plain("a", Outcome.REGRESSED, 1.06),
    ]
    assert [one.benchmark for one in words.worst_first(results)] == ["a", "b", "c"]


def test_the_largest_improvement_comes_first(make_plain):
    results = [make_plain(f"{r}", Outcome.IMPROVED, r) for r in (0.9, 0.5, 0.8)]
    assert [one.benchmark for one in words.worst_first(results)] == [
        "0.5",
        "0.8",
        "0.9",
    ]


def test_equal_effects_are_sorted_by_name(make_plain, make_result):
    plain = [make_plain(name, Outcome.UNCHANGED, 1.0) for name in "ba"]
    bare = [make_result(name, Outcome.UNCHANGED) for name in "dc"]
    order = [one.benchmark for one in words.worst_first([*bare, *plain])]
    assert order == ["a", "b", "c", "d"]


def test_the_worst_of_those_that_say_the_same_decides(make_result, make_judgement):
    reason = Reason.CONFIRMED_WITHOUT_BASE
    judgements = (
        make_judgement("latency", "p99", Outcome.INCONCLUSIVE, Reason.TOO_NOISY, 3.0),
        make_judgement("latency", "median", Outcome.REGRESSED, reason, 1.2),
        make_judgement("device_time", "median", Outcome.REGRESSED, reason, 1.4),
        make_judgement("e2e", "median", Outcome.REGRESSED, reason, 9.0, gated=False),
    )
    result = make_result("a", Outcome.REGRESSED, reason, judgements=judgements)
    assert words.deciding(result) is judgements[2]


def test_the_reason_counts_before_the_outcome(make_result, make_judgement):
    judgements = (
        make_judgement(
            "latency", "median", Outcome.INCONCLUSIVE, Reason.TOO_NOISY, 3.0
        ),
        make_judgement("latency", "p99", Outcome.INCONCLUSIVE, Reason.SUSPECT, 1.2),
    )
    suspect = make_result(
        "a", Outcome.INCONCLUSIVE, Reason.SUSPECT, judgements=judgements
    )
    other = make_result(
        "a", Outcome.INCONCLUSIVE, Reason.AT_BUDGET, judgements=judgements
    )
    assert words.deciding(suspect) is judgements[1]
    assert words.deciding(other) is judgements[0]


def test_an_improvement_is_decided_by_the_largest(make_result, make_judgement):
    judgements = tuple(
        make_judgement(metric, "median", Outcome.IMPROVED, Reason.FASTER, ratio)
        for metric, ratio in (("latency", 0.9), ("device_time", 0.7))
    )
    result = make_result("a", Outcome.IMPROVED, Reason.FASTER, judgements=judgements)
    assert words.deciding(result) is judgements[1]


def test_where_nothing_changed_the_main_statistic_is_shown(make_result, make_judgement):
    within = Outcome.UNCHANGED, Reason.WITHIN_BUDGET
    judgements = (
        make_judgement("latency", "median", *within, 1.001),
        make_judgement("latency", "p99", *within, 1.02),
    )
    result = make_result("a", *within, judgements=judgements)
    assert words.deciding(result) is judgements[0]


def test_without_a_match_the_first_gated_one_is_shown(make_result, make_judgement):
    shown = make_judgement(
        "e2e", "median", Outcome.SKIPPED, Reason.NOT_GATED, gated=False
    )
    gated = make_judgement(
        "latency", "median", Outcome.UNCHANGED, Reason.WITHIN_BUDGET, 1.0
    )
    result = make_result("a", Outcome.ERROR, judgements=(shown, gated))
    assert words.deciding(result) is gated
    only = make_result("a", Outcome.SKIPPED, Reason.NOT_GATED, judgements=(shown,))
    assert words.deciding(only) is shown
    assert words.deciding(make_result("a", Outcome.SKIPPED)) is None


def test_only_what_is_worth_a_row_is_shown_below(each_outcome):
    result = each_outcome.results[2]
    main = words.deciding(result)
    brief = words.others(result, main=main, verbose=False)
    assert [one.statistic for one in brief] == ["p99"]
    full = words.others(result, main=main, verbose=True)
    assert [one.metric.name for one in full] == ["latency", "device_time", "throughput"]


def test_the_change_agrees_with_the_values(make_comparison):
    comparison = make_comparison(1.25, baseline=500.0, candidate=400.0)
    seen = words.change(METRICS["throughput"], comparison)
    assert seen.ratio == pytest.approx(0.8)
    assert seen.low < seen.ratio < seen.high
    assert words.change(METRICS["latency"], comparison).ratio == 1.25


def test_a_ratio_of_zero_has_no_finite_inverse(make_comparison):
    comparison = make_comparison(0.0, low=0.0, high=0.0)
    seen = words.change(METRICS["throughput"], comparison)
    assert seen.ratio == math.inf
    assert not seen.finite


def test_the_budget_as_now_over_baseline():
    assert words.allowed(METRICS["latency"], 0.05) == 1.05
    assert words.allowed(METRICS["throughput"], 0.25) == pytest.approx(0.8)


def test_both_directions_are_counted(make_report, make_plain, make_result):
    ratios = (1.2, 1.01, 0.9, 1.0)
    results = [make_plain(f"{r}", Outcome.UNCHANGED, r) for r in ratios]
    report = make_report([*results, make_result("x", Outcome.NO_BASELINE)])
    assert (
        words.directions(report)
        == "4 compared, by estimate: 2 slower, 1 faster, 1 equal"
    )


def test_memory_is_not_called_slow(make_report, make_result, make_judgement):
    judgement = make_judgement(
        "peak_memory", "max", Outcome.UNCHANGED, Reason.WITHIN_BUDGET, 1.01
    )
    result = make_result("a", Outcome.UNCHANGED, judgements=(judgement,))
    assert words.directions(make_report([result])).endswith("1 worse, 0 better")


def test_no_directions_where_nothing_was_compared(make_report, make_result):
    assert words.directions(make_report([make_result("a", Outcome.NO_BASELINE)])) == ""


def test_counts_are_worst_first_and_complete(each_outcome):
    found = words.counts(each_outcome)
    assert [outcome for outcome, _ in found] == list(words.LOOKS)
    assert sum(number for _, number in found) == len(each_outcome.results)


def test_verdict_texts():
    verdict = Verdict(
        outcome=Outcome.INCONCLUSIVE, reason=Reason.TOO_NOISY, detail="needs 14 runs"
    )
    assert words.reason_text(verdict) == "too-noisy (needs 14 runs)"
    assert words.verdict_text(verdict) == "inconclusive: too-noisy"
    skipped = Verdict(outcome=Outcome.SKIPPED, reason=Reason.SKIPPED)
    assert words.verdict_text(skipped) == "skipped"


def test_counted():
    assert words.counted(1, "run") == "1 run"
    assert words.counted(1200, "run") == "1,200 runs"


@pytest.mark.parametrize(
    ("difference", "baseline", "effect"),
    [
        (2.0, 10.0, 1.2),
        (-1.0, 10.0, 0.9),
        (1.0, 0.0, math.inf),
        (-1.0, 0.0, -math.inf),
        (0.0, 0.0, 1.0),
        (3.0, -10.0, 1.3),
    ],
)
def test_absolute_differences_are_ranked_with_ratios(
    make_judgement, make_comparison, difference, baseline, effect
):
    comparison = make_comparison(difference, baseline=baseline, absolute=True)
    judgement = make_judgement(
        "latency",
        "median",
        Outcome.UNCHANGED,
        Reason.WITHIN_BUDGET,
        comparison=comparison,
    )
    assert words.effect(judgement) == pytest.approx(effect)


def test_nothing_compared_ranks_last_of_its_outcome(
    make_plain, make_result, make_judgement
):
    bare = make_judgement("latency", "median", Outcome.REGRESSED, Reason.OVER_LIMIT)
    results = [
        make_result("a", Outcome.REGRESSED, Reason.OVER_LIMIT, judgements=(bare,)),
        make_plain("b", Outcome.REGRESSED, 1.06),
    ]
    assert [one.benchmark for one in words.worst_first(results)] == ["b", "a"]


def test_runs_that_were_not_used_are_listed_a_few_and_counted():
    runs = [f"run {number}: busy" for number in range(1, 6)]
    assert list(words.not_used(runs[:3])) == runs[:3]
    assert list(words.not_used(runs))[3:] == [
        "2 more runs not used, not whole or disturbed: listed in report.json"
    ]


def test_a_tail_of_rounds_is_called_one(make_judgement):
    def name(statistic, metric):
        judgement = make_judgement(
            metric, statistic, Outcome.UNCHANGED, Reason.WITHIN_BUDGET
        )
        return words.statistic_name(judgement)

    assert name("p99", ROUND_LATENCY) == "latency·p99 of rounds"
    assert name("median", ROUND_LATENCY) == "latency·median"
    assert name("p99", METRICS["latency"]) == "latency·p99"
