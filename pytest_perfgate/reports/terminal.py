"""The table a person reads, as styled lines; the caller writes them.

Two layouts. Where a whole row fits on one line with room for the benchmark's
name, each judged statistic is one line; else it is two: name and verdict above,
numbers below. Neither ever wraps inside a cell. Of the numbers below, where
they do not fit, the least needed go first: the smallest change that would have
been seen, the budget, the baseline's value, the value now; then the interval is cut.
The verdict never goes.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pytest_perfgate.model import BenchmarkResult, Judgement, Outcome, Report
from pytest_perfgate.reports import figures
from pytest_perfgate.reports.advice import next_steps
from pytest_perfgate.reports.escape import one_line
from pytest_perfgate.reports.explained import slow_lines, strongest
from pytest_perfgate.reports.layout import (
    Line,
    Segment,
    clip,
    display_width,
    line,
    pad,
    shorten_id,
    wrap,
)
from pytest_perfgate.reports.words import (
    GREEN,
    LOOKS,
    QUIET,
    attempts_text,
    base_text,
    counted,
    counts,
    deciding,
    directions,
    not_used,
    others,
    remarks_of,
    shift_text,
    title,
    verdict_text,
    worst_first,
)

NARROWEST = 50
"""Columns below which lines are made as if there were so many."""
_FOLD_ABOVE = 40
_MOST_ROWS = 100
_NAME_AT_LEAST = 24
_NOTE_LINES = 3
_METRIC_AT_MOST = 26
_GAP = "  "
_INDENT = "    "

_HEADINGS = {
    "metric": "metric·statistic",
    "baseline": "baseline",
    "now": "now",
    "change": "change [interval]",
    "budget": "budget",
    "sees": "sees",
}
_DROPPED_FIRST = ("sees", "budget", "baseline", "now")
_LEFT = frozenset({"metric", "change"})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    """One statistic of one benchmark; `name` is empty below a main row."""

    outcome: Outcome
    name: str
    verdict: str
    cells: dict[str, str]
    notes: tuple[str, ...] = ()
    clues: tuple[str, ...] = ()
    slow: tuple[str, ...] = ()


def render(report: Report, *, width: int, verbose: bool = False) -> tuple[Line, ...]:
    """Render a report for a terminal of `width` columns.

    Parameters
    ----------
    report : what the session found
    width : columns; fewer than 50 are taken as 50
    verbose : list every benchmark and every statistic, those that are only shown
        included; otherwise, above 40 benchmarks, unchanged and skipped ones are
        counted, and above 100 rows the least severe are

    Returns
    -------
    tuple of Line
        Table, totals, what to do next, cost, and last the outcome in words.
    """
    room = max(width, NARROWEST)
    return (
        *_table(report, room, verbose=verbose),
        *_totals(report, room),
        *_next(report, room),
        *_closing(report, room),
    )


def _table(report: Report, width: int, *, verbose: bool) -> Iterator[Line]:
    listed, folded = _select(worst_first(report.results), verbose=verbose)
    rows = [row for result in listed for row in _rows(result, verbose=verbose)]
    if rows:
        yield from _lay_out(rows, width)
    if folded:
        yield from _prose(_folded(folded), width, "light")
    if any(row.cells["sees"] != figures.NOTHING for row in rows):
        legend = "sees: the smallest slowdown that the comparison would have found"
        yield from _prose(legend, width, "light")


def _select(
    results: Sequence[BenchmarkResult], *, verbose: bool
) -> tuple[Sequence[BenchmarkResult], Counter[Outcome]]:
    """Part the results, worst first, into those listed and those only counted."""
    if verbose or len(results) <= _FOLD_ABOVE:
        return results, Counter()
    loud = [one for one in results if one.verdict.outcome not in QUIET]
    listed = loud[:_MOST_ROWS]
    kept = {id(one) for one in listed}
    folded = Counter(one.verdict.outcome for one in results if id(one) not in kept)
    return listed, folded


def _folded(folded: Counter[Outcome]) -> str:
    parts = [f"{folded[one]:,} {one}" for one in LOOKS if folded[one]]
    return f"… and not listed: {', '.join(parts)} (-v lists them)"


def _rows(result: BenchmarkResult, *, verbose: bool) -> Iterator[_Row]:
    main = deciding(result)
    yield _Row(
        outcome=result.verdict.outcome,
        name=title(result),
        verdict=verdict_text(result.verdict),
        cells=_cells(figures.of_result(result, main)),
        notes=_notes(result, main, verbose=verbose),
        clues=strongest(result, _NOTE_LINES),
        slow=tuple(slow_lines(result)) if verbose else (),
    )
    for judgement in others(result, main=main, verbose=verbose):
        yield _Row(
            outcome=judgement.outcome,
            name="",
            verdict=verdict_text(judgement.verdict),
            cells=_cells(figures.judged(judgement)),
            notes=_side_notes(judgement, verbose=verbose),
        )


def _cells(found: figures.Figures | None) -> dict[str, str]:
    if found is None:
        return dict.fromkeys(_HEADINGS, figures.NOTHING)
    return {
        "metric": found.metric,
        "baseline": found.baseline,
        "now": found.now,
        "change": found.change_with_interval,
        "budget": found.budget,
        "sees": found.sees,
    }


def _notes(
    result: BenchmarkResult, main: Judgement | None, *, verbose: bool
) -> tuple[str, ...]:
    """Collect what completes a verdict: its detail, remarks, runs not used."""
    told = result.verdict.outcome not in QUIET or verbose
    detail = (result.verdict.detail,) if told else ()
    remarks = remarks_of(result) + (main.remarks if main else ())
    discarded = result.discarded if told else ()
    return (
        *detail,
        *remarks,
        *(_chances(main) if verbose and main else ()),
        *not_used(discarded),
    )


def _chances(judgement: Judgement) -> tuple[str, ...]:
    """Tell the curious how surprising it is, alone and among all of the session."""
    comparison = judgement.comparison
    if comparison is None or comparison.q_value is None:
        return ()
    return (f"p = {comparison.p_identity:.2g}, q = {comparison.q_value:.2g}",)


def _side_notes(judgement: Judgement, *, verbose: bool) -> tuple[str, ...]:
    told = judgement.outcome not in GREEN or verbose
    detail = (judgement.verdict.detail,) if told else ()
    if not verbose:
        return detail
    return (*detail, *judgement.remarks, *_chances(judgement))


def _lay_out(rows: Sequence[_Row], width: int) -> Iterator[Line]:
    columns = _widths(rows)
    verdict = max(display_width(row.verdict) for row in rows)
    name = width - 2 - _total(columns) - 2 * len(_GAP) - verdict
    longest = max(display_width(row.name) for row in rows)
    if name >= min(longest, _NAME_AT_LEAST):
        yield from _one_line_each(rows, columns, min(name, longest), width)
    else:
        yield from _two_lines_each(rows, _fitting(columns, width - 2), width)


def _widths(rows: Sequence[_Row]) -> dict[str, int]:
    widths = {
        key: max(display_width(heading), *(display_width(r.cells[key]) for r in rows))
        for key, heading in _HEADINGS.items()
        if key == "metric" or any(row.cells[key] != figures.NOTHING for row in rows)
    }
    return widths | {"metric": min(widths["metric"], _METRIC_AT_MOST)}


def _fitting(columns: dict[str, int], width: int) -> dict[str, int]:
    kept = dict(columns)
    for key in _DROPPED_FIRST:
        if _total(kept) <= width:
            return kept
        kept.pop(key, None)
    excess = max(0, _total(kept) - width)
    widest = max(kept, key=kept.__getitem__)
    return kept | {widest: kept[widest] - excess}


def _total(columns: dict[str, int]) -> int:
    return sum(columns.values()) + len(_GAP) * (len(columns) - 1)


def _one_line_each(
    rows: Sequence[_Row], columns: dict[str, int], name: int, width: int
) -> Iterator[Line]:
    heading = _GAP.join((pad("benchmark", name), _numbers(_HEADINGS, columns)))
    yield line(f"  {heading}{_GAP}verdict", "bold")
    for row in rows:
        label = shorten_id(row.name, name) if row.name else "  └"
        look = LOOKS[row.outcome]
        cells = dict.fromkeys(_HEADINGS, "") if _blank(row) else row.cells
        middle = f"{pad(label, name)}{_GAP}{_numbers(cells, columns)}{_GAP}"
        yield _join(
            (f"{look.glyph} ", look.styles), (middle, ()), (row.verdict, look.styles)
        )
        yield from _note_lines(row, width, most=_most_notes(rows))


def _two_lines_each(
    rows: Sequence[_Row], columns: dict[str, int], width: int
) -> Iterator[Line]:
    yield line(_ends("  benchmark", "verdict", width), "bold")
    yield line(f"  {_numbers(_HEADINGS, columns)}".rstrip(), "bold")
    for row in rows:
        look = LOOKS[row.outcome]
        room = width - 2 - len(_GAP) - display_width(row.verdict)
        label = shorten_id(row.name, room) if row.name else f"└ {row.cells['metric']}"
        yield _join(
            (f"{look.glyph} ", look.styles),
            (pad(clip(label, room), room) + _GAP, ()),
            (row.verdict, look.styles),
        )
        if not _blank(row):
            cells = row.cells if row.name else row.cells | {"metric": ""}
            yield line(f"  {_numbers(cells, columns)}".rstrip())
        yield from _note_lines(row, width, most=_most_notes(rows))


def _blank(row: _Row) -> bool:
    return set(row.cells.values()) == {figures.NOTHING}


def _numbers(cells: dict[str, str], columns: dict[str, int]) -> str:
    return _GAP.join(
        pad(clip(cells[key], size), size, right=key not in _LEFT)
        for key, size in columns.items()
    )


def _note_lines(row: _Row, width: int, *, most: int) -> Iterator[Line]:
    """Yield what is below a row: notes in one paragraph, each clue on its own line."""
    room = width - len(_INDENT)
    notes = "; ".join(one_line(note) for note in row.notes if note)
    lines = list(wrap(notes, room)) if notes else []
    if len(lines) > most:
        rest = " ".join(lines[most - 1 :])
        lines = [*lines[: most - 1], clip(rest, room)]
    for text in (*row.clues[:most], *row.slow):
        lines += wrap(one_line(text), room)
    yield from (line(f"{_INDENT}{text}", "light") for text in lines)


def _most_notes(rows: Sequence[_Row]) -> int:
    return _NOTE_LINES if len(rows) <= _FOLD_ABOVE else 1


def _ends(left: str, right: str, width: int) -> str:
    return pad(left, width - display_width(right)) + right


def _join(*parts: tuple[str, tuple[str, ...]]) -> Line:
    return Line(
        segments=tuple(Segment(text=text, styles=styles) for text, styles in parts)
    )


def _totals(report: Report, width: int) -> Iterator[Line]:
    yield line("")
    current = [
        Segment(text=counted(len(report.results), "benchmark"), styles=("bold",))
    ]
    for outcome, number in counts(report):
        look = LOOKS[outcome]
        part = Segment(text=f"{look.glyph} {number:,} {outcome}", styles=look.styles)
        if _width([*current, part]) + len(_GAP) > width:
            yield Line(segments=tuple(current))
            current = []
        current += [Segment(text=_GAP), part]
    yield Line(segments=tuple(current))
    for text, style in (
        (directions(report), "light"),
        (shift_text(report), "yellow"),
        (attempts_text(report), "light"),
        (base_text(report), "light"),
    ):
        if text:
            yield from _prose(text, width, style)


def _width(segments: Sequence[Segment]) -> int:
    return sum(display_width(segment.text) for segment in segments)


def _next(report: Report, width: int) -> Iterator[Line]:
    steps = next_steps(report)
    if steps:
        yield line("")
        yield line("what to do next", "bold")
    for step in steps:
        look = LOOKS[step.outcome]
        text = f"{step.count:,} {step.outcome}: {step.reason}: {step.text}"
        first, *rest = wrap(text, width - 2, indent="  ")
        yield _join((f"{look.glyph} ", look.styles), (first, ()))
        yield from (line(f"  {more}") for more in rest)


def _closing(report: Report, width: int) -> Iterator[Line]:
    yield line("")
    if report.interrupted:
        yield from _prose(
            "interrupted: this is what was known by then", width, "yellow"
        )
    for note in report.notes:  # not wrapped: people search the log for them
        yield line(f"note: {one_line(note)}", "yellow")
    if report.problem:
        yield from _prose(one_line(report.problem), width, "red")
    if report.cost:
        yield from _prose(f"cost: {figures.cost_text(report.cost)}", width, "light")
    style = "green" if report.exit_code == 0 else "red"
    yield from _prose(one_line(report.summary), width, style, "bold")


def _prose(text: str, width: int, *styles: str) -> Iterator[Line]:
    yield from (line(part, *styles) for part in wrap(text, width))
