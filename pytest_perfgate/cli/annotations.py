"""A report as annotations of a job: the worst first, each on its benchmark's file."""

from collections.abc import Iterator
from pathlib import PurePosixPath

from pytest_perfgate.github.commands import Annotation, Level
from pytest_perfgate.model import BenchmarkResult, Outcome, Report
from pytest_perfgate.reports import figures
from pytest_perfgate.reports.advice import advice
from pytest_perfgate.reports.escape import one_line
from pytest_perfgate.reports.words import (
    GREEN,
    deciding,
    reason_text,
    statistic_name,
    title,
    worst_first,
)

_FORGIVING = {
    Outcome.NO_BASELINE: ("--perfgate-on-missing", "fail"),
    Outcome.INCONCLUSIVE: ("--perfgate-on-inconclusive", "warn"),
}
"""Outcomes that a policy can turn into a warning, with what holds if it is silent."""


def report_annotations(
    report: Report, *, accepted: bool = False, folder: str = ""
) -> tuple[Annotation, ...]:
    """Make one annotation for each benchmark that asks for something.

    Parameters
    ----------
    report : what the session found
    accepted : whether its regressions are accepted: they are then warnings
    folder : where pytest ran, relative to the repository; empty for its top
    """
    return tuple(
        _annotation(result, report, accepted=accepted, folder=folder)
        for result in worst_first(report.results)
        if result.verdict.outcome not in GREEN
    )


def _annotation(
    result: BenchmarkResult, report: Report, *, accepted: bool, folder: str
) -> Annotation:
    return Annotation(
        level=_level(result, report, accepted=accepted),
        title=f"{result.verdict.outcome}: {title(result)}",
        message=". ".join(_sentences(result)),
        file=_file(result.nodeid, folder),
    )


def _level(result: BenchmarkResult, report: Report, *, accepted: bool) -> Level:
    outcome = result.verdict.outcome
    if result.absorbed:
        return Level.NOTICE
    if outcome is Outcome.REGRESSED and accepted:
        return Level.WARNING
    if outcome in _FORGIVING:
        option, otherwise = _FORGIVING[outcome]
        forgiven = report.policy.get(option, otherwise) == "warn"
        return Level.WARNING if forgiven else Level.ERROR
    return Level.ERROR


def _sentences(result: BenchmarkResult) -> Iterator[str]:
    main = deciding(result)
    numbers = figures.ratio_sentence(main) if main is not None else ""
    if main is not None and numbers:
        yield one_line(f"{statistic_name(main)} {numbers}")
    yield one_line(reason_text(result.verdict))
    todo = advice(result).replace("`", "")
    if todo:
        yield one_line(todo)


def _file(nodeid: str, folder: str) -> str:
    """Return the file relative to the repository; empty where it leads out of it."""
    path = PurePosixPath(folder, nodeid.split("::", 1)[0])
    return "" if path.is_absolute() or ".." in path.parts else str(path)
