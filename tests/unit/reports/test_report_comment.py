"""The comment: worst first, short enough, and nothing in it is live."""

import html
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import cmarkgfm
import hypothesis
import pytest
from cmarkgfm.cmark import Options
from hypothesis import strategies

from pytest_perfgate import reports
from pytest_perfgate.github.pulls import accept_reason
from pytest_perfgate.model import Outcome
from pytest_perfgate.reports import pages
from pytest_perfgate.reports.comment import (
    LAST_RUNG,
    TARGET,
    Accepted,
    Around,
    BaselineEdit,
    Links,
    is_loud,
    kept_table,
    render,
    without_report,
)
from pytest_perfgate.reports.escape import one_line, visible
from pytest_perfgate.reports.layout import shorten_id
from pytest_perfgate.reports.pages import FILTERS
from pytest_perfgate.reports.summary import render as render_summary
from pytest_perfgate.reports.words import overall

LINKS = Links(
    run="https://github.com/o/r/actions/runs/9/attempts/2",
    attempt=2,
    commit="3f1c2ab90d1e7c55aa0e6d0f4b7c8d9e0f1a2b3c",
    repository="https://github.com/o/r",
)
TEMPLATES = sorted((Path(reports.__file__).parent / "templates").glob("*.md.j2"))


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.name)
def test_every_value_in_a_template_ends_in_a_filter(path):
    text = path.read_text(encoding="utf-8")
    macros = set(re.findall(r"\{%-? macro (\w+)\(", text))
    values = re.findall(r"\{\{-?\s*(.*?)\s*-?\}\}", text)
    assert values
    for value in values:
        call = re.fullmatch(r"(\w+)\(.*\)", value)
        if call and call[1] in macros:
            continue
        assert value.rpartition("|")[2].strip() in FILTERS, value


def test_thousands_fit_worst_first(thousands):
    found = render(thousands, links=LINKS)
    assert found.size <= TARGET
    listed = re.findall(r"bench&#91;(\d+)&#93;</code> \| \*\*regressed", found.text)
    assert list(map(int, listed)) == list(reversed(range(60)))


@pytest.mark.parametrize("rung", range(LAST_RUNG + 1))
def test_every_rung_has_the_verdict_and_the_link(thousands, rung):
    found = render(thousands, links=LINKS, rung=rung, limit=10**7)
    assert found.rung == rung
    assert "60 of 3,000 benchmarks regressed" in found.status
    assert LINKS.run in found.text


# what it says -----------------------------------------------------------------

ACCEPTED = Accepted(by="ada", at="2026-11-30T09:00:00Z", reason="", label="ok-slow")


@pytest.mark.parametrize("name", ["each_outcome", "hostile", "empty"])
def test_golden(request, assert_golden, name):
    edit = BaselineEdit(
        benchmark="benches/bench_a.py::bench[a|b]",
        hardware="nvidia-h200",
        metric="latency",
        statistic="median",
        unit="s",
        old=1e-3,
        new=1.2e-3,
    )
    around = Around(label="ok-slow", edits=(edit,), leg="a100")
    report = request.getfixturevalue(name)
    found = render(report, links=LINKS, around=around)
    assert_golden(f"comment_{name}.md", found.text)


def order_of(text, *words):
    places = [text.index(word) for word in words]
    return places == sorted(places)


def test_the_order_of_its_parts(each_outcome):
    edit = BaselineEdit(benchmark="b", hardware="h", metric="m", statistic="s")
    around = Around(edits=(edit,))
    assert order_of(
        render(each_outcome, links=LINKS, around=around).text,
        "### ✗",
        LINKS.run,
        "#### Regressions (1)",
        "#### Not judged (5)",
        "#### Improvements (1)",
        "#### Without a baseline (1)",
        "1 recorded, 1 unchanged, 1 skipped</summary>",
        "<summary>Environment",
        "#### Baselines edited",
        "<summary>What to do next",
        "<summary>How to reproduce this",
        "<summary>How to accept this",
        "<sub>pytest-perfgate",
    )


