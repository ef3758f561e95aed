"""What became of baselines: from old and new ones to the rows of a table."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from statistics import fmean, geometric_mean

from pytest_perfgate.gate.budgets import Budget, main_statistic
from pytest_perfgate.gate.evidence import recorded_detectable
from pytest_perfgate.gate.looks import Look
from pytest_perfgate.measured import Metric
from pytest_perfgate.model import Baseline, BenchmarkResult, Reason
from pytest_perfgate.reports.update import Action, Update

_ACTIONS = {
    Reason.FIRST_SESSION: Action.RECORDED,
    Reason.SESSION_ADDED: Action.ADDED_SESSION,
    Reason.REPLACED: Action.REPLACED,
}

BudgetOf = Callable[[BenchmarkResult, Metric], tuple[str, Budget] | None]
"""Gives the statistic that a metric of a benchmark is judged by, and its budget."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What an update makes of one benchmark."""

    result: BenchmarkResult
    old: Baseline | None
    new: Baseline | None
    """None where the update was refused: the old one stays."""


def shown(
    changes: Iterable[Change], budget_of: BudgetOf, *, runs: int
) -> Iterator[Update]:
    """Yield old → new of every benchmark's main statistics.

    Parameters
    ----------
    budget_of : a budget says how small a change must be seen
    runs : how many candidate runs there may be
    """
    for each in changes:
        verdict = each.result.verdict
        if verdict.reason is Reason.SKIPPED:
            continue
        action = _ACTIONS.get(verdict.reason, Action.REFUSED)
        detail = verdict.detail
        if action is Action.REFUSED:
            more = detail.removeprefix(verdict.reason).removeprefix("; ")
            detail = f"{verdict.outcome}: {verdict.reason}; {more}".removesuffix("; ")
        known = each.new or each.old
        names = tuple(known.metrics.values()) if known else ()
        if not names:
            yield Update(benchmark=each.result.benchmark, action=action, detail=detail)
        for metric in names:
            statistic = main_statistic(metric)
            yield Update(
                benchmark=each.result.benchmark,
                metric=metric.name,
                statistic=statistic,
                old=_centre(each.old, metric.name, statistic),
                new=_centre(each.new, metric.name, statistic),
                unit=metric.unit,
                action=action,
                detail=detail,
                runs=runs,
                **_sight(each, budget_of(each.result, metric), metric, runs),
            )


def _sight(
    change: Change, judged: tuple[str, Budget] | None, metric: Metric, runs: int
) -> dict[str, float | None]:
    """Say how small a slowdown a new baseline will let the gate see, of what budget."""
    if change.new is None or metric.exact or judged is None:
        return {}
    statistic, budget = judged
    sees = recorded_detectable(
        [session.runs for session in change.new.sessions],
        metric,
        statistic,
        budget=budget,
        look=Look(final_runs=runs),
    )
    return {"sees": sees, "budget": budget.value}


def _centre(baseline: Baseline | None, metric: str, statistic: str) -> float | None:
    """Return the centre of the newest session's runs, as a comparison takes it."""
    if baseline is None:
        return None
    found = (run.get(metric, statistic) for run in baseline.sessions[-1].runs)
    values = [number.value for number in found if number is not None]
    if not values:
        return None
    return geometric_mean(values) if min(values) > 0 else fmean(values)
