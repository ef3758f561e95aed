"""Slow creep: a benchmark held against the pinned first session of its baseline.

Each step within its budget, and together far beyond: no comparison with the
latest sessions sees that. The anchor only accuses: doubt about it changes no
outcome, and what it flags wants the same proof as any other regression.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from pytest_perfgate.gate.confirm import Confirmation, FreshPairs, confirm
from pytest_perfgate.gate.evidence import Runs, Sides
from pytest_perfgate.gate.exact import read_exact
from pytest_perfgate.gate.host_bound import follows_host
from pytest_perfgate.gate.looks import Look
from pytest_perfgate.gate.policy import BenchmarkPolicy, Gate
from pytest_perfgate.gate.readings import Reading, State, read
from pytest_perfgate.measured import Metric
from pytest_perfgate.model import Baseline, Outcome, Reason, Session, Verdict

_SHOWN = Verdict(outcome=Outcome.SKIPPED, reason=Reason.NOT_GATED)


def has_anchor(baseline: Baseline) -> bool:
    """Tell whether the anchor says more than the only session, which it then is."""
    return baseline.sessions != (baseline.anchor,)


def read_anchor(
    policy: BenchmarkPolicy,
    baseline: Baseline,
    candidate: Runs,
    *,
    metrics: Iterable[Metric],
    look: Look,
) -> list[Reading]:
    """Hold a benchmark's runs against its anchor.

    Parameters
    ----------
    candidate : the runs made so far
    metrics : those that can be compared at all
    look : which look this is; the anchor's runs are never halves of pairs

    Returns
    -------
    list of Reading
        Flagged (an exact number that crept is settled at once), or only shown:
        still open where the estimate lies beyond the anchor's budget.
    """
    if not has_anchor(baseline):
        return []
    sides = Sides(baseline=(baseline.anchor.runs,), candidate=candidate)
    apart = replace(look, paired=False, base_code=False)
    return [
        reading
        for metric in metrics
        if not follows_host(metric, sides.bound, named=policy.names(metric.name))
        for gate in policy.anchor_gates(metric)
        for reading in _read(metric, gate, sides, apart, session=baseline.anchor)
    ]


def _read(
    metric: Metric, gate: Gate, sides: Sides, look: Look, *, session: Session
) -> Iterator[Reading]:
    found = read_exact(metric, gate, sides) or read(metric, gate, sides, look)
    if found.judgement.comparison is None:
        return  # the anchor is older than the metric, or the main row says why
    judgement = replace(found.judgement, anchor=True)
    found = replace(found, judgement=judgement)
    if judgement.outcome is Outcome.REGRESSED:
        yield found.with_verdict(_accused(found, session), found.state)
        return
    shown = replace(found, judgement=replace(judgement, gated=False))
    waits = found.state is State.OPEN and found.over
    yield shown.with_verdict(_SHOWN, State.OPEN if waits else State.SETTLED)


def _accused(reading: Reading, session: Session) -> Verdict:
    of = f" of commit {session.commit}" if session.commit else ""
    flagged = reading.state is State.FLAGGED
    return Verdict(
        outcome=Outcome.REGRESSED,
        reason=Reason.FLAGGED if flagged else Reason.CREPT,
        detail=f"against the anchor session of {session.time[:10]}{of}",
    )


def settled(anchored: Sequence[Reading], *, decided: bool) -> bool:
    """Tell whether more runs are wanted, given what the others want.

    A flag ends the screening. An estimate beyond the anchor's budget that is
    not proven holds the benchmark until the last look.
    """
    if any(reading.judgement.gated for reading in anchored):
        return True
    return decided and all(reading.state is not State.OPEN for reading in anchored)


def confirm_anchor(
    reading: Reading,
    baseline: Baseline,
    candidate: Runs,
    *,
    confirmation: Confirmation,
    look: Look,
) -> Reading:
    """Settle what was flagged against the anchor by the fresh candidate runs.

    There is never base code: the anchor's commit is long gone, and fresh runs
    of a later base say nothing about it.
    """
    fresh = confirmation
    if isinstance(confirmation, FreshPairs):
        fresh = confirmation.candidate
    sides = Sides(baseline=(baseline.anchor.runs,), candidate=candidate)
    found = confirm(reading, sides, confirmation=fresh, look=look)
    if found is reading:
        return reading
    verdict = replace(found.judgement.verdict, detail=reading.judgement.verdict.detail)
    if verdict.outcome is Outcome.REGRESSED:
        verdict = replace(verdict, reason=Reason.CREPT)
    return found.with_verdict(verdict, State.SETTLED)
