"""The comment on a pull request: the worst first, and as short as it has to be."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from pytest_perfgate.model import BenchmarkResult, Outcome, Report
from pytest_perfgate.reports.advice import Step, next_steps
from pytest_perfgate.reports.around import (
    Accepted,
    Around,
    BaselineEdit,
    Links,
    plain,
)
from pytest_perfgate.reports.comment_parts import (
    Command,
    Edit,
    Fact,
    Part,
    Text,
    accept,
    edit_row,
    explanations,
    facts,
    footer,
    reproduce,
    texts,
)
from pytest_perfgate.reports.comment_rows import (
    FEW,
    Row,
    Rung,
    Section,
    of_outcome,
    rows_of,
    sections,
)
from pytest_perfgate.reports.escape import markdown_prose
from pytest_perfgate.reports.pages import render_page, render_status
from pytest_perfgate.reports.words import (
    LOOKS,
    QUIET,
    attempts_text,
    base_text,
    counted,
    counts,
    directions,
    overall,
    shift_text,
    worst_first,
)

__all__ = [
    "LAST_RUNG",
    "TARGET",
    "Accepted",
    "Around",
    "BaselineEdit",
    "Links",
    "Rendered",
    "has_numbers",
    "is_loud",
    "kept_table",
    "render",
    "without_report",
]

TARGET = 60_000
"""Bytes that a comment aims at; the server's own limit is a little above."""
_SHORTEST_ROW = 60
"""No row of the table has fewer bytes: what cannot fit need not be rendered."""

_LADDER: tuple[Rung, ...] = (
    Rung(quiet=True, texts=True, most_others=None),
    Rung(texts=True, most_others=None),
    Rung(),
    Rung(most_regressed=1_000),
    Rung(most_regressed=100),
    Rung(most_regressed=FEW, most_others=0, most_edits=FEW),
    Rung(tables=False, most_regressed=0, most_others=0),
)
LAST_RUNG = len(_LADDER) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Rendered:
    """A comment's text at one rung of the ladder of sizes."""

    status: str
    """The verdict and how it came about."""
    rest: str
    """Everything below; ends with the footer."""
    rung: int

    @property
    def text(self) -> str:
        return f"{self.status}\n{self.rest}"

    @property
    def last(self) -> bool:
        return self.rung >= LAST_RUNG

    @property
    def units(self) -> int:
        """UTF-16 code units, as the server may count."""
        return len(self.text.encode("utf-16-le", "replace")) // 2

    @property
    def size(self) -> int:
        """Bytes; never fewer than UTF-16 units."""
        return len(self.text.encode("utf-8", "replace"))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Status:
    glyph: str
    headline: str
    lines: tuple[str, ...]
    link: Part
    commit: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Page:
    sections: tuple[Section, ...] = ()
    texts: tuple[Text, ...] = ()
    quiet: tuple[Row, ...] = ()
    quiet_title: str = ""
    facts: tuple[Fact, ...] = ()
    edits: tuple[Edit, ...] = ()
    edits_left_out: int = 0
    edits_note: str = ""
    steps: tuple[Step, ...] = ()
    reproduce: tuple[Command, ...] = ()
    accept: tuple[str, ...] = ()
    footer: tuple[Part, ...] = ()


def render(
    report: Report,
    *,
    links: Links,
    limit: int = TARGET,
    rung: int = 0,
    around: Around | None = None,
) -> Rendered:
    """Render the comment at a rung, or at the first one below that fits.

    The rungs: everything; without what is unchanged; the regressions and twenty
    of each other kind; fewer regressions, down to the twenty worst; the verdict and
    the link alone. The last is given even where it does not fit.

    Parameters
    ----------
    report : what the session found; its strings are not trusted
    links : where the numbers come from
    limit : bytes of the whole text
    rung : where to begin, 0 to `LAST_RUNG`
    around : acceptance, edited baselines, notes
    """
    around = around or Around()
    results = worst_first(report.results)
    status = render_status(_status(report, links, around))
    while True:
        rows = _rows_at(results, _LADDER[rung])
        if rows * _SHORTEST_ROW <= limit or rung >= LAST_RUNG:
            page = _page(report, results, links=links, around=around, rung=rung)
            found = Rendered(status=status, rest=render_page(page), rung=rung)
            if found.size <= limit or found.last:
                return found
        rung += 1


def _rows_at(results: Sequence[BenchmarkResult], told: Rung) -> int:
    """Count what is listed at a rung, at the least."""
    quiet = len(of_outcome(results, *QUIET))
    regressed = len(of_outcome(results, Outcome.REGRESSED))
    others = len(results) - quiet - regressed
    return (
        (quiet if told.quiet else 0)
        + _at_most(regressed, told.most_regressed)
        + _at_most(others, told.most_others)
    )


