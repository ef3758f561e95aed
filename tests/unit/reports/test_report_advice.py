"""Every verdict that asks for something has a way out."""

from dataclasses import replace

import pytest

from pytest_perfgate.model import Difference, Outcome, Reason
from pytest_perfgate.reports.advice import ADVICE, advice, needed_runs, next_steps
from pytest_perfgate.reports.words import GREEN

NOTHING_TO_DO = {
    Reason.WITHIN_BUDGET,
    Reason.FASTER,
    Reason.FASTER_BEYOND_BUDGET,
    Reason.CHANGED_WORK,
    Reason.WITHIN_LIMIT,
    Reason.COUNT_EQUAL,
    Reason.SKIPPED,
    Reason.NOT_GATED,
    Reason.FIRST_SESSION,
    Reason.SESSION_ADDED,
    Reason.REPLACED,
}


def test_every_reason_is_advised_or_asks_for_nothing():
    assert set(ADVICE) == set(Reason) - NOTHING_TO_DO
    assert all(ADVICE.values())


def test_backticks_are_paired_so_that_commands_can_be_marked():
    assert all(text.count("`") % 2 == 0 for text in ADVICE.values())


def test_one_step_for_each_outcome_and_reason_worst_first(each_outcome):
    steps = next_steps(each_outcome)
    assert [step.outcome for step in steps] == [
        Outcome.REGRESSED,
        Outcome.ERROR,
        Outcome.INVALID,
        Outcome.INCOMPARABLE,
        Outcome.MISSING,
        Outcome.NO_BASELINE,
        Outcome.INCONCLUSIVE,
    ]
    assert {step.count for step in steps} == {1}


@pytest.mark.parametrize("outcome", sorted(GREEN))
def test_green_asks_for_nothing(make_result, outcome):
    assert advice(make_result("a", outcome)) == ""


def noisy(make_result, *needed):
    return [
        make_result(n, Outcome.INCONCLUSIVE, detail=f"needs {n} runs") for n in needed
    ]


def test_the_most_runs_that_anything_needs(make_report, make_result):
    (step,) = next_steps(make_report(noisy(make_result, "14", "9", "60")))
    assert step.count == 3
    assert "`--perfgate-runs 3:60`" in step.text
    assert "alone" not in step.text


def test_what_needs_hundreds_of_runs_is_not_told_to_make_them(make_report, make_result):
    (step,) = next_steps(make_report(noisy(make_result, "14", "61", "1,024")))
    assert "`--perfgate-runs 3:14`" in step.text
    assert step.text.endswith("more runs alone will not settle 2 of them")
    (step,) = next_steps(make_report(noisy(make_result, "1,024")))
    assert "--perfgate-runs" not in step.text
    assert "--perfgate-against REF" in step.text


def test_noise_without_a_number_of_runs_names_no_number(make_result):
    result = make_result("a", Outcome.INCONCLUSIVE, Reason.TOO_NOISY)
    assert needed_runs(result.verdict) is None
    assert "--perfgate-runs" not in advice(result)
    assert "quieter machine" in advice(result)


def test_incomparable_names_the_fields_that_forbid(make_result):
    result = make_result(
        "a",
        Outcome.INCOMPARABLE,
        differences=tuple(
            Difference(field=f"f{n}", baseline="1", candidate="2", forbids=n != 1)
            for n in range(9)
        ),
    )
    text = advice(result)
    assert text.startswith("f0: 1 → 2; f2: 1 → 2;")
    assert "f1:" not in text
    assert "and 2 more" in text


def test_incomparable_without_fields_still_has_a_way_out(make_result):
    result = make_result("a", Outcome.INCOMPARABLE, Reason.METRIC_DIFFERS)
    assert advice(result).startswith(ADVICE[Reason.METRIC_DIFFERS])


def test_a_difference_cannot_break_the_line(make_result):
    bad = Difference(field="a\nb", baseline="\x1b[0m", candidate="y", forbids=True)
    result = make_result("a", Outcome.INCOMPARABLE, differences=(bad,))
    assert "\n" not in advice(result)
    assert "\x1b" not in advice(result)


@pytest.mark.parametrize(
    ("outcome", "reason", "words"),
    [
        (
            Outcome.NO_BASELINE,
            Reason.NOTHING_STORED,
            "`pytest --perfgate --perfgate-update`",
        ),
        (Outcome.MISSING, Reason.GONE, "`perfgate baselines prune BENCHMARK`"),
        (
            Outcome.REGRESSED,
            Reason.CONFIRMED_WITHOUT_BASE,
            "`pytest --perfgate --perfgate-confirm REF`",
        ),
    ],
)
def test_the_way_out_is_a_command(make_result, outcome, reason, words):
    assert words in advice(make_result("a", outcome, reason))


def test_what_the_detail_says_is_not_said_twice(make_report, make_result):
    differs = Difference(
        field="device", baseline="H100", candidate="H200", forbids=True
    )
    result = make_result(
        "a", Outcome.INCOMPARABLE, detail="device: H100 → H200", differences=(differs,)
    )
    assert "H100" not in advice(result)
    (step,) = next_steps(make_report([result]))
    assert step.text.startswith("device: H100 → H200: ")


def test_other_clocks_are_no_neighbour_s_doing(make_report, make_result):
    detail = "a difference of clocks, not a regression: +8 % in time"
    clocks = make_result(
        "a", Outcome.INCONCLUSIVE, reason=Reason.DISTURBED, detail=detail
    )
    assert "--perfgate-lock-clocks" in advice(clocks)
    other = make_result("b", Outcome.INCONCLUSIVE, reason=Reason.DISTURBED)
    (step,) = next_steps(make_report([clocks, other]))
    assert step.text == ADVICE[Reason.DISTURBED]


ACCEPT = "or take it from this report: `perfgate accept REPORT`"


@pytest.mark.parametrize(
    ("outcome", "reason", "named"),
    [
        (Outcome.REGRESSED, Reason.CONFIRMED_WITHOUT_BASE, True),
        (Outcome.REGRESSED, Reason.COUNT_OVER_BUDGET, True),
        (Outcome.NO_BASELINE, Reason.NOTHING_STORED, True),
        (Outcome.INCOMPARABLE, Reason.PLAN_DIFFERS, True),
        (Outcome.REGRESSED, Reason.OVER_LIMIT, False),
        (Outcome.INCONCLUSIVE, Reason.NOT_STEADY, False),
        (Outcome.ERROR, Reason.BASELINE_CORRUPT, False),
    ],
)
def test_a_report_that_can_become_the_baseline_is_named(
    make_result, outcome, reason, named
):
    result = make_result("a", outcome, reason=reason)
    assert (ACCEPT in advice(result)) is named


def test_half_of_a_pair_is_no_baseline(make_result, make_run):
    result = make_result("a", Outcome.REGRESSED, reason=Reason.COUNT_OVER_BUDGET)
    assert ACCEPT in advice(result)
    assert ACCEPT not in advice(replace(result, base_runs=(make_run(1.0),)))
