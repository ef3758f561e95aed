"""What a report makes of a baseline, where its machine is not at hand.

The same rules as for an update on the machine itself, and besides: the report
must tell enough, and be about the baseline that is stored here.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from pytest_perfgate.gate.budgets import (
    DEFAULT_BUDGET,
    Budget,
    gated_by_default,
    main_statistic,
)
from pytest_perfgate.gate.comparability import (
    compare_environments,
    compare_plans,
    difference_text,
)
from pytest_perfgate.gate.consistency import contradictions, records
from pytest_perfgate.gate.evidence import Sides, collect, comparison, estimate, scale_of
from pytest_perfgate.gate.looks import Look
from pytest_perfgate.gate.update import Decision, Recording, update_baseline
from pytest_perfgate.measured import METRICS, Metric, Plan
from pytest_perfgate.model import (
    Baseline,
    BenchmarkResult,
    Difference,
    Environment,
    Judgement,
    Outcome,
    Reason,
    Report,
    RunSummary,
    Session,
    Verdict,
)

FORCE = "--force"
_FEWEST_RUNS = 3
_SAME = 1e-4
"""Relative: stored numbers have six digits, and reports have all."""

_NOTHING_TO_STORE = frozenset({Outcome.ERROR, Outcome.INVALID, Outcome.MISSING})
_PASSED = frozenset({Outcome.UNCHANGED, Outcome.IMPROVED})
_SICK = frozenset({Reason.DISTURBED, Reason.NOT_STEADY, Reason.RESOLUTION})
"""Inconclusive for what was wrong with the runs: no force makes them sound."""
_AGAINST, _CONFIRM = "--perfgate-against", "--perfgate-confirm"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shelved:
    """What is stored here of one benchmark."""

    baseline: Baseline
    environment: Environment


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """One benchmark's part of a report that is to be stored."""

    result: BenchmarkResult
    report: Report
    environment_digest: str
    sketch: Mapping[str, tuple[float, ...]]
    force: bool = False

    @property
    def environment(self) -> Environment | None:
        return self.result.environment or self.report.environment


def refuse_report(report: Report, *, fake: bool) -> str:
    """Say why nothing of a report can become a baseline; empty where it can.

    Parameters
    ----------
    fake : whether made-up numbers are what is wanted, in our own tests
    """
    problem = next(contradictions(report), "")
    if problem:
        return f"it contradicts itself: {problem}"
    if "--perfgate-slowdown" in report.policy:
        slowdown = report.policy["--perfgate-slowdown"]
        return f"a slowdown was planted in it (--perfgate-slowdown={slowdown})"
    if _took_turns(report):
        return (
            f"its runs took turns with those of another tree ({_AGAINST}), and a"
            " baseline is made of runs by themselves"
        )
    if report.interrupted:
        return "its session was interrupted"
    known = [report.environment, *(one.environment for one in report.results)]
    if not fake and any(one is not None and one.fake for one in known):
        return "it was made with a simulated device"
    return ""


def _took_turns(report: Report) -> bool:
    if any(result.base_runs for result in report.results):
        return True
    # with both of them, in an ini file say, the policy does not tell which one held
    alone = _AGAINST in report.policy and _CONFIRM not in report.policy
    return alone and not records(report)


def accept(given: Accepted, stored: Shelved | None) -> Decision:
    """Decide what becomes of a benchmark's baseline, by the report's verdict."""
    result = given.result
    plan = result.plan
    refusal = next(_refusals(given), "")
    if refusal or plan is None:
        return _refused(result, refusal)
    recording = _recording(given, plan)
    base = None if stored is None else stored.baseline
    if base is not None and _is_there(recording, base):
        return _refused(result, "these runs are stored already")
    if stored is not None and not given.force:
        doubt = _other_baseline(given, plan, stored)
        if doubt:
            return _refused(
                result,
                f"the report was not judged by the baseline stored here ({doubt});"
                f" {FORCE} replaces that all the same",
            )
    return _update(given, recording, stored)


def _refused(result: BenchmarkResult, why: str) -> Decision:
    verdict = result.verdict
    detail = "; ".join(text for text in (verdict.detail, why) if text)
    return Decision(verdict=replace(verdict, detail=detail), baseline=None)


def _refusals(given: Accepted) -> Iterator[str]:
    """Yield why a result cannot be stored whatever is stored here."""
    result, verdict = given.result, given.result.verdict
    if verdict.outcome in _NOTHING_TO_STORE:
        yield "there is nothing sound to store"
    if verdict.reason is Reason.OVER_LIMIT:
        yield "no baseline mends a broken limit: change it where it is set"
    if verdict.outcome is Outcome.INCONCLUSIVE and verdict.reason in _SICK:
        yield "its runs are not fit for a baseline"
    if given.environment is None:
        yield "the report does not say on what machine it was measured"
    if result.plan is None or not result.runs:
        yield "nothing was measured"
    if not _metrics(result):
        yield "the report does not say what its metrics are"


# what is recorded -------------------------------------------------------------


def _recording(given: Accepted, plan: Plan) -> Recording:
    result, report = given.result, given.report
    return Recording(
        plan=replace(plan, warmup=max(plan.warmup, result.longest_warmup)),
        metrics=_metrics(result),
        session=Session(
            time=report.created,
            commit=report.commit,
            environment_digest=given.environment_digest,
            runs=_runs(given),
        ),
        sketch={
            name: values
            for name, values in given.sketch.items()
            if name in _metrics(result)
        },
        profile=result.profile,
    )


