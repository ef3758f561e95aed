"""One verdict from merged reports.

Everything is judged again from what each report carries: its exit code and its
summary are never trusted to make anything greener.
"""

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

from pytest_perfgate.errors import UsageError
from pytest_perfgate.gate.legs import Part
from pytest_perfgate.gate.merging import Merged
from pytest_perfgate.gate.strictness import fails_on
from pytest_perfgate.gate.suite import (
    EXIT_INTERNAL,
    EXIT_INTERRUPTED,
    EXIT_NOTHING,
    EXIT_RED,
    PRECEDENCE,
    exit_codes,
    summary_sentence,
)
from pytest_perfgate.model import Outcome, Report

FAIL_ON = ("policy", "regressed", "never")
"""What fails a build: every exit code, only a regression or an error, nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """What the reports say together."""

    report: Report
    """The merged report, with the exit code of the policy and its summary."""
    codes: tuple[int, ...]
    """All exit codes that are asked for, the winner first."""
    exit_code: int
    """The first that is not forgiven; 0 where all are."""


def judge_again(merged: Merged, *, fail_on: str = "policy") -> Judged:
    """Recompute exit code and summary from the results.

    Parameters
    ----------
    fail_on : `policy` forgives nothing; `regressed` forgives every verdict but
        a regression or an error; `never` forgives all that was judged, too.
        What could not be read fails in any case, and except for `never` so
        does what was interrupted or measured nothing

    Raises
    ------
    UsageError
        For another `fail_on`.
    """
    if fail_on not in FAIL_ON:
        raise UsageError(f"--fail-on={fail_on!r} is not one of {', '.join(FAIL_ON)}")
    notes: list[str] = []
    unfit = {one.exit_code for one in merged.broken}
    nothing = set() if merged.parts or unfit else {EXIT_NOTHING}
    asked = (
        nothing
        | unfit
        | {code for part in merged.parts for code in _besides(part, notes)}
    )
    asked |= set(exit_codes(merged.report.results, **fails_on([merged.report])))
    codes = tuple(code for code in PRECEDENCE if code in asked)
    problems = (merged.report.problem, *(one.problem for one in merged.broken))
    report = replace(
        merged.report,
        exit_code=codes[0] if codes else 0,
        summary=_summary(merged),
        problem="; ".join(filter(None, problems)),
        notes=(*merged.report.notes, *notes),
    )
    return Judged(
        report=report,
        codes=codes,
        exit_code=next(iter(_not_forgiven(codes, unfit, fail_on)), 0),
    )


def _besides(part: Part, notes: list[str]) -> Iterator[int]:
    """Yield the exit codes that a report asks for beside those of its results."""
    report, source = part.report, part.source
    own = set(exit_codes(report.results, **fails_on([report])))
    extra = set()
    if report.interrupted:
        extra.add(EXIT_INTERRUPTED)
    if not own and not _measured(report):
        what = "nothing was measured" if report.results else "there is no benchmark"
        notes.append(f"in {source} {what}: this says nothing about performance")
        extra.add(EXIT_NOTHING)
    stored = report.exit_code if report.exit_code in PRECEDENCE else EXIT_RED
    if report.problem:
        extra.add(EXIT_INTERNAL if stored == EXIT_INTERNAL else EXIT_RED)
    if report.exit_code == 0 and own | extra:
        notes.append(f"{source} has exit code 0, and its results do not bear that out")
    elif report.exit_code and stored not in own | extra:
        notes.append(
            f"{source} has exit code {report.exit_code}, which no result of it"
            " explains: what else failed there?"
        )
        extra.add(stored)
    yield from extra


def _measured(report: Report) -> bool:
    """Tell whether any process measured anything, or failed in trying."""
    return any(
        result.runs or result.confirmation or result.verdict.outcome is Outcome.ERROR
        for result in report.results
    )


def _summary(merged: Merged) -> str:
    report, unusable = merged.report, len(merged.broken)
    if not merged.parts and not unusable:
        return "no report was found: this says nothing about performance"
    if not merged.parts:
        return f"none of {unusable} reports can be used: nothing was judged"
    text = summary_sentence(
        report.results,
        anything_measured=any(_measured(part.report) for part in merged.parts),
        interrupted=report.interrupted,
        failed=bool(report.problem),
    )
    total = unusable + len(merged.parts)
    return f"{text}; {unusable} of {total} reports cannot be used" if unusable else text


def _not_forgiven(
    codes: Sequence[int], unfit: AbstractSet[int], fail_on: str
) -> Iterator[int]:
    always = unfit | {EXIT_INTERNAL}
    if fail_on == "regressed":
        always = always | {EXIT_RED, EXIT_INTERRUPTED, EXIT_NOTHING}
    yield from (code for code in codes if fail_on == "policy" or code in always)
