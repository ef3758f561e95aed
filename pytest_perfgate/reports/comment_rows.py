"""The tables of the comment: a section for each kind of outcome, the worst first."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from pytest_perfgate.model import BenchmarkResult, Judgement, Outcome
from pytest_perfgate.reports import figures
from pytest_perfgate.reports.advice import difference_text
from pytest_perfgate.reports.around import Accepted, Around, plain
from pytest_perfgate.reports.explained import strongest
from pytest_perfgate.reports.words import (
    GREEN,
    LOOKS,
    QUIET,
    deciding,
    others,
    remarks_of,
    title,
    verdict_text,
)

FEW = 20
STRONGEST = 3
"""Lines of an explanation in the table; all of them are folded below it."""
_MOST_NOTES = 6
_UNDECIDED = (
    Outcome.ERROR,
    Outcome.INVALID,
    Outcome.INCOMPARABLE,
    Outcome.MISSING,
    Outcome.INCONCLUSIVE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rung:
    """How much is told; a None lists all."""

    quiet: bool = False
    texts: bool = False
    tables: bool = True
    most_regressed: int | None = None
    most_others: int | None = FEW
    most_edits: int = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One judged statistic as the table shows it; the name only in a benchmark's first."""

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
class Section:
    """A table with its heading."""

    title: str
    rows: tuple[Row, ...]
    told: str = ""
    left_out: int = 0


def sections(
    results: Sequence[BenchmarkResult], around: Around, told: Rung
) -> Iterator[Section]:
    regressed = of_outcome(results, Outcome.REGRESSED)
    accepted = around.accepted is not None
    if not told.most_others and told.most_others is not None:
        worst = [one for one in results if one.verdict.outcome not in QUIET]
        yield from _section("The worst", worst, most=told.most_regressed)
        return
    if not accepted:
        yield from _section("Regressions", regressed, most=told.most_regressed)
    yield from _section(
        "Not judged", of_outcome(results, *_UNDECIDED), most=told.most_others
    )
    if accepted:
        yield from _section(
            "Accepted regressions",
            regressed,
            most=told.most_regressed,
            told=_accepted_text(around.accepted),
        )
    improved = of_outcome(results, Outcome.IMPROVED)
    yield from _section("Improvements", improved, most=told.most_others)
    missing = of_outcome(results, Outcome.NO_BASELINE)
    yield from _section("Without a baseline", missing, most=told.most_others)


def _accepted_text(accepted: Accepted | None) -> str:
    if accepted is None:
        return ""
    text = f"By {plain(accepted.by)}"
    if accepted.label:
        text += f" with the label {plain(accepted.label)}"
    if accepted.at:
        text += f" at {plain(accepted.at)}"
    return f"{text}: {plain(accepted.reason) or 'no reason given'}"


def of_outcome(
    results: Sequence[BenchmarkResult], *outcomes: Outcome
) -> list[BenchmarkResult]:
    return [one for one in results if one.verdict.outcome in outcomes]


def _section(
    title: str, results: Sequence[BenchmarkResult], *, most: int | None, told: str = ""
) -> Iterator[Section]:
    if results:
        listed = results[:most]
        yield Section(
            title=f"{title} ({len(results):,})",
            rows=tuple(row for one in listed for row in rows_of(one)),
            told=told,
            left_out=len(results) - len(listed),
        )


def rows_of(result: BenchmarkResult) -> Iterator[Row]:
    main = deciding(result)
    notes = tuple(_notes(result, main))
    shown = notes[:_MOST_NOTES]
    if len(notes) > _MOST_NOTES:
        shown += (f"and {len(notes) - _MOST_NOTES} more remarks, in the report",)
    row = Row(
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


def _side_row(judgement: Judgement) -> Row:
    verdict = judgement.verdict
    row = Row(
        glyph=LOOKS[judgement.outcome].glyph,
        name="",
        verdict=verdict_text(verdict),
        loud=False,
        notes=(verdict.detail,) if verdict.detail else (),
    )
    return _with_figures(row, figures.judged(judgement))


def _with_figures(row: Row, found: figures.Figures | None) -> Row:
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
    yield from strongest(result, STRONGEST)
    if result.explanation is None:
        yield from map(difference_text, result.differences)
    yield from remarks_of(result) + (main.remarks if main else ())
    yield from result.discarded
