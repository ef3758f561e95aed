"""The comment on a pull request: the worst first, and as short as it has to be."""

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from pytest_perfgate.model import BenchmarkResult, Judgement, Outcome, Report
from pytest_perfgate.reports import figures
from pytest_perfgate.reports.advice import UPDATE, Step, difference_text, next_steps
from pytest_perfgate.reports.escape import markdown_prose
from pytest_perfgate.reports.pages import render_page, render_status
from pytest_perfgate.reports.words import (
    GREEN,
    LOOKS,
    QUIET,
    attempts_text,
    counted,
    counts,
    deciding,
    directions,
    machines,
    others,
    overall,
    remarks_of,
    shift_text,
    title,
    verdict_text,
    worst_first,
)
from pytest_perfgate.units import format_change, format_value

TARGET = 60_000
"""Bytes that a comment aims at; the server's own limit is a little above."""
_FEW = 20
_MOST_NOTES = 6
_MOST_TEXTS, _MOST_TEXT = 10, 1_500
_MOST_FACTS = 30
_MOST_TO_REPRODUCE = 3
_LONGEST_ID = 200
_SHORTEST_ROW = 60
"""No row of the table has fewer bytes: what cannot fit need not be rendered."""

_UNDECIDED = (
    Outcome.ERROR,
    Outcome.INVALID,
    Outcome.INCOMPARABLE,
    Outcome.MISSING,
    Outcome.INCONCLUSIVE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rung:
    """How much is told; a None lists all."""

    quiet: bool = False
    texts: bool = False
    tables: bool = True
    most_regressed: int | None = None
    most_others: int | None = _FEW
    most_edits: int = 50


_LADDER: tuple[_Rung, ...] = (
    _Rung(quiet=True, texts=True, most_others=None),
    _Rung(texts=True, most_others=None),
    _Rung(),
    _Rung(most_regressed=1_000),
    _Rung(most_regressed=100),
    _Rung(most_regressed=_FEW, most_others=0, most_edits=_FEW),
    _Rung(tables=False, most_regressed=0, most_others=0),
)
LAST_RUNG = len(_LADDER) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Links:
    """Where the numbers come from; what is not known is empty."""

    run: str = ""
    """The page of the run that measured."""
    attempt: int = 1
    commit: str = ""
    """The commit to show, in full."""
    repository: str = ""
    """The page of the repository, for a link to the commit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """Who took responsibility for the regressions, and why."""

    by: str
    at: str = ""
    reason: str = ""
    label: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselineEdit:
    """One statistic of a baseline that a pull request changes; None: not there."""

    benchmark: str
    hardware: str
    metric: str
    statistic: str
    unit: str = ""
    old: float | None = None
    new: float | None = None
    told: str = ""
    """What to say where there are no numbers: a file that cannot be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Around:
    """What a comment says besides the report."""

    accepted: Accepted | None = None
    edits: tuple[BaselineEdit, ...] = ()
    edits_note: str = ""
    """Why the list of edits is missing or not whole."""
    label: str = ""
    """The label that accepts a regression; empty where none does."""
    leg: str = ""
    """Which of several reports of one run this is."""
    notes: tuple[str, ...] = ()
    """Said below the verdict: why a label does not count, say."""


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
class _Row:
    glyph: str
    name: str
    verdict: str
    loud: bool
    notes: tuple[str, ...] = ()
    metric: str = ""
    baseline: str = ""
    now: str = ""
    change: str = ""
    budget: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Section:
    title: str
    rows: tuple[_Row, ...]
    told: str = ""
    left_out: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Text:
    name: str
    reason: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fact:
    name: str
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Command:
    told: str
    line: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    told: str
    url: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Edit:
    benchmark: str
    hardware: str
    metric: str
    old: str
    new: str
    change: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Status:
    glyph: str
    headline: str
    lines: tuple[str, ...]
    link: _Part
    commit: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Page:
    sections: tuple[_Section, ...] = ()
    texts: tuple[_Text, ...] = ()
    quiet: tuple[_Row, ...] = ()
    quiet_title: str = ""
    facts: tuple[_Fact, ...] = ()
    edits: tuple[_Edit, ...] = ()
    edits_left_out: int = 0
    edits_note: str = ""
    steps: tuple[Step, ...] = ()
    reproduce: tuple[_Command, ...] = ()
    accept: tuple[str, ...] = ()
    footer: tuple[_Part, ...] = ()


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


def _rows_at(results: Sequence[BenchmarkResult], told: _Rung) -> int:
    """Count what is listed at a rung, at the least."""
    quiet = len(_of(results, *QUIET))
    regressed = len(_of(results, Outcome.REGRESSED))
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
        headline=f"{_plain(leg)}: {headline}" if leg else headline,
        lines=(_plain(problem), "the log of the run has more"),
        link=_run_part(links),
        commit=links.commit,
    )
    page = _Page(footer=tuple(_footer(links)))
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
        f"{_plain(around.leg)}: {report.summary}" if around.leg else report.summary
    )
    if word == "accepted" and around.accepted:
        headline += f"; accepted by {_plain(around.accepted.by)}"
    return _Status(
        glyph=_glyph(word),
        headline=headline,
        lines=tuple(_verdict_lines(report, around)),
        link=_run_part(links),
        commit=links.commit or report.commit or "",
    )


