"""What concerns a whole session: the machine, slow creep, attempts, q-values."""

from dataclasses import replace

import pytest

from pytest_perfgate.model import BaseCode, Environment, Outcome, Reason, Shift
from pytest_perfgate.reports import html, markdown, terminal, words
from pytest_perfgate.reports.advice import advice
from pytest_perfgate.reports.failure import failure_text
from pytest_perfgate.reports.junit import properties

SLOWER = Shift(ratio=1.0597, benchmarks=60, share=0.97)
FASTER = Shift(ratio=0.96, benchmarks=1200, share=1.0)


def shown(report, *, verbose=False):
    lines = terminal.render(report, width=400, verbose=verbose)
    return "\n".join(one.text for one in lines)


@pytest.fixture
def plain(make_report, make_plain):
    return make_report([make_plain("a", Outcome.UNCHANGED, 1.0)])


def test_a_machine_that_became_slower_is_told_in_one_line(plain):
    text = words.shift_text(replace(plain, shift=SLOWER))
    assert text == (
        "the machine as a whole is 5.97 % slower than the baselines: the median of 60"
        " benchmarks, 97% of them slower; stored baselines cannot tell that from code"
        " that slows everything down"
    )


def test_so_is_one_that_became_faster_and_what_that_hides(plain):
    text = words.shift_text(replace(plain, shift=FASTER))
    assert "4 % faster" in text
    assert "1,200 benchmarks" in text
    assert "a slowdown of that size would not show" in text


def test_earlier_attempts_are_counted_with_their_runs(plain, make_plain):
    again = replace(make_plain("b", Outcome.UNCHANGED, 1.0), attempt=3, earlier_runs=14)
    text = words.attempts_text(replace(plain, results=(*plain.results, again)))
    assert text == (
        "attempt 3 on this commit: 14 runs of earlier attempts at 1 benchmark were"
        " judged with the new ones"
    )
    alone = replace(again, earlier_runs=0)
    text = words.attempts_text(replace(plain, results=(alone,)))
    assert text == "attempt 3 on this commit"


@pytest.mark.parametrize(
    "render", [shown, markdown.render, html.render], ids=["terminal", "md", "html"]
)
def test_every_report_has_both_lines_and_no_empty_ones(plain, render):
    again = replace(plain.results[0], attempt=2, earlier_runs=3)
    text = render(replace(plain, shift=SLOWER, results=(again,)))
    assert "the machine as a whole is 5.97 % slower" in text
    assert "attempt 2 on this commit" in text
    quiet = render(plain)
    assert "machine as a whole" not in quiet
    assert "attempt" not in quiet


def test_q_values_are_for_those_who_ask(
    make_report, make_result, make_judgement, make_comparison
):
    def judged(q, **others):
        comparison = make_comparison(1.0, p_identity=0.0123, q_value=q)
        return make_judgement(
            "latency",
            others.pop("statistic", "median"),
            Outcome.UNCHANGED,
            Reason.WITHIN_BUDGET,
            comparison=comparison,
        )

    result = make_result(
        "a",
        Outcome.UNCHANGED,
        judgements=(judged(0.5), judged(0.25, statistic="p99"), judged(None)),
    )
    report = make_report([result])
    text = shown(report, verbose=True)
    assert "p = 0.012, q = 0.5" in text
    assert "p = 0.012, q = 0.25" in text
    assert text.count("q = ") == 2
    assert "q = " not in shown(report)


@pytest.fixture
def crept(make_result, make_judgement):
    since = make_judgement(
        "latency",
        "median",
        Outcome.REGRESSED,
        Reason.CREPT,
        1.26,
        budget=0.15,
        detail="against the anchor session of 2026-01-02",
        anchor=True,
    )
    last = make_judgement(
        "latency", "median", Outcome.UNCHANGED, Reason.WITHIN_BUDGET, 1.02
    )
    return make_result(
        "a",
        Outcome.REGRESSED,
        Reason.CREPT,
        detail="against the anchor session of 2026-01-02",
        judgements=(last, since),
    )


def test_creep_is_told_as_such_with_its_own_numbers(crept):
    text = failure_text(crept)
    assert text.startswith("regressed: latency·median vs anchor 1.26×")
    assert "allowed 1.15×" in text
    assert "crept-past-anchor (against the anchor session of 2026-01-02)" in text
    assert "each step was within its budget" in text


def test_creep_and_the_last_step_have_properties_of_their_own(crept):
    found = dict(properties(crept))
    assert found["perfgate_ratio_latency_median"] == "1.02"
    assert found["perfgate_ratio_latency_median_anchor"] == "1.26"


def texts(report):
    """The report in each of its forms."""
    return shown(report), markdown.render(report), html.render(report)


def test_an_expected_failure_is_told_and_asks_for_nothing(make_report, make_plain):
    slow = make_plain("a", Outcome.REGRESSED, 1.5)
    for text in texts(make_report([slow])):
        assert "expected to fail" not in text
        assert "record it with" in text
    for text in texts(make_report([replace(slow, absorbed=True)])):
        assert "expected to fail" in text
        assert "record it with" not in text
    assert advice(slow)
    assert not advice(replace(slow, absorbed=True))


def test_results_of_several_machines_name_theirs(make_report, make_plain):
    one = make_plain("a", Outcome.UNCHANGED, 1.0)
    here, there = (Environment(key=key, hardware={"gpu": key}) for key in ("h1", "h2"))
    results = [replace(one, environment=where) for where in (here, there)]
    report = make_report(results, environment=None)
    for text in texts(report):
        for key in ("h1", "h2"):
            assert f"a @ {key}" in text.replace("&#64;", "@")
    assert words.machines(report) == ("h1", "h2")
    assert "<td>h1</td>" in html.render(report)
    assert "<td>h2</td>" in html.render(report)


def test_notes_and_what_else_failed_are_shown(plain):
    report = replace(plain, notes=("two legs", "b\x1b"), problem="the disk is full")
    for text in texts(report):
        assert "two legs" in text
        assert "b\\x1b" in text.replace("&#92;", "\\")
        assert "the disk is full" in text


def test_the_code_measured_beside_it_is_named_everywhere(plain):
    base = BaseCode(ref="main|`x`", commit="0123456789abcdef")
    report = replace(plain, base=base)
    said = (
        "measured beside it on this machine: main|`x`, at the merge base 0123456789ab"
    )
    assert words.base_text(report) == said
    assert words.base_text(plain) == ""
    assert said in shown(report)
    assert "main|`x`" not in markdown.render(report)
    for render in (markdown.render, html.render):
        assert "at the merge base 0123456789ab" in render(report)
