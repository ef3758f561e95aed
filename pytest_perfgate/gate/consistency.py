"""Whether a report says one thing: a verdict that its own judgements bear out.

A report may have been edited, cut or mixed up on its way from the machine that
measured to the one that decides. What it concludes is never taken on trust.
"""

from collections.abc import Iterator, Sequence

from pytest_perfgate.model import (
    BenchmarkResult,
    Judgement,
    Outcome,
    Reason,
    Report,
)

ON_MISSING = "--perfgate-on-missing"
ON_INCONCLUSIVE = "--perfgate-on-inconclusive"
UPDATES = ("--perfgate-update", "--perfgate-update-force")
"""The options that decide about exit codes, as a report's policy names them."""

_RED = frozenset({Outcome.REGRESSED, Outcome.ERROR})
_PASSED = frozenset({Outcome.UNCHANGED, Outcome.IMPROVED})
_JUDGED_BY_RUNS = _PASSED | {Outcome.REGRESSED, Outcome.RECORDED}
_OUTRANKED = frozenset(
    {
        Outcome.INCOMPARABLE,
        Outcome.NO_BASELINE,
        Outcome.INCONCLUSIVE,
        Outcome.SKIPPED,
    }
)
"""Outcomes that a regressed or failed statistic would have outranked."""
_BY_ESTIMATE = frozenset(
    {
        Reason.FLAGGED,
        Reason.CONFIRMED,
        Reason.CONFIRMED_WITHOUT_BASE,
        Reason.COUNT_OVER_BUDGET,
        Reason.CREPT,
    }
)
_TOLERANCE = 1e-6
"""Relative: budgets and ratios are fractions of floats."""


def contradictions(report: Report) -> Iterator[str]:
    """Yield what a report contradicts itself in, each with its place."""
    for option in (ON_MISSING, ON_INCONCLUSIVE):
        given = report.policy.get(option, "warn")
        if given not in {"fail", "warn"}:
            yield f"policy.{option} is {given!r}, and can be only fail or warn"
    recording = records(report)
    for index, result in enumerate(report.results):
        for text in _of_result(result, recording=recording):
            yield f"results[{index}] ({result.benchmark}): {text}"


def records(report: Report) -> bool:
    """Tell whether a report is of a session that recorded baselines."""
    return any(option in report.policy for option in UPDATES)


def _of_result(result: BenchmarkResult, *, recording: bool) -> Iterator[str]:
    outcome = result.verdict.outcome
    if result.absorbed and outcome not in _RED:
        yield f"{outcome} is said to be absorbed, and only a failure can be"
    if outcome in _JUDGED_BY_RUNS and not result.runs:
        yield f"the verdict is {outcome}, and there is no run"
    if not recording:  # an update decides about storing, whatever was judged
        yield from _of_verdict(result)
    for index, judgement in enumerate(result.judgements):
        text = _of_numbers(judgement) if judgement.gated else ""
        if text:
            yield f"{_place(index, judgement)} {text}"


def _of_verdict(result: BenchmarkResult) -> Iterator[str]:
    outcome = result.verdict.outcome
    gated = [(i, one) for i, one in enumerate(result.judgements) if one.gated]
    if outcome in _PASSED and not gated:
        yield f"the verdict is {outcome}, and no statistic was judged"
    if outcome is Outcome.REGRESSED and not _any_regressed(result.judgements):
        yield f"the verdict is {outcome}, and no statistic of it is"
    for index, judgement in gated:
        if _outranks(judgement, outcome):
            yield (
                f"the verdict is {outcome}, and {_place(index, judgement)} is"
                f" {judgement.outcome}: {judgement.reason}"
            )


def _any_regressed(judgements: Sequence[Judgement]) -> bool:
    return any(one.gated and one.outcome is Outcome.REGRESSED for one in judgements)


def _outranks(judgement: Judgement, outcome: Outcome) -> bool:
    """Tell whether a statistic is worse than a verdict may leave it."""
    if outcome in _PASSED:
        return judgement.outcome not in _PASSED
    if outcome not in _OUTRANKED:
        return False
    # a flag that fresh runs could not settle leaves its benchmark inconclusive
    flagged = judgement.reason is Reason.FLAGGED and outcome is Outcome.INCONCLUSIVE
    return judgement.outcome in _RED and not flagged


def _of_numbers(judgement: Judgement) -> str:
    """Hold a judgement's own ratio against its budget."""
    comparison, budget = judgement.comparison, judgement.budget
    if comparison is None or comparison.absolute or budget is None:
        return ""
    beyond = comparison.ratio / (1 + budget) - 1
    if judgement.outcome in _PASSED and beyond > _TOLERANCE:
        return f"is {judgement.outcome}, and its ratio is beyond its budget"
    proven = judgement.outcome is Outcome.REGRESSED
    if proven and judgement.reason in _BY_ESTIMATE and beyond < -_TOLERANCE:
        return f"is {judgement.outcome}, and its ratio is within its budget"
    return ""


def _place(index: int, judgement: Judgement) -> str:
    return f"judgements[{index}] ({judgement.metric.name} {judgement.statistic})"