def _plain(text: str) -> str:
    """Take backticks out of foreign text that goes into a sentence of ours."""
    return text.replace("`", "'")


def _glyph(word: str) -> str:
    if word in {"pass", "accepted"}:
        return LOOKS[Outcome.IMPROVED].glyph
    return LOOKS[Outcome(word)].glyph


def _verdict_lines(report: Report, around: Around) -> Iterator[str]:
    if report.interrupted:
        yield "Interrupted: this is what was known by then."
    if report.problem:
        yield _plain(report.problem)
    total = counted(len(report.results), "benchmark")
    parts = [f"{LOOKS[one].glyph} {number:,} {one}" for one, number in counts(report)]
    yield f"{total}: {', '.join(parts)}" if parts else total
    yield from filter(
        None, (directions(report), shift_text(report), attempts_text(report))
    )
    told = dict.fromkeys((*around.notes, *report.notes))
    told.pop(report.problem, None)  # it has been said
    yield from map(_plain, [*told][:_FEW])


def _run_part(links: Links) -> _Part:
    told = "the run" if links.attempt == 1 else f"the run, attempt {links.attempt}"
    return _Part(told=told, url=links.run)


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
    footer = tuple(_footer(links, report))
    if not told.tables:
        return _Page(footer=footer, edits_note=_edits_in_short(around))
    page = _Page(
        sections=tuple(_sections(results, around, told)),
        edits=tuple(_edit(one) for one in around.edits[: told.most_edits]),
        edits_left_out=max(0, len(around.edits) - told.most_edits),
        edits_note=around.edits_note,
        steps=next_steps(report),
        reproduce=tuple(_reproduce(results)),
        accept=tuple(_accept(results, around)),
        footer=footer,
    )
    if not told.texts:
        return page
    page = replace(page, facts=tuple(_facts(report)), texts=tuple(_texts(results)))
    if not told.quiet:
        return page
    quiet = [one for one in results if one.verdict.outcome in QUIET]
    found = [(one, number) for one, number in counts(report) if one in QUIET]
    return replace(
        page,
        quiet=tuple(row for one in quiet for row in _rows(one)),
        quiet_title=", ".join(f"{number:,} {one}" for one, number in found),
    )


def _edits_in_short(around: Around) -> str:
    """Say on the last rung, too, that baselines are edited."""
    if not around.edits:
        return around.edits_note
    count = len({(one.benchmark, one.hardware) for one in around.edits})
    return f"{counted(count, 'baseline')} edited in this pull request: see its diff."