def test_a_regression_says_how_much_how_sure_why_and_what_changed(each_outcome):
    text = render(each_outcome, links=LINKS).text
    (row,) = (
        line for line in text.splitlines() if "bench_gemm" in line and "| ✗" in line
    )
    for word in ("+42.1 %", "+37.8…+47.1", "confirmed-without-base", "torch: 2.12.0 →"):
        assert word in row


def test_accepted_regressions_are_told_as_such(make_report, make_plain):
    report = make_report([make_plain("a", Outcome.REGRESSED, 1.3)])
    found = render(report, links=LINKS, around=Around(accepted=ACCEPTED))
    assert found.status.startswith("### ✓ ")
    assert "accepted by ada" in found.status
    assert "#### Accepted regressions (1)" in found.rest
    told = "By ada with the label ok-slow at 2026-11-30T09:00:00Z: no reason given"
    assert told in found.rest
    assert overall(report, accepted=True) == "accepted"


def test_accepting_regressions_forgives_nothing_else(
    make_report, make_plain, make_result
):
    results = [make_plain("a", Outcome.REGRESSED, 1.3)]
    for outcome, word in (
        (Outcome.ERROR, "error"),
        (Outcome.INVALID, "invalid"),
        (Outcome.MISSING, "missing"),
        (Outcome.NO_BASELINE, "no-baseline"),
    ):
        report = make_report([*results, make_result("b", outcome)])
        assert overall(report, accepted=True) == word
        found = render(report, links=LINKS, around=Around(accepted=ACCEPTED))
        assert "accepted by" not in found.status
        assert not found.status.startswith("### ✓")
    for change in ({"problem": "teardown failed"}, {"interrupted": True}):
        assert overall(make_report(results, **change), accepted=True) == "error"
    warned = make_report(
        [*results, make_result("b", Outcome.NO_BASELINE)],
        policy={"--perfgate-on-missing": "warn"},
    )
    assert overall(warned, accepted=True) == "accepted"
    doubtful = make_report([*results, make_plain("b", Outcome.INCONCLUSIVE, 1.04)])
    assert overall(doubtful, accepted=True) == "accepted"


@pytest.mark.parametrize(
    ("code", "outcome", "word", "loud"),
    [
        (0, Outcome.UNCHANGED, "pass", False),
        (0, Outcome.NO_BASELINE, "no-baseline", True),
        (0, Outcome.INCONCLUSIVE, "inconclusive", True),
        (0, Outcome.IMPROVED, "improved", True),
        (1, Outcome.REGRESSED, "regressed", True),
        (1, Outcome.ERROR, "error", True),
        (2, Outcome.UNCHANGED, "error", True),
        (3, Outcome.UNCHANGED, "error", True),
        (5, Outcome.SKIPPED, "invalid", True),
        (10, Outcome.NO_BASELINE, "no-baseline", True),
        (11, Outcome.INCOMPARABLE, "incomparable", True),
        (12, Outcome.INVALID, "invalid", True),
        (13, Outcome.INCONCLUSIVE, "inconclusive", True),
        (14, Outcome.MISSING, "missing", True),
    ],
)
def test_one_word_for_all(make_report, make_result, code, outcome, word, loud):
    report = make_report([make_result("a", outcome)], exit_code=code)
    assert overall(report) == word
    assert is_loud(report) is loud
    edit = BaselineEdit(benchmark="b", hardware="h", metric="m", statistic="s")
    assert is_loud(report, Around(edits=(edit,)))


def test_without_a_report(each_outcome):
    found = without_report("the worker `x` died", links=LINKS, leg="a100")
    assert found.last
    assert "### ! a100: nothing was measured" in found.status
    assert "the worker 'x' died" in found.status
    assert LINKS.run in found.text


@pytest.mark.parametrize(
    ("commit", "words"), [("abc", "<code>abc</code>"), ("", "earlier")]
)
def test_whose_the_kept_numbers_are(commit, words):
    assert words in kept_table(commit)


def test_links_that_are_not_known_are_left_out(each_outcome):
    text = render(each_outcome, links=Links()).text
    assert "](" not in text
    assert "3f1c2ab90d1e7c55aa0e6d0f4b7c8d9e0f1a2b3c" in text


