"""What changed with a benchmark, in every rendering, and never as markup."""

from dataclasses import replace

import pytest

from pytest_perfgate.measured import SlowIteration, SlowIterations
from pytest_perfgate.model import Clue, ClueKind, Explanation, Outcome
from pytest_perfgate.reports import comment, html, markdown, terminal
from pytest_perfgate.reports.around import Links
from pytest_perfgate.reports.explained import slow_lines, strongest
from pytest_perfgate.reports.failure import failure_text

LINES = (
    Clue(kind=ClueKind.COUNT, text="syncs: 0 → 1", old="0", new="1"),
    Clue(kind=ClueKind.COUNT, text="ops: 4 → 5"),
    Clue(kind=ClueKind.OPERATOR, text="aten::item: 0 → 1 calls", share=0.42),
    Clue(kind=ClueKind.CLOCK, text="median SM clock: 1980 → 990 MHz", share=1.0),
    Clue(
        kind=ClueKind.COMMIT, text="commit 1a2b3c4: Say <b>hi</b> to @all | #1\x1b[31m"
    ),
    Clue(kind=ClueKind.NOTE, text="operators were not compared"),
)


def said(lines):
    return "\n".join("".join(s.text for s in line.segments) for line in lines)


@pytest.fixture
def report(each_outcome):
    """A report of one regression, explained."""
    found = each_outcome
    red = next(r for r in found.results if r.verdict.outcome is Outcome.REGRESSED)
    slow = SlowIterations(
        run=2,
        beyond_s=0.002,
        rule="2 × P99",
        count=4,
        worst=(
            SlowIteration(index=7, at_s=0.25, value_s=0.5, known=("1 recompilation",)),
            SlowIteration(index=0, at_s=0.0, value_s=0.125),
        ),
    )
    explained = replace(red, explanation=Explanation(lines=LINES), slow=(slow,))
    return replace(found, results=(explained,))


def test_a_failure_has_the_three_strongest_each_of_its_own_kind(report):
    text = failure_text(report.results[0])
    assert "  changed with it: syncs: 0 → 1\n" in text
    assert "  changed with it: aten::item: 0 → 1 calls: 42 % of the slowdown\n" in text
    assert "1980 → 990 MHz: as much as the whole slowdown\n" in text
    assert "ops: 4 → 5" not in text
    assert "  and 3 more, in the report\n" in text
    assert "torch: 2.12.0" not in text  # the explanation has what differs


def test_what_fits_has_no_rest(report):
    short = replace(report.results[0], explanation=Explanation(lines=LINES[:2]))
    text = failure_text(short)
    assert "changed with it: ops: 4 → 5" in text
    assert "more, in the report" not in text


def test_a_note_is_no_change():
    note = Explanation(lines=LINES[-1:])

    class Result:
        explanation = note

    assert strongest(Result, 3) == ("operators were not compared",)


def test_the_table_has_the_strongest_three_each_on_its_line(report):
    lines = said(terminal.render(report, width=160)).splitlines()
    told = [line.strip() for line in lines if "changed with it" in line]
    assert told == [
        "changed with it: syncs: 0 → 1",
        "changed with it: aten::item: 0 → 1 calls: 42 % of the slowdown",
        (
            "changed with it: median SM clock: 1980 → 990 MHz: as much as the whole "
            "slowdown"
        ),
    ]


def test_a_long_table_has_one_line_of_each(report):
    many = replace(report, results=report.results * 41)
    plain = said(terminal.render(many, width=160))
    assert plain.count("changed with it") == 41


def test_the_verbose_table_has_slow_iterations_too(report):
    plain = said(terminal.render(report, width=160))
    assert "slow iterations" not in plain
    verbose = said(terminal.render(report, width=200, verbose=True))
    assert "4 slow iterations beyond 2 × P99 = 2.00 ms, the worst: 500 ms" in verbose


def test_slow_iterations_have_place_and_cause(report):
    (line,) = slow_lines(report.results[0])
    assert line == (
        "run 2: 4 slow iterations beyond 2 × P99 = 2.00 ms, the worst: "
        "500 ms at 250 ms, iteration 7 (1 recompilation); 125 ms at 0 s, iteration 0"
    )


def test_html_has_all_of_it_and_no_markup_from_outside(report):
    page = html.render(report)
    for line in ("syncs: 0 → 1", "ops: 4 → 5", "operators were not compared"):
        assert f"<li>{line}</li>" in page
    assert "&lt;b&gt;hi&lt;/b&gt;" in page
    assert "<b>hi</b>" not in page
    assert "\x1b" not in page
    assert "what changed with it, 4 slow iterations" in page
    assert "iteration 7 (1 recompilation)" in page


@pytest.mark.parametrize(
    "render",
    [
        markdown.render,
        lambda report: comment.render(report, links=Links()).rest,
    ],
    ids=["report.md", "comment"],
)
def test_markdown_has_all_of_it_harmless(render, report):
    page = render(report)
    assert "what changed with it" in page
    assert "ops: 4 → 5" in page
    assert "operators were not compared" in page
    assert "\x1b" not in page
    fence = page.find("```")
    before = page if fence < 0 else page[:fence]
    assert "<b>hi" not in before
    assert "@all" not in before