def _sections(
    results: Sequence[BenchmarkResult], around: Around, told: _Rung
) -> Iterator[_Section]:
    regressed = _of(results, Outcome.REGRESSED)
    accepted = around.accepted is not None
    if not told.most_others and told.most_others is not None:
        worst = [one for one in results if one.verdict.outcome not in QUIET]
        yield from _section("The worst", worst, most=told.most_regressed)
        return
    if not accepted:
        yield from _section("Regressions", regressed, most=told.most_regressed)
    yield from _section("Not judged", _of(results, *_UNDECIDED), most=told.most_others)
    if accepted:
        yield from _section(
            "Accepted regressions",
            regressed,
            most=told.most_regressed,
            told=_accepted_text(around.accepted),
        )
    improved = _of(results, Outcome.IMPROVED)
    yield from _section("Improvements", improved, most=told.most_others)
    missing = _of(results, Outcome.NO_BASELINE)
    yield from _section("Without a baseline", missing, most=told.most_others)


def _accepted_text(accepted: Accepted | None) -> str:
    if accepted is None:
        return ""
    text = f"By {_plain(accepted.by)}"
    if accepted.label:
        text += f" with the label {_plain(accepted.label)}"
    if accepted.at:
        text += f" at {_plain(accepted.at)}"
    return f"{text}: {_plain(accepted.reason) or 'no reason given'}"


def _of(
    results: Sequence[BenchmarkResult], *outcomes: Outcome
) -> list[BenchmarkResult]:
    return [one for one in results if one.verdict.outcome in outcomes]


def _section(
    title: str, results: Sequence[BenchmarkResult], *, most: int | None, told: str = ""
) -> Iterator[_Section]:
    if results:
        listed = results[:most]
        yield _Section(
            title=f"{title} ({len(results):,})",
            rows=tuple(row for one in listed for row in _rows(one)),
            told=told,
            left_out=len(results) - len(listed),
        )


def _rows(result: BenchmarkResult) -> Iterator[_Row]:
    main = deciding(result)
    notes = tuple(_notes(result, main))
    shown = notes[:_MOST_NOTES]
    if len(notes) > _MOST_NOTES:
        shown += (f"and {len(notes) - _MOST_NOTES} more remarks, in the report",)
    row = _Row(
        glyph=LOOKS[result.verdict.outcome].glyph,
        name=title(result),
        verdict=verdict_text(result.verdict),
        loud=result.verdict.outcome not in GREEN,
        notes=shown,
    )
    yield _with_figures(row, figures.of_result(result, main))
    if result.verdict.outcome not in QUIET:
        for judgement in others(result, main=main, verbose=False):
            yield _side_row(judgement)


def _side_row(judgement: Judgement) -> _Row:
    verdict = judgement.verdict
    row = _Row(
        glyph=LOOKS[judgement.outcome].glyph,
        name="",
        verdict=verdict_text(verdict),
        loud=False,
        notes=(verdict.detail,) if verdict.detail else (),
    )
    return _with_figures(row, figures.judged(judgement))


def _with_figures(row: _Row, found: figures.Figures | None) -> _Row:
    if found is None:
        return row
    return replace(
        row,
        metric=found.metric,
        baseline=found.baseline,
        now=found.now,
        change=found.change_with_interval,
        budget=found.budget,
    )


def _notes(result: BenchmarkResult, main: Judgement | None) -> Iterator[str]:
    """Complete the verdict: its detail, what changed with it, what was remarked."""
    if result.verdict.detail:
        yield result.verdict.detail
    for difference in result.differences:
        yield difference_text(difference)
    yield from remarks_of(result) + (main.remarks if main else ())
    for text in result.discarded:
        yield f"not used: {text}"


