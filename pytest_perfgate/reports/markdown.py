"""The report as GitHub Markdown: report.md and the job summary."""

from collections.abc import Iterator, Sequence

from pytest_perfgate.model import BenchmarkResult, Judgement, Report
from pytest_perfgate.reports import figures
from pytest_perfgate.reports.advice import next_steps
from pytest_perfgate.reports.escape import (
    fenced,
    markdown,
    markdown_code,
    markdown_prose,
)
from pytest_perfgate.reports.explained import all_lines, strongest
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
    machines,
    others,
    remarks_of,
    shift_text,
    title,
    verdict_text,
    worst_first,
)

_HEAD = (
    "",
    "benchmark",
    "verdict",
    "metric·statistic",
    "baseline",
    "now",
    "change [interval, %]",
    "budget",
    "sees",
)
_ALIGN = ("---", "---", "---", "---", "--:", "--:", "---", "--:", "--:")
_STRONGEST = 3
_MOST_TEXT = 4000
"""Characters kept of what one body said; its whole text is in the log."""


def render(report: Report, *, most_rows: int | None = None) -> str:
    """Render a report as Markdown that GitHub shows as it is meant.

    Parameters
    ----------
    report : what the session found
    most_rows : benchmarks listed, worst first; the rest is counted. None lists all

    Returns
    -------
    str
        Ends with a newline. Quiet benchmarks stand in a folded table of their own.
    """
    results = worst_first(report.results)
    listed = results if most_rows is None else results[:most_rows]
    loud = [one for one in listed if one.verdict.outcome not in QUIET]
    quiet = [one for one in listed if one.verdict.outcome in QUIET]
    left_out = len(results) - len(listed)
    lines = (
        *_opening(report),
        *_table(loud),
        *_folded(quiet),
        *((f"… and {left_out:,} more, not listed.", "") if left_out else ()),
        *_next(report),
        *_explanations(listed),
        *_texts(loud),
        *_closing(report),
    )
    return "\n".join(lines).rstrip("\n") + "\n"


def _opening(report: Report) -> Iterator[str]:
    yield f"### {markdown_prose(report.summary)}"
    yield ""
    if report.interrupted:
        yield "**Interrupted:** this is what was known by then."
        yield ""
    if report.problem:
        yield f"**{markdown(report.problem)}**"
        yield ""
    total = counted(len(report.results), "benchmark")
    parts = [f"{LOOKS[one].glyph} {number:,} {one}" for one, number in counts(report)]
    yield f"{total}: {', '.join(parts)}" if parts else total
    told = (directions(report), shift_text(report), attempts_text(report))
    for text in (*told, markdown(base_text(report))):
        if text:
            yield f"<br>{text}"
    yield ""


def _table(results: Sequence[BenchmarkResult]) -> Iterator[str]:
    if not results:
        return
    yield _row(_HEAD)
    yield _row(_ALIGN)
    for result in results:
        yield from _rows(result)
    yield ""


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _rows(result: BenchmarkResult) -> Iterator[str]:
    main = deciding(result)
    verdict = verdict_text(result.verdict)
    marked = verdict if result.verdict.outcome in GREEN else f"**{verdict}**"
    name = markdown_code(title(result))
    verdict_cell = "<br>".join((marked, *_notes(result, main)))
    yield _row(
        (
            LOOKS[result.verdict.outcome].glyph,
            name,
            verdict_cell,
            *_numbers(figures.of_result(result, main)),
        )
    )
    for judgement in others(result, main=main, verbose=False):
        yield _side_row(judgement)


def _side_row(judgement: Judgement) -> str:
    verdict = judgement.verdict
    verdict_cell = "<br>".join((verdict_text(verdict), *_detail(verdict.detail)))
    return _row(
        (
            LOOKS[judgement.outcome].glyph,
            "",
            verdict_cell,
            *_numbers(figures.judged(judgement)),
        )
    )


def _numbers(found: figures.Figures | None) -> tuple[str, ...]:
    if found is None:
        return ("",) * 6
    return (
        markdown(found.metric),
        found.baseline,
        found.now,
        found.change_with_interval,
        markdown(found.budget),
        found.sees,
    )


def _notes(result: BenchmarkResult, main: Judgement | None) -> Iterator[str]:
    yield from _detail(result.verdict.detail)
    yield from map(markdown, strongest(result, _STRONGEST))
    for remark in remarks_of(result) + (main.remarks if main else ()):
        yield markdown(remark)
    for text in result.discarded:
        yield markdown(text)


def _detail(detail: str) -> tuple[str, ...]:
    return (markdown(detail),) if detail else ()


def _folded(results: Sequence[BenchmarkResult]) -> Iterator[str]:
    if not results:
        return
    found = [one.verdict.outcome for one in results]
    parts = [f"{found.count(one):,} {one}" for one in LOOKS if one in found]
    yield f"<details><summary>{', '.join(parts)}</summary>"
    yield ""
    yield from _table(results)
    yield "</details>"
    yield ""


def _next(report: Report) -> Iterator[str]:
    steps = next_steps(report)
    if steps:
        yield "**What to do next**"
        yield ""
    for step in steps:
        head = (
            f"{LOOKS[step.outcome].glyph} {step.count:,} {step.outcome}: {step.reason}"
        )
        yield f"- **{head}**: {markdown_prose(step.text)}"
    if steps:
        yield ""


def _explanations(results: Sequence[BenchmarkResult]) -> Iterator[str]:
    """List all that changed, where the table has no room for it."""
    for result in results:
        lines = all_lines(result)
        if len(lines) > _STRONGEST:
            name = markdown_code(title(result))
            yield f"<details><summary>{name}: what changed with it</summary>"
            yield ""
            yield from (f"- {markdown(line)}" for line in lines)
            yield ""
            yield "</details>"
            yield ""


def _texts(results: Sequence[BenchmarkResult]) -> Iterator[str]:
    """Quote what bodies and crashes said, each in a fence longer than any inside."""
    for result in results:
        if result.text:
            name = markdown_code(title(result))
            reason = result.verdict.reason
            yield f"<details><summary>{name}: {reason}</summary>"
            yield ""
            yield from fenced(result.text, most=_MOST_TEXT)
            yield ""
            yield "</details>"
            yield ""


def _closing(report: Report) -> Iterator[str]:
    for note in report.notes:
        yield f"- note: {markdown(note)}"
    if report.notes:
        yield ""
    facts = [f"made {markdown(report.created)}"]
    if report.commit:
        facts.append(f"commit {markdown_code(report.commit)}")
    on = machines(report)
    if on:
        facts.append(f"on {', '.join(map(markdown_code, on))}")
    if report.cost:
        facts.append(markdown(figures.cost_text(report.cost)))
    if report.policy:
        given = " ".join(f"{name}={value}" for name, value in report.policy.items())
        facts.append(f"judged by {markdown_code(given)}")
    yield f"<sub>{', '.join(facts)}</sub>"