@pytest.mark.parametrize("address", ["javascript:alert(1)", "//x", "https://"])
def test_an_address_that_is_none_leads_nowhere(each_outcome, address):
    text = render(each_outcome, links=Links(run=address)).text
    assert "](#)" in text


def test_what_it_advertises_exists(each_outcome):
    from pytest_perfgate import cli
    from pytest_perfgate.options import OPTIONS

    around = Around(label="ok-slow")
    text = html.unescape(render(each_outcome, links=LINKS, around=around).text)
    flags = set(re.findall(r"--perfgate[-a-z]*", text))
    assert flags
    assert flags <= {option.flag for option in OPTIONS}
    helped = cli._parser().format_help()
    assert "perfgate accept" in text
    for command in re.findall(r"<code>perfgate ([a-z]+)", text):
        assert re.search(rf"^ +{command}\b", helped, re.MULTILINE)
    assert "Perf-Accept: REASON" in text
    assert accept_reason("Perf-Accept: REASON") == "REASON"


# how long it is ---------------------------------------------------------------


def test_a_suite_of_regressions_alone_fits(make_report, make_plain):
    results = [
        make_plain(f"benches/bench_{'x' * 80}.py::bench[{i}]", Outcome.REGRESSED, 1 + i)
        for i in range(1, 1_500)
    ]
    found = render(make_report(results), links=LINKS)
    assert found.size <= TARGET
    assert found.units <= found.size
    assert "1,399 more, in the report of the run" in found.text
    assert "bench&#91;1499&#93;" in found.text


def test_the_last_rung_is_short_whatever_the_report_holds(make_report, make_result):
    long = "x" * 100_000
    results = [
        make_result(
            f"{long}{i}", Outcome.ERROR, detail=long, text=long, remarks=(long,) * 9
        )
        for i in range(400)
    ]
    edits = tuple(
        BaselineEdit(benchmark=f"{long}{i}", hardware="h", metric=long, statistic="s")
        for i in range(900)
    )
    report = make_report(results, summary=long, created=long, commit=long)
    found = render(report, links=LINKS, around=Around(edits=edits))
    assert found.size <= TARGET
    last = render(report, links=LINKS, rung=LAST_RUNG, around=Around(edits=edits))
    assert last.size < 6_000
    assert "900 baselines edited" in last.text


def test_an_id_longer_than_120_loses_its_middle(make_report, make_plain):
    name = f"benches/{'deep/' * 40}bench_a.py::bench[4096]"
    text = render(
        make_report([make_plain(name, Outcome.REGRESSED, 1.2)]), links=LINKS
    ).text
    (row,) = (line for line in text.splitlines() if line.startswith("| ✗"))
    shown = html.unescape(re.search("<code>(.*?)</code>", row)[1])
    assert len(shown) == 120
    assert shown.endswith("…ep/bench_a.py::bench[4096]") or "…" in shown
    assert shown.endswith("bench[4096]")


def test_a_summary_stays_below_its_limit_and_ends_with_the_link(
    make_report, make_plain
):
    count = 5_000
    ratios = (Outcome.REGRESSED, 1.4), (Outcome.UNCHANGED, 1.0)
    results = [
        make_plain(f"benches/bench_big.py::bench_of_many[{i}]", *ratios[i % 2])
        for i in range(count)
    ]
    text = render_summary(make_report(results), links=LINKS)
    assert len(text.encode()) <= 1_000_000
    assert LINKS.run in text.rstrip().splitlines()[-1]
    assert text.count("**regressed: ") == count // 2


# nothing in it is live --------------------------------------------------------

