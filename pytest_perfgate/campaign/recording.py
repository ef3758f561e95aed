"""`--perfgate-update`: what becomes of each baseline, first as values, then on disk."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, geometric_mean, quantiles

from pytest_perfgate.campaign import manager
from pytest_perfgate.campaign.ledger import Entry
from pytest_perfgate.campaign.selection import file_of
from pytest_perfgate.campaign.shelf import Shelf
from pytest_perfgate.gate.budgets import main_statistic
from pytest_perfgate.gate.comparability import definitions
from pytest_perfgate.gate.evidence import recorded_detectable
from pytest_perfgate.gate.looks import Look
from pytest_perfgate.gate.policy import BenchmarkPolicy
from pytest_perfgate.gate.update import Recording, update_baseline
from pytest_perfgate.model import (
    Baseline,
    BenchmarkResult,
    Environment,
    Measurement,
    Metric,
    Outcome,
    Plan,
    Reason,
    Session,
    Verdict,
)
from pytest_perfgate.reports.update import Action, Update

_ACTIONS = {
    Reason.FIRST_SESSION: Action.RECORDED,
    Reason.SESSION_ADDED: Action.ADDED_SESSION,
    Reason.REPLACED: Action.REPLACED,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Occasion:
    """When, of what and where a session of baselines is recorded."""

    time: str
    commit: str | None
    environment_digest: str
    force: bool
    out_of_time: bool
    """The session ended before all of its runs were made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What an update makes of one benchmark."""

    result: BenchmarkResult
    old: Baseline | None
    new: Baseline | None
    """None where the update was refused: the old one stays."""


def change(
    entry: Entry, judged: BenchmarkResult, stored: Baseline | None, occasion: Occasion
) -> Change:
    """Decide what becomes of a benchmark's baseline.

    Parameters
    ----------
    judged : the new runs, judged against what is stored
    """
    failed = judged.verdict.outcome in {Outcome.ERROR, Outcome.INVALID}
    if failed or judged.verdict.reason is Reason.SKIPPED:
        return Change(result=judged, old=stored, new=None)
    used = entry.usable(manager.RECORDING_RUNS)
    if occasion.out_of_time and len(used) < manager.RECORDING_RUNS:
        return Change(result=_cut_short(judged, len(used)), old=stored, new=None)
    made = [n for n in sorted(entry.runs) if judged.benchmark in entry.runs[n]]
    summaries = dict(zip(made, judged.runs, strict=True))
    # a disturbed run that was made again has no place in a baseline
    judged = replace(judged, runs=tuple(summaries[n] for n in made if n in used))
    measured = [entry.runs[n][judged.benchmark] for n in made if n in used]
    if not measured:
        return Change(result=judged, old=stored, new=None)
    recording = _recording(judged, measured, occasion)
    update = update_baseline(
        stored, recording, verdict=judged.verdict, force=occasion.force
    )
    result = replace(judged, verdict=update.verdict)
    return Change(result=result, old=stored, new=update.baseline)


def _cut_short(judged: BenchmarkResult, made: int) -> BenchmarkResult:
    detail = f"{made} of the {manager.RECORDING_RUNS} runs of a session were made"
    verdict = Verdict(
        outcome=Outcome.INCONCLUSIVE, reason=Reason.OUT_OF_TIME, detail=detail
    )
    return replace(judged, verdict=verdict)


def _recording(
    judged: BenchmarkResult, measured: Sequence[Measurement], occasion: Occasion
) -> Recording:
    return Recording(
        plan=_plan(measured),
        metrics=definitions(measured),
        session=Session(
            time=occasion.time,
            commit=occasion.commit,
            environment_digest=occasion.environment_digest,
            runs=judged.runs,
        ),
        sketch=dict(_sketch(measured)),
    )


def _sketch(measured: Sequence[Measurement]) -> Iterator[tuple[str, tuple[float, ...]]]:
    """Yield minimum, every twentieth and maximum of each metric's samples."""
    pooled: dict[str, list[float]] = {}
    for measurement in measured:
        for series in measurement.samples:
            pooled.setdefault(series.metric.name, []).extend(series.values)
    for name, values in pooled.items():
        if len(values) > len(measured):  # one value a run needs no sketch
            inner = quantiles(values, n=20, method="inclusive")
            yield name, (min(values), *inner, max(values))


def _plan(measured: Sequence[Measurement]) -> Plan:
    """Return the plan that governs from now on: the longest warm-up any run needed."""
    longest = max(measurement.plan.warmup for measurement in measured)
    return replace(measured[0].plan, warmup=longest)


def apply(changes: Iterable[Change], shelf: Shelf, environment: Environment) -> None:
    """Write the accepted changes, each file once, atomically and under its lock.

    Raises
    ------
    StoreUnreachable
        Where the disk refuses; each file is then as it was, or complete.
    """
    by_file: dict[str, dict[str, Baseline]] = {}
    for each in changes:
        if each.new is not None:
            name = each.result.benchmark
            by_file.setdefault(file_of(name), {})[name] = each.new
    for file, benchmarks in by_file.items():
        shelf.store.merge(shelf.key, file, benchmarks, environment=environment)


def shown(
    changes: Iterable[Change],
    policies: Mapping[str, BenchmarkPolicy],
    *,
    runs: int,
) -> Iterator[Update]:
    """Yield old → new of every benchmark's main statistics.

    Parameters
    ----------
    policies : by node id; a budget says how small a change must be seen
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
                **_sight(each, policies[each.result.nodeid], metric, runs),
            )


def _sight(
    change: Change, policy: BenchmarkPolicy, metric: Metric, runs: int
) -> dict[str, float | None]:
    """Say how small a slowdown a new baseline will let the gate see, of what budget."""
    gate = next(iter(policy.gates(metric)), None)
    if change.new is None or metric.exact or gate is None:
        return {}
    sees = recorded_detectable(
        [session.runs for session in change.new.sessions],
        metric,
        gate.statistic,
        budget=gate.budget,
        look=Look(final_runs=runs),
    )
    return {"sees": sees, "budget": gate.budget.value}


def _centre(baseline: Baseline | None, metric: str, statistic: str) -> float | None:
    """Return the centre of the newest session's runs, as a comparison takes it."""
    if baseline is None:
        return None
    found = (run.get(metric, statistic) for run in baseline.sessions[-1].runs)
    values = [number.value for number in found if number is not None]
    if not values:
        return None
    return geometric_mean(values) if min(values) > 0 else fmean(values)