def _at_most(count: int, most: int | None) -> int:
    return count if most is None else min(count, most)


def without_report(problem: str, *, links: Links, leg: str = "") -> Rendered:
    """Render what is said where a measurement left no report.

    Parameters
    ----------
    problem : what went wrong, in a sentence without a full stop
    links : the run whose log has more
    leg : which of several reports of one run this would be
    """
    headline = "nothing was measured: this says nothing about performance"
    status = _Status(
        glyph=LOOKS[Outcome.ERROR].glyph,
        headline=f"{plain(leg)}: {headline}" if leg else headline,
        lines=(plain(problem), "the log of the run has more"),
        link=_run_part(links),
        commit=links.commit,
    )
    page = _Page(footer=tuple(footer(links)))
    return Rendered(
        status=render_status(status), rest=render_page(page), rung=LAST_RUNG
    )


def kept_table(commit: str) -> str:
    """Say of which commit an earlier table is, in Markdown; empty: not known."""
    where = f"commit `{commit}`" if commit else "an earlier commit"
    return markdown_prose(f"The numbers below are those of {where}.")


def has_numbers(report: Report) -> bool:
    """Tell whether anything was measured that a table could show."""
    return any(
        result.runs or any(one.comparison for one in result.judgements)
        for result in report.results
    )


def is_loud(report: Report, around: Around | None = None) -> bool:
    """Tell whether there is anything to say that is not simply well."""
    edited = around is not None and bool(around.edits)
    return overall(report) != "pass" or edited


# the verdict ------------------------------------------------------------------


def _status(report: Report, links: Links, around: Around) -> _Status:
    word = overall(report, accepted=around.accepted is not None)
    headline = (
        f"{plain(around.leg)}: {report.summary}" if around.leg else report.summary
    )
    if word == "accepted" and around.accepted:
        headline += f"; accepted by {plain(around.accepted.by)}"
    return _Status(
        glyph=_glyph(word),
        headline=headline,
        lines=tuple(_verdict_lines(report, around)),
        link=_run_part(links),
        commit=links.commit or report.commit or "",
    )


def _glyph(word: str) -> str:
    if word in {"pass", "accepted"}:
        return LOOKS[Outcome.IMPROVED].glyph
    return LOOKS[Outcome(word)].glyph


def _verdict_lines(report: Report, around: Around) -> Iterator[str]:
    if report.interrupted:
        yield "Interrupted: this is what was known by then."
    if report.problem:
        yield plain(report.problem)
    total = counted(len(report.results), "benchmark")
    parts = [f"{LOOKS[one].glyph} {number:,} {one}" for one, number in counts(report)]
    yield f"{total}: {', '.join(parts)}" if parts else total
    yield from filter(
        None,
        (
            directions(report),
            shift_text(report),
            attempts_text(report),
            plain(base_text(report)),
        ),
    )
    told = dict.fromkeys((*around.notes, *report.notes))
    told.pop(report.problem, None)  # it has been said
    yield from map(plain, [*told][:FEW])


def _run_part(links: Links) -> Part:
    told = "the run" if links.attempt == 1 else f"the run, attempt {links.attempt}"
    return Part(told=told, url=links.run)


# what is below it -------------------------------------------------------------


def _page(
    report: Report,
    results: Sequence[BenchmarkResult],
    *,
    links: Links,
    around: Around,
    rung: int,
) -> _Page:
    told = _LADDER[rung]
    end = tuple(footer(links, report))
    if not told.tables:
        return _Page(footer=end, edits_note=_edits_in_short(around))
    page = _Page(
        sections=tuple(sections(results, around, told)),
        edits=tuple(edit_row(one) for one in around.edits[: told.most_edits]),
        edits_left_out=max(0, len(around.edits) - told.most_edits),
        edits_note=around.edits_note,
        steps=next_steps(report),
        reproduce=tuple(reproduce(results)),
        accept=tuple(accept(results, around)),
        footer=end,
    )
    if not told.texts:
        return page
    page = replace(
        page,
        facts=tuple(facts(report)),
        texts=(*explanations(results), *texts(results)),
    )
    if not told.quiet:
        return page
    quiet = [one for one in results if one.verdict.outcome in QUIET]
    found = [(one, number) for one, number in counts(report) if one in QUIET]
    return replace(
        page,
        quiet=tuple(row for one in quiet for row in rows_of(one)),
        quiet_title=", ".join(f"{number:,} {one}" for one, number in found),
    )


def _edits_in_short(around: Around) -> str:
    """Say on the last rung, too, that baselines are edited."""
    if not around.edits:
        return around.edits_note
    count = len({(one.benchmark, one.hardware) for one in around.edits})
    return f"{counted(count, 'baseline')} edited in this pull request: see its diff."
