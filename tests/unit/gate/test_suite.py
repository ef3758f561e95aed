from dataclasses import replace

import pytest

from pytest_perfgate.gate.suite import (
    exit_code,
    exit_codes,
    summary_sentence,
    worst_first,
)
from pytest_perfgate.model import BenchmarkResult, Outcome, Reason, Verdict

CODES = {
    Outcome.UNCHANGED: 0,
    Outcome.IMPROVED: 0,
    Outcome.REGRESSED: 1,
    Outcome.ERROR: 1,
    Outcome.INCONCLUSIVE: 13,
    Outcome.NO_BASELINE: 10,
    Outcome.INCOMPARABLE: 11,
    Outcome.INVALID: 12,
    Outcome.MISSING: 14,
    Outcome.SKIPPED: 0,
    Outcome.RECORDED: 0,
}


def results(*outcomes, reason=Reason.WITHIN_BUDGET):
    return [
        BenchmarkResult(
            benchmark=f"b{index}",
            nodeid=f"b{index}",
            verdict=Verdict(outcome=outcome, reason=reason),
        )
        for index, outcome in enumerate(outcomes)
    ]


def code(*outcomes, on_missing="fail", on_inconclusive="fail", **others):
    return exit_code(
        results(*outcomes),
        on_missing=on_missing,
        on_inconclusive=on_inconclusive,
        **{"anything_measured": True, **others},
    )


def test_every_outcome_has_its_exit_code():
    assert set(CODES) == set(Outcome)
    assert {outcome: code(outcome) for outcome in Outcome} == CODES


def test_warnings_are_green():
    assert code(Outcome.NO_BASELINE, on_missing="warn") == 0
    assert code(Outcome.INCONCLUSIVE, on_inconclusive="warn") == 0
    assert code(Outcome.NO_BASELINE, on_inconclusive="warn") == 10
    assert code(Outcome.MISSING, on_missing="warn") == 14


def test_the_first_of_the_order_wins_and_all_are_known():
    everything = results(*Outcome)
    found = exit_codes(everything, on_missing="fail", on_inconclusive="fail")
    assert found == (1, 12, 11, 14, 10, 13)
    for start in range(len(found)):
        rest = [one for one in Outcome if CODES[one] in found[start:]]
        assert code(*rest) == found[start]


def test_an_internal_error_is_above_all():
    assert code(Outcome.REGRESSED, internal_error=True) == 3


def test_nothing_measured_is_no_success():
    assert code(anything_measured=False) == 5
    assert code(Outcome.SKIPPED, anything_measured=False) == 5
    assert code(Outcome.INVALID, anything_measured=False) == 12


def test_worst_first_and_equals_keep_their_order():
    found = worst_first(
        results(
            Outcome.UNCHANGED,
            Outcome.REGRESSED,
            Outcome.INCONCLUSIVE,
            Outcome.REGRESSED,
        )
    )
    assert [one.benchmark for one in found] == ["b1", "b3", "b2", "b0"]


@pytest.mark.parametrize(
    ("outcomes", "sentence"),
    [
        ((Outcome.UNCHANGED,), "1 benchmark: 1 unchanged"),
        (
            (
                Outcome.UNCHANGED,
                Outcome.REGRESSED,
                Outcome.NO_BASELINE,
                Outcome.UNCHANGED,
            ),
            "4 benchmarks: 1 regressed, 1 without a baseline, 2 unchanged",
        ),
        (
            (Outcome.ERROR, Outcome.INVALID),
            "2 benchmarks: 1 failed with an error, 1 not validly measured",
        ),
    ],
)
def test_the_outcome_in_words(outcomes, sentence):
    assert summary_sentence(results(*outcomes)) == sentence


def test_a_flag_is_not_passed_off_as_confirmed():
    flagged = results(Outcome.REGRESSED, reason=Reason.FLAGGED)
    assert summary_sentence(flagged) == (
        "1 benchmark: 1 regressed, 1 of them not yet confirmed"
    )


def test_nothing_measured_is_said():
    assert summary_sentence([]) == (
        "nothing was measured: this says nothing about performance"
    )
    assert summary_sentence(results(Outcome.SKIPPED), anything_measured=False) == (
        "nothing was measured (1 skipped): this says nothing about performance"
    )


def test_what_an_expected_failure_absorbed_asks_for_no_exit_code():
    slow, missing = results(Outcome.REGRESSED, Outcome.MISSING)
    absorbed = replace(slow, absorbed=True)
    given = {"on_missing": "fail", "on_inconclusive": "fail"}
    assert exit_codes([slow, missing], **given) == (1, 14)
    assert exit_codes([absorbed, missing], **given) == (14,)
    assert exit_code([absorbed], **given, anything_measured=True) == 0
    text = summary_sentence([absorbed, missing])
    assert text.endswith("1 missing, 1 of them expected to fail (xfail)")