NASTY = [
    "a|b",
    "a||b",
    "a`b",
    "a``b`c",
    "a|`b",
    "```",
    "<b>x</b>",
    "<script>alert(1)</script>",
    "</code><img src=x onerror=y>",
    "<!-- /pytest-perfgate:status -->",
    "@octocat",
    "x@octocat.com",
    "x_@octocat.com",
    "a_*@b.com a@b@c.com",
    "xmpp:a@b.com",
    "#12",
    "GH-12",
    "o/r#1",
    "http://evil.example",
    "https://evil.example/a?b",
    "www.evil.example",
    "WWW.evil.example",
    "mailto:a@b.com",
    "[x](http://evil.example)",
    "![x](y)",
    "**bold** __x__ ~~y~~ _z_",
    ":tada:",
    "$x^2$",
    "a\\|b",
    "a\nb",
    "a\r\n| x | y |",
    "\u202etxt.exe",
    "\u2028\u2029",
    "\x1b[31mred",
    "&lt;b&gt; &amp; &#64;",
    "- x",
    "> x",
    "    x",
    "{{ 7*7 }}{% raw %}",
    "\\1 \\g<0>",
    "矩阵",
    "x" * 300,
]


class Page(HTMLParser):
    """Collects what would be live, and the cells of each row."""

    def __init__(self, text):
        super().__init__()
        self.live, self.rows, self.cell = [], [], None
        self.feed(cmarkgfm.github_flavored_markdown_to_html(text, UNSAFE))

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        if tag in {"script", "img", "b", "em", "strong", "del", "h1"}:
            self.live.append((tag, given))
        if tag == "a":
            self.live.append((tag, given.get("href")))
        if tag == "tr":
            self.rows.append([])
        if tag in {"td", "th"}:
            self.rows[-1].append("")
            self.cell = True

    def handle_endtag(self, tag):
        if tag in {"td", "th"}:
            self.cell = None

    def handle_data(self, data):
        if self.cell and self.rows and self.rows[-1]:
            self.rows[-1][-1] += data


UNSAFE = Options.CMARK_OPT_UNSAFE
KNOWN = {
    ("a", LINKS.run),
    ("a", f"{LINKS.repository}/commit/{LINKS.commit}"),
    ("strong", ()),
}


@pytest.mark.parametrize("nasty", NASTY)
def test_an_id_stays_in_its_cell_and_does_nothing(make_report, make_plain, nasty):
    name = f"benches/bench_a.py::bench[{nasty}]"
    regressed = make_plain(name, Outcome.REGRESSED, 1.2)
    regressed = replace(regressed, remarks=(nasty,), text=nasty)
    edit = BaselineEdit(
        benchmark=name, hardware=nasty, metric=nasty, statistic="s", told=nasty
    )
    around = Around(
        edits=(edit,),
        leg=nasty,
        notes=(nasty,),
        label=nasty,
        edits_note=nasty,
        accepted=Accepted(by=nasty, at=nasty, reason=nasty, label=nasty),
    )
    report = make_report(
        [regressed, make_plain(name, Outcome.UNCHANGED, 1.0)],
        summary=f"1 regressed {nasty}",
        created=nasty,
        commit=nasty,
        policy={nasty: nasty},
    )
    for given in (around, replace(around, accepted=None)):
        text = render(report, links=LINKS, around=given).text
        page = Page(text)
        live = {(tag, what if tag == "a" else ()) for tag, what in page.live}
        assert live <= KNOWN
        of_id = [row for row in page.rows if any("bench_a.py" in cell for cell in row)]
        assert [len(row) for row in of_id] == [8, 8, 6]
        shown = shorten_id(visible(name), 120)
        for row in of_id:
            assert shown in [cell.replace("\u200b", "") for cell in row]
        for word in re.findall(
            r"[@#]\w",
            re.sub(
                "<code>.*?</code>|```.*?```", "", html.unescape(text), flags=re.DOTALL
            ),
        ):
            assert word.startswith("##") or nasty.startswith("&"), word


@hypothesis.given(strategies.text(max_size=12))
def test_whatever_is_in_a_cell_stays_there(foreign):
    shown = f"{pages.code(f'x{foreign}')} | {pages.text(foreign)}"
    page = Page(f"| a | b |\n| --- | --- |\n| {shown} |\n")
    assert page.live == []
    assert [len(row) for row in page.rows] == [2, 2]
    cells = [cell.replace("\u200b", "") for cell in page.rows[1]]
    assert cells == [visible(f"x{foreign}"), one_line(foreign)]
