"""The report as one HTML file: no script, nothing fetched, light and dark."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pytest_perfgate.measured import FLUSH, METRICS, Metric
from pytest_perfgate.model import (
    BenchmarkResult,
    Environment,
    Judgement,
    Report,
    RunSummary,
)
from pytest_perfgate.reports import figures
from pytest_perfgate.reports.advice import next_steps
from pytest_perfgate.reports.escape import one_line, visible
from pytest_perfgate.reports.explained import slow_lines, what_differs
from pytest_perfgate.reports.plot import HEIGHT, WIDTH, Plot, plot, scale
from pytest_perfgate.reports.words import (
    LOOKS,
    QUIET,
    attempts_text,
    base_text,
    counted,
    counts,
    deciding,
    directions,
    label,
    others,
    remarks_of,
    shift_text,
    title,
    worst_first,
)

_FOLD_ABOVE = 40
_TEMPLATE = "report.html.j2"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    """One judged statistic as the table shows it."""

    outcome: str
    glyph: str
    name: str
    outcome_word: str
    reason: str
    notes: tuple[str, ...]
    cells: figures.Figures | None
    plot: Plot | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Runs:
    """A table of what each run gave."""

    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entry:
    """One benchmark: its rows and what can be unfolded below them."""

    rows: tuple[_Row, ...]
    text: str
    changed_title: str
    changed: tuple[str, ...]
    slow: tuple[str, ...]
    runs: _Runs | None
    plan: str
    count: str


def render(report: Report) -> str:
    """Render a report as one self-contained HTML page.

    Raises
    ------
    jinja2.UndefinedError
        The template names something that it was not given: a defect here.
    """
    from jinja2 import Environment as Templates
    from jinja2 import PackageLoader, StrictUndefined

    environment = Templates(
        loader=PackageLoader("pytest_perfgate.reports"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    return environment.get_template(_TEMPLATE).render(_context(report))


def _context(report: Report) -> Mapping[str, object]:
    results = worst_first(report.results)
    span = scale(one for result in results for one in result.judgements)
    fold = len(results) > _FOLD_ABOVE
    listed = [one for one in results if not fold or one.verdict.outcome not in QUIET]
    folded = [one for one in results if fold and one.verdict.outcome in QUIET]
    return {
        "summary": one_line(report.summary),
        "exit_code": report.exit_code,
        "interrupted": report.interrupted,
        "counts": [(LOOKS[one].glyph, one, f"{n:,}") for one, n in counts(report)],
        "total": f"{len(results):,}",
        "session": (
            directions(report),
            shift_text(report),
            attempts_text(report),
            base_text(report),
        ),
        "listed": [_entry(one, span) for one in listed],
        "folded": [_entry(one, span) for one in folded],
        "steps": [
            (LOOKS[step.outcome].glyph, step, step.text.split("`"))
            for step in next_steps(report)
        ],
        "facts": tuple(_facts(report)),
        "environment": tuple(_environment(report)),
        "policy": [(one_line(k), one_line(v)) for k, v in report.policy.items()],
        "plot_width": WIDTH,
        "plot_height": HEIGHT,
    }


def _entry(result: BenchmarkResult, span: float) -> _Entry:
    main = deciding(result)
    rest = others(result, main=main, verbose=True)
    return _Entry(
        rows=(
            _main_row(result, main, span),
            *(_row(judgement, span) for judgement in rest),
        ),
        text="\n".join(visible(line.expandtabs()) for line in result.text.splitlines()),
        changed_title="Changed with it, the strongest first"
        if result.explanation
        else "Differs from the baseline",
        changed=tuple(map(one_line, what_differs(result))),
        slow=tuple(map(one_line, slow_lines(result))),
        runs=_runs(result),
        plan=_plan(result),
        count=_count(result),
    )


def _main_row(result: BenchmarkResult, main: Judgement | None, span: float) -> _Row:
    notes = (
        *((result.verdict.detail,) if result.verdict.detail else ()),
        *remarks_of(result),
        *(main.remarks if main else ()),
        *result.discarded,
    )
    return _Row(
        outcome=result.verdict.outcome,
        glyph=LOOKS[result.verdict.outcome].glyph,
        name=title(result),
        outcome_word=result.verdict.outcome,
        reason=result.verdict.reason,
        notes=tuple(map(one_line, notes)),
        cells=figures.of_result(result, main),
        plot=None if main is None else plot(main, span=span),
    )


def _row(judgement: Judgement, span: float) -> _Row:
    detail = (judgement.verdict.detail,) if judgement.verdict.detail else ()
    return _Row(
        outcome=judgement.outcome,
        glyph=LOOKS[judgement.outcome].glyph,
        name="",
        outcome_word=judgement.outcome if judgement.gated else "only shown",
        reason=judgement.reason if judgement.gated else "",
        notes=tuple(map(one_line, (*detail, *judgement.remarks))),
        cells=figures.judged(judgement),
        plot=plot(judgement, span=span),
    )


def _count(result: BenchmarkResult) -> str:
    """Say what can be unfolded: `12 runs, 5 to confirm`."""
    parts = []
    if result.runs:
        parts.append(counted(len(result.runs), "run"))
    if result.confirmation:
        parts.append(f"{len(result.confirmation):,} to confirm")
    if result.explanation:
        parts.append("what changed with it")
    elif result.differences:
        parts.append(counted(len(result.differences), "difference"))
    if result.slow:
        slow = sum(run.count for run in result.slow)
        parts.append(counted(slow, "slow iteration"))
    return ", ".join(parts) or ("what it said" if result.text else "")


def _plan(result: BenchmarkResult) -> str:
    plan = result.plan
    if plan is None:
        return ""
    parts = [
        counted(plan.iterations, "iteration"),
        f"{plan.warmup:,} to warm up",
        f"seed {plan.seed}",
        f"on {one_line(plan.device)}",
    ]
    if plan.inner_loop > 1:
        parts.insert(1, f"{plan.inner_loop:,} calls each")
    if plan.cache == FLUSH:
        parts.insert(1, "the cache flushed before each")
    return ", ".join(parts)


def _runs(result: BenchmarkResult) -> _Runs | None:
    runs = [(f"{index}", run) for index, run in enumerate(result.runs, 1)]
    runs += [
        (f"{index} to confirm", run) for index, run in enumerate(result.confirmation, 1)
    ]
    if not runs:
        return None
    columns = _columns([run for _, run in runs])
    judged = {one.metric.name: one.metric for one in result.judgements}
    metrics = {**result.metrics, **judged}
    heads = tuple(
        visible(label(_metric(name, metrics), statistic)) for name, statistic in columns
    )
    return _Runs(
        heads=("run", "iterations", *heads, "health"),
        rows=tuple(
            (
                label,
                f"{run.iterations:,}",
                *_statistics(run, columns, metrics),
                _health(run),
            )
            for label, run in runs
        ),
    )


def _columns(runs: Sequence[RunSummary]) -> tuple[tuple[str, str], ...]:
    """List metric and statistic of all runs, in the order first met."""
    found = {
        (metric, statistic): None
        for run in runs
        for metric, statistics in run.statistics.items()
        for statistic in statistics
    }
    return tuple(found)


def _statistics(
    run: RunSummary,
    columns: Sequence[tuple[str, str]],
    metrics: Mapping[str, Metric],
) -> Iterator[str]:
    for name, statistic in columns:
        found = run.get(name, statistic)
        yield (
            figures.NOTHING
            if found is None
            else figures.value_text(_metric(name, metrics), found.value)
        )


def _metric(name: str, known: Mapping[str, Metric]) -> Metric:
    return known.get(name) or METRICS.get(name) or Metric(name=name, unit="")


def _health(run: RunSummary) -> str:
    words = (
        ("disturbed", run.disturbed),
        ("not steady", not run.steady),
        ("alone", run.alone),
    )
    return ", ".join(word for word, holds in words if holds) or figures.NOTHING


def _facts(report: Report) -> Iterator[tuple[str, str]]:
    yield "made", one_line(report.created)
    if report.commit:
        yield "commit", one_line(report.commit)
    if report.cost:
        yield "cost", figures.cost_text(report.cost)
    if report.problem:
        yield "problem", one_line(report.problem)
    for note in report.notes:
        yield "note", one_line(note)


def _environment(report: Report) -> Iterator[tuple[str, str]]:
    known = [report.environment, *(result.environment for result in report.results)]
    distinct: list[Environment] = []
    for environment in known:
        if environment is not None and environment not in distinct:
            distinct.append(environment)
    for environment in distinct:
        yield from _fingerprint(environment)


def _fingerprint(environment: Environment) -> Iterator[tuple[str, str]]:
    yield "key", one_line(environment.key)
    if environment.fake:
        yield "device", "a fake one: these numbers were made up for a test"
    for fields in (environment.hardware, environment.software):
        for name, value in fields.items():
            yield one_line(name), one_line(str(value))