def _texts(results: Sequence[BenchmarkResult]) -> Iterator[_Text]:
    told = [one for one in results if one.text and one.verdict.outcome not in QUIET]
    for result in told[:_MOST_TEXTS]:
        yield _Text(
            name=title(result),
            reason=result.verdict.reason.value,
            text=result.text[-_MOST_TEXT:],
        )


def _facts(report: Report) -> Iterator[_Fact]:
    environment = report.environment
    if environment is None:
        return
    yield _Fact(name="machine", value=environment.key)
    both = {**environment.hardware, **environment.software}
    known = [(name, value) for name, value in both.items() if value is not None]
    for name, value in known[:_MOST_FACTS]:
        yield _Fact(name=name, value=str(value))
    given = [f"{name}={value}" for name, value in report.policy.items()]
    if given:
        yield _Fact(name="judged by", value=" ".join(given))


def _edit(edit: BaselineEdit) -> _Edit:
    def side(value: float | None) -> str:
        return figures.NOTHING if value is None else format_value(value, edit.unit)

    return _Edit(
        benchmark=edit.benchmark,
        hardware=edit.hardware,
        metric=f"{edit.metric}·{edit.statistic}" if edit.metric else "",
        old=side(edit.old),
        new=side(edit.new),
        change=edit.told or _edit_change(edit),
    )


def _edit_change(edit: BaselineEdit) -> str:
    if edit.old is None:
        return "added"
    if edit.new is None:
        return "removed"
    if edit.old > 0 and edit.new > 0:
        return format_change(edit.new / edit.old)
    return "changed"


def _reproduce(results: Sequence[BenchmarkResult]) -> Iterator[_Command]:
    """Give the command for the worst ones; an id too long to copy is left out."""
    red = [
        one for one in results if one.verdict.outcome not in GREEN | {Outcome.MISSING}
    ]
    ids = dict.fromkeys(one.nodeid for one in red)
    short = [one for one in ids if len(one) <= _LONGEST_ID and one.isprintable()]
    if not short:
        return
    words = shlex.join(["pytest", "--perfgate", *short[:_MOST_TO_REPRODUCE]])
    count = len(short[:_MOST_TO_REPRODUCE])
    which = "the worst" if len(ids) > count else "them"
    yield _Command(told=f"measure {which} again, on a machine of this kind", line=words)


def _accept(results: Sequence[BenchmarkResult], around: Around) -> Iterator[str]:
    found = [one for one in results if one.verdict.outcome not in GREEN]
    if not found:
        return
    yield (
        f"Record the new numbers with {UPDATE} on a machine of this kind, and commit "
        "the baselines in this pull request: they are reviewed with the code."
    )
    yield (
        "Or take them out of the report of this run: download its artifact, and commit "
        "what `perfgate accept REPORT` writes."
    )
    if around.label and _of(results, Outcome.REGRESSED):
        yield (
            f"Or let somebody with write access set the label `{_plain(around.label)}` "
            "and say why in a line `Perf-Accept: REASON` of the description; then run "
            "the gate again. That holds for this pull request, not for the baselines."
        )


def _footer(links: Links, report: Report | None = None) -> Iterator[_Part]:
    yield _Part(told="pytest-perfgate")
    if links.run:
        yield _Part(told=f"run, attempt {links.attempt}", url=links.run)
    commit = links.commit or (report.commit if report else None) or ""
    if commit and links.repository and links.commit:
        yield _Part(
            told=f"commit {commit[:12]}", url=f"{links.repository}/commit/{commit}"
        )
    elif commit:
        yield _Part(told=f"commit `{_plain(commit)}`")
    if report is None:
        return
    on = [f"`{_plain(machine)}`" for machine in machines(report)]
    if on:
        yield _Part(told=f"on {', '.join(on[:_FEW])}")
    yield _Part(told=f"made {_plain(report.created)}")
    if report.cost:
        yield _Part(told=_plain(figures.cost_text(report.cost)))