def _runs(given: Accepted) -> tuple[RunSummary, ...]:
    """Take the runs of this session: sound ones, and with them the fresh ones.

    The fresh runs were not chosen for being slow, as the flagged ones were.
    Those of earlier attempts were made at another time, and those that took
    turns with the base are no runs by themselves.
    """
    result = given.result
    usable = not result.base_confirmation and result.attempt == 1
    fresh = result.confirmation if usable else ()
    made = (*result.runs[result.earlier_runs :], *fresh)
    sound = tuple(run for run in made if not run.disturbed)
    return (sound if len(sound) >= _FEWEST_RUNS else made) or result.runs


def _metrics(result: BenchmarkResult) -> dict[str, Metric]:
    """Return the definitions of what was measured, as far as the report has them."""
    measured = {name for run in result.runs for name in run.statistics}
    judged = {one.metric.name: one.metric for one in result.judgements}
    known = {**METRICS, **judged, **result.metrics}
    return {name: known[name] for name in sorted(measured) if name in known}


# which baseline it was judged by ----------------------------------------------


def _is_there(recording: Recording, stored: Baseline) -> bool:
    fresh = recording.session
    return any(
        (session.time, session.commit, len(session.runs))
        == (fresh.time, fresh.commit, len(fresh.runs))
        for session in stored.sessions
    )


def _other_baseline(given: Accepted, plan: Plan, stored: Shelved) -> str:
    """Say what shows that a report knew another baseline, or none; empty if nothing."""
    result, verdict = given.result, given.result.verdict
    compared = [one for one in result.judgements if one.comparison is not None]
    if verdict.outcome is Outcome.NO_BASELINE and not compared:
        return "it knew none"
    if verdict.reason is Reason.FIRST_SESSION:
        return "it knew none"
    if verdict.outcome is Outcome.INCOMPARABLE or verdict.reason is Reason.REPLACED:
        return ""
    different = _different(given, plan, stored)
    if different:
        return difference_text(different)
    if result.base_confirmation:
        return ""  # the numbers shown are those of the base code
    return next(_other_numbers(result, stored.baseline), "")


def _different(given: Accepted, plan: Plan, stored: Shelved) -> tuple[Difference, ...]:
    environment = given.environment
    machines = (
        compare_environments(stored.environment, environment) if environment else ()
    )
    found = (*machines, *compare_plans(stored.baseline.plan, plan))
    return tuple(one for one in found if one.forbids)


def _other_numbers(result: BenchmarkResult, stored: Baseline) -> Iterator[str]:
    """Yield where the report names another number as the baseline's."""
    for judgement in result.judgements:
        told = judgement.comparison
        here = _level(judgement, result, stored) if told is not None else None
        if told is None or here is None or told.absolute or judgement.anchor:
            continue
        if not math.isclose(told.baseline, here, rel_tol=_SAME):
            yield (
                f"{judgement.metric.name} {judgement.statistic} was"
                f" {told.baseline:.6g} there, is {here:.6g} here"
            )


def _level(
    judgement: Judgement, result: BenchmarkResult, stored: Baseline
) -> float | None:
    """Return a statistic of the stored baseline as a comparison shows it."""
    metric, statistic = judgement.metric, judgement.statistic
    sessions = tuple(session.runs for session in stored.sessions)
    numbers = collect(
        Sides(baseline=sessions, candidate=result.runs), metric, statistic
    )
    values = (*numbers.base_values, *numbers.values)
    few = min(len(numbers.base_values), len(numbers.values)) < 2
    if metric.exact or few or min(values) <= 0:
        return None
    scale = scale_of(metric, Budget(value=judgement.budget or DEFAULT_BUDGET))
    found = estimate(numbers, scale, Look())
    return comparison(scale, found, bar=None, look=Look()).baseline


# what becomes of it -----------------------------------------------------------


def _update(given: Accepted, recording: Recording, stored: Shelved | None) -> Decision:
    result = given.result
    verdict = result.verdict
    base = None if stored is None else stored.baseline
    if verdict.outcome in _PASSED and result.base_confirmation:
        # flagged against what is stored, and found to be no change beside the base
        return _anew(recording, base, "the stored one is stale: the machine moved")
    if verdict.outcome is not Outcome.RECORDED:
        return update_baseline(
            base, recording, verdict=verdict, force=given.force, way=FORCE
        )
    if verdict.reason is Reason.SESSION_ADDED:
        unchanged = Verdict(outcome=Outcome.UNCHANGED, reason=Reason.WITHIN_BUDGET)
        return update_baseline(base, recording, verdict=unchanged)
    return _anew(recording, base, verdict.detail or "recorded anew")


def _anew(recording: Recording, base: Baseline | None, why: str) -> Decision:
    """Store a session as the only one."""
    decision = update_baseline(None, recording)
    if decision.refused or base is None:
        return decision
    replaced = Verdict(outcome=Outcome.RECORDED, reason=Reason.REPLACED, detail=why)
    return replace(decision, verdict=replaced)


def budget_of(result: BenchmarkResult, metric: Metric) -> tuple[str, Budget] | None:
    """Give by what a metric was judged, or would be where nothing was stored."""
    for one in result.judgements:
        ours = one.metric.name == metric.name and one.gated and not one.anchor
        if ours and one.budget:
            return one.statistic, Budget(value=one.budget)
    if not gated_by_default(metric):
        return None
    return main_statistic(metric), Budget(value=DEFAULT_BUDGET)
