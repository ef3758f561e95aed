"""Markdown that shows on GitHub what it should, whatever the names are."""

import re

import pytest

from pytest_perfgate.model import Outcome, Reason
from pytest_perfgate.reports.markdown import render


@pytest.mark.parametrize("name", ["each_outcome", "hostile", "empty"])
def test_golden(request, assert_golden, name):
    assert_golden(f"report_{name}.md", render(request.getfixturevalue(name)))


@pytest.mark.parametrize("name", ["each_outcome", "hostile", "thousands"])
def test_every_row_has_all_columns(request, name):
    rows = [
        one
        for one in render(request.getfixturevalue(name)).splitlines()
        if one[:1] == "|"
    ]
    assert rows
    assert {row.count("|") for row in rows} == {10}


def test_names_bring_no_markup_of_their_own(hostile):
    for row in render(hostile).splitlines():
        if row.startswith("| "):
            bare = row.replace("<code>", "").replace("</code>", "").replace("<br>", "")
            assert not set("<>`@") & set(bare)
            assert "://" not in bare
            assert "octocat" not in bare or "&#64;" in bare


def test_worst_first(thousands):
    found = re.findall(
        r"bench&#91;(\d+)&#93;</code> \| \*\*regressed", render(thousands)
    )
    assert list(map(int, found)) == list(reversed(range(60)))


def test_rows_can_be_bounded(thousands):
    text = render(thousands, most_rows=25)
    assert text.count("**regressed: ") == 25
    assert "… and 2,975 more, not listed." in text
    assert "bench_ok" not in text


def test_quiet_ones_are_folded(thousands):
    text = render(thousands)
    assert "<details><summary>2,940 unchanged</summary>" in text
    assert text.count("unchanged: within-budget") == 2940


def test_a_text_with_fences_stays_inside_its_own(make_report, make_result):
    result = make_result(
        "a", Outcome.ERROR, text="before\n`````\n## not a heading\nx ``` y"
    )
    text = render(make_report([result]))
    fence = "`" * 6
    assert f"{fence}text\nbefore\n`````\n## not a heading\nx ``` y\n{fence}" in text


def test_a_long_text_keeps_its_end_and_says_so(make_report, make_result):
    result = make_result("a", Outcome.ERROR, text="x" * 9000 + "THE END")
    text = render(make_report([result]))
    assert "… the last 4,000 of 9,007 characters:" in text
    assert "THE END" in text
    assert "x" * 4001 not in text


def test_commands_are_code_and_advice_keeps_its_spaces(each_outcome):
    text = render(each_outcome)
    assert (
        "record what this machine measures with <code>pytest --perfgate --perfgate-update</code>"
        in text
    )
    assert "(<code>--perfgate-runs 3:14</code>), use" in text


def test_an_interrupted_session_without_environment(make_report):
    report = make_report(
        [], interrupted=True, commit=None, environment=None, cost={}, policy={}
    )
    text = render(report)
    assert "**Interrupted:**" in text
    assert text.endswith("<sub>made 2026-10-09T08:30:00Z</sub>\n")


def test_a_remark_and_a_discarded_run_are_told(make_report, make_result):
    result = make_result(
        "a",
        Outcome.INVALID,
        Reason.WORKER_LOST,
        remarks=("r|r",),
        discarded=("run 1 not used: lost",),
    )
    text = render(make_report([result]))
    assert "<br>r&#124;r<br>run 1 not used: lost" in text
