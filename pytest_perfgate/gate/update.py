"""What `--perfgate-update` does to a baseline: pure rules, no file is touched."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import quantiles
from typing import TypeVar

from pytest_perfgate.measured import Measurement, Metric, Plan, Profile
from pytest_perfgate.model import Baseline, Outcome, Reason, Session, Verdict

V = TypeVar("V")

KEPT_SESSIONS = 10
_TOLERATED_SHARE = 0.25
_FEWEST_RUNS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """What was just measured and would be stored."""

    plan: Plan
    metrics: Mapping[str, Metric]
    session: Session
    sketch: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)
    profile: Profile | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """The new baseline and the verdict that tells what was done, or a refusal."""

    verdict: Verdict
    baseline: Baseline | None

    @property
    def refused(self) -> bool:
        return self.baseline is None


def sketch(
    measured: Sequence[Measurement],
) -> Iterator[tuple[str, tuple[float, ...]]]:
    """Yield minimum, every twentieth and maximum of each metric's samples."""
    pooled: dict[str, list[float]] = {}
    for measurement in measured:
        for series in measurement.samples:
            pooled.setdefault(series.metric.name, []).extend(series.values)
    for name, values in pooled.items():
        if len(values) > len(measured):  # one value a run needs no sketch
            inner = quantiles(values, n=20, method="inclusive")
            yield name, (min(values), *inner, max(values))


def update_baseline(
    stored: Baseline | None,
    recording: Recording,
    *,
    verdict: Verdict | None = None,
    force: bool = False,
    way: str = "--perfgate-update-force",
) -> Decision:
    """Decide what becomes of a baseline.

    Parameters
    ----------
    stored : the baseline so far, None where there is none
    recording : the new session
    verdict : the new session judged against `stored`
    force : store also what is inconclusive
    way : the option that does so, for whoever is refused

    Returns
    -------
    Decision
        Nothing stored: the first session. `unchanged` adds the session and
        keeps the latest ten, which is how the gate learns how much this
        machine drifts. `improved`, `regressed` and another plan, other
        hardware or another definition of a metric replace all sessions, and
        the anchor with them. `inconclusive` is refused unless forced: then it is
        one more session, for nothing shows that anything changed. What failed, was disturbed or never became steady is
        refused always.
    """
    reason = _unfit(recording)
    if reason is not None:
        return _refused(Outcome.INVALID, reason[0], reason[1])
    if stored is None:
        return _stored(recording, Reason.FIRST_SESSION, "")
    if verdict is None:
        raise ValueError("verdict=None is not allowed where a baseline is stored")
    return _by_verdict(stored, recording, verdict=verdict, way="" if force else way)


def _by_verdict(
    stored: Baseline, recording: Recording, *, verdict: Verdict, way: str
) -> Decision:
    match verdict.outcome:
        case Outcome.UNCHANGED:
            return _added(stored, recording)
        case Outcome.SKIPPED if verdict.reason is Reason.NOT_GATED:
            return _added(stored, recording)
        case Outcome.INCONCLUSIVE if way:
            detail = f"{verdict.reason}; {way} stores it all the same"
            return _refused(Outcome.INCONCLUSIVE, verdict.reason, detail)
        case Outcome.INCONCLUSIVE:
            return _added(stored, recording)  # nothing shows that it changed
        case (
            Outcome.IMPROVED
            | Outcome.REGRESSED
            | Outcome.INCOMPARABLE
            | Outcome.NO_BASELINE
        ):
            return _stored(recording, Reason.REPLACED, _told(verdict))
        case _:
            return _refused(verdict.outcome, verdict.reason, verdict.detail)


def _told(verdict: Verdict) -> str:
    """Say what an earlier baseline was to what replaces it."""
    if not verdict.detail:
        return f"was {verdict.outcome}"
    if verdict.outcome is Outcome.INCOMPARABLE:
        return f"was {verdict.outcome}: {verdict.detail}"
    why = f", {verdict.detail}" if verdict.reason is Reason.FLAGGED else ""
    return f"was {verdict.outcome}{why}"


def _added(stored: Baseline, recording: Recording) -> Decision:
    session = _bare(recording)
    # a count of another version of torch is another number: it starts anew
    other = {
        name
        for name, metric in recording.metrics.items()
        if stored.metrics.get(name, metric).definition != metric.definition
    }
    earlier = [_without(each, other) for each in stored.sessions]
    kept = (*earlier, session)[-KEPT_SESSIONS:]
    baseline = replace(
        stored,
        anchor=_without(stored.anchor, other),
        sessions=kept,
        metrics=recording.metrics,
        sketch=recording.sketch,
        counts=recording.counts,
        profile=recording.profile,
    )
    detail = f"{len(kept)} sessions"
    return Decision(
        verdict=Verdict(
            outcome=Outcome.RECORDED, reason=Reason.SESSION_ADDED, detail=detail
        ),
        baseline=baseline,
    )


def _stored(recording: Recording, reason: Reason, detail: str) -> Decision:
    session = _bare(recording)
    return Decision(
        verdict=Verdict(outcome=Outcome.RECORDED, reason=reason, detail=detail),
        baseline=Baseline(
            plan=recording.plan,
            metrics=recording.metrics,
            sessions=(session,),
            anchor=session,
            sketch=recording.sketch,
            counts=recording.counts,
            profile=recording.profile,
        ),
    )


def _refused(outcome: Outcome, reason: Reason, detail: str) -> Decision:
    verdict = Verdict(outcome=outcome, reason=reason, detail=detail)
    return Decision(verdict=verdict, baseline=None)


def _bare(recording: Recording) -> Session:
    """Leave out what the runs keep for today's limits only."""
    return replace(
        recording.session,
        runs=tuple(
            replace(
                run,
                statistics={
                    name: {
                        statistic: number
                        for statistic, number in statistics.items()
                        if "/" not in statistic
                    }
                    for name, statistics in run.statistics.items()
                    if name in recording.metrics
                },
            )
            for run in recording.session.runs
        ),
    )


def _without(session: Session, names: Collection[str]) -> Session:
    """Leave some metrics out of a session."""
    if not names:
        return session
    return replace(
        session,
        runs=tuple(
            replace(
                run,
                statistics=_others(run.statistics, names),
                samples=_others(run.samples, names),
                drift=_others(run.drift, names),
            )
            for run in session.runs
        ),
    )


def _others(found: Mapping[str, V], names: Collection[str]) -> dict[str, V]:
    return {name: value for name, value in found.items() if name not in names}


def _unfit(recording: Recording) -> tuple[Reason, str] | None:
    """Say why a session is not to be stored whatever its numbers are."""
    runs = recording.session.runs
    exact = all(metric.exact for metric in recording.metrics.values())
    if len(runs) < _FEWEST_RUNS and not exact:
        return Reason.TOO_FEW_RUNS, f"has {len(runs)} runs, needs {_FEWEST_RUNS}"
    disturbed = sum(run.disturbed for run in runs)
    if disturbed > _TOLERATED_SHARE * len(runs):
        return Reason.DISTURBED, f"{disturbed} of {len(runs)} runs were disturbed"
    unsteady = sum(not run.steady for run in runs)
    if unsteady > _TOLERATED_SHARE * len(runs):
        return Reason.NOT_STEADY, f"{unsteady} of {len(runs)} runs never became steady"
    return None
