"""One benchmark's judgement: which statistics are judged, when to stop, what it means."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from pytest_perfgate.gate.anchor import (
    confirm_anchor,
    read_anchor,
    settled,
)
from pytest_perfgate.gate.budgets import fits_unit
from pytest_perfgate.gate.combining import combined, earned, not_earned
from pytest_perfgate.gate.comparability import (
    compare_metrics,
    difference_text,
    not_comparable,
)
from pytest_perfgate.gate.confirm import Confirmation, FreshPairs, confirm
from pytest_perfgate.gate.evidence import Sides, collect
from pytest_perfgate.gate.exact import read_exact
from pytest_perfgate.gate.host_bound import (
    BASELINE_SILENT,
    DEVICE_TIME,
    NAMED,
    follows_host,
)
from pytest_perfgate.gate.limits import read_limits
from pytest_perfgate.gate.looks import Look
from pytest_perfgate.gate.outputs import other_work
from pytest_perfgate.gate.policy import BenchmarkPolicy, Gate
from pytest_perfgate.gate.readings import (
    Reading,
    State,
    inconclusive,
    plain_reading,
    read,
)
from pytest_perfgate.gate.shown import shown, tail_or_why_not
from pytest_perfgate.gate.stopping import gated_of, is_decided
from pytest_perfgate.measured import Metric
from pytest_perfgate.model import (
    Baseline,
    Judgement,
    Outcome,
    Reason,
    RunSummary,
    Verdict,
)
from pytest_perfgate.units import format_value

__all__ = [
    "BenchmarkJudgement",
    "FreshPairs",
    "Look",
    "judge_benchmark",
]

_TAILS = ("p99", "p95")


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchmarkJudgement:
    """What the gate says of one benchmark at one look."""

    judgements: tuple[Judgement, ...]
    """Gated ones first within each metric, then what is only shown."""
    verdict: Verdict
    decided: bool
    """No more runs are wanted for screening."""
    flagged: bool = False
    """Beyond the budget and not yet confirmed by fresh runs."""
    suspect: bool = False
    """Fresh runs of base and candidate would be worth making."""
    remarks: tuple[str, ...] = ()


def judge_benchmark(
    *,
    policy: BenchmarkPolicy,
    baseline: Baseline | None,
    candidate: Sequence[RunSummary],
    look: Look,
    metrics: Mapping[str, Metric] | None = None,
    confirmation: Confirmation | None = None,
) -> BenchmarkJudgement:
    """Judge one benchmark.

    Parameters
    ----------
    policy : what it is judged by
    baseline : what is stored; None leaves absolute limits as the only judges.
        At a paired look its runs and the candidate's are pairs, in order
    candidate : the runs made so far
    look : which look this is; the last one leaves nothing open
    metrics : the candidate's definitions, to be held against the stored ones;
        None takes those of the baseline
    confirmation : five fresh runs, with or without runs of the base code, made
        after the benchmark was flagged

    Returns
    -------
    BenchmarkJudgement
        As it stands if measuring stops here: while `decided` is False an open
        statistic is `inconclusive`.
    """
    if not candidate:
        return BenchmarkJudgement(
            judgements=(),
            verdict=inconclusive(Reason.TOO_FEW_RUNS, "no candidate run"),
            decided=look.last,
        )
    stored = baseline.metrics if baseline else {}
    known = {**stored, **(metrics or {})}
    sides = Sides(
        baseline=tuple(session.runs for session in baseline.sessions)
        if baseline
        else (),
        candidate=tuple(candidate),
    )
    case = _Case(
        policy=policy,
        sides=sides,
        look=look,
        stored=stored,
        known=known,
        lacking={name: _lacking(name, candidate) for name in stored},
        only_shown={
            name: why
            for name, metric in stored.items()
            if (why := not_comparable(metric, known[name])) is not None
        },
    )
    readings = [*_stored_metrics(case), *_other_metrics(case)]
    readings += read_limits(policy, known, sides.candidate, look)
    anchored = _anchored(case, baseline)
    decided = settled(anchored, decided=is_decided(readings, look)) or look.last
    if confirmation is not None and decided:
        readings = [
            confirm(reading, sides, confirmation=confirmation, look=look)
            for reading in readings
        ]
        anchored = [
            confirm_anchor(
                reading,
                baseline,
                sides.candidate,
                confirmation=confirmation,
                look=look,
            )
            for reading in anchored
            if baseline is not None
        ]
    return _conclude(
        [*readings, *anchored], case, decided=decided, fresh=confirmation is not None
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Case:
    policy: BenchmarkPolicy
    sides: Sides
    look: Look
    stored: Mapping[str, Metric]
    known: Mapping[str, Metric]

    lacking: Mapping[str, int]
    """How many candidate runs did not measure each stored metric."""
    only_shown: Mapping[str, str]
    """Why a stored count cannot be held against the one measured now."""

    def follows_host(self, metric: Metric) -> bool:
        """Tell whether a time of the GPU's can only repeat what the latency says."""
        if metric.name != DEVICE_TIME:
            return False
        named = self.policy.names(metric.name)
        return follows_host(metric, self.sides.bound, named=named)


def _lacking(name: str, runs: Sequence[RunSummary]) -> int:
    return sum([not run.statistics.get(name) for run in runs])


# which statistics -------------------------------------------------------------


def _stored_metrics(case: _Case) -> Iterator[Reading]:
    for metric in case.stored.values():
        gates = case.policy.gates(metric)
        refusal = _refusal(case, metric)
        if refusal is None and metric.name in case.only_shown:
            gates = ()
        if refusal is not None and gates:
            yield plain_reading(metric, gates[0], refusal)
        elif refusal is None and gates and case.follows_host(metric):
            why_not = case.sides.bound.why_not_gated
            yield from shown(metric, None, case.sides, case.look, remarks=(why_not,))
        elif refusal is None:
            yield from _metric(case, metric, gates)


def _refusal(case: _Case, metric: Metric) -> Verdict | None:
    """Say why a whole metric cannot be compared."""
    lacking = case.lacking[metric.name]
    if lacking:
        detail = f"{metric.name} in {lacking} of {len(case.sides.candidate)} runs"
        return Verdict(
            outcome=Outcome.ERROR, reason=Reason.METRIC_ABSENT, detail=detail
        )
    now = case.known[metric.name]
    same = now is metric or metric.name in case.only_shown
    differences = () if same else compare_metrics(metric, now)
    if differences:
        return Verdict(
            outcome=Outcome.INCOMPARABLE,
            reason=Reason.METRIC_DIFFERS,
            detail=difference_text(differences),
        )
    return None


def _metric(case: _Case, metric: Metric, gates: Sequence[Gate]) -> Iterator[Reading]:
    if not gates:
        yield from shown(metric, None, case.sides, case.look)
        return
    main = _gate(case, metric, gates[0])
    yield main
    for gate in gates[1:]:
        if gate.witness:
            yield from _witness(case, metric, gate, main)
        elif gate.default_tail:
            yield from _default_tail(case, metric, gate)
        else:
            yield _gate(case, metric, gate)


def _gate(case: _Case, metric: Metric, gate: Gate) -> Reading:
    budget = gate.budget
    if budget.absolute and budget.value and not fits_unit(budget.unit, metric.unit):
        written = f"+{format_value(budget.value, budget.unit)}"
        detail = (
            f"the budget allows {written}, and {metric.name} is measured in"
            f" {metric.unit or 'no unit'}"
        )
        verdict = Verdict(
            outcome=Outcome.ERROR, reason=Reason.UNIT_DIFFERS, detail=detail
        )
        return plain_reading(metric, gate, verdict)
    exact = read_exact(metric, gate, case.sides)
    return exact or read(metric, gate, case.sides, case.look)


def _default_tail(case: _Case, metric: Metric, gate: Gate) -> Iterator[Reading]:
    """Gate P99 where the baseline says that it can be; else show a tail and why."""
    stored = (tail for tail in _TAILS if collect(case.sides, metric, tail).baseline)
    tail = next(stored, None)
    if tail is None:
        return
    why_not = tail_or_why_not(metric, gate, case.sides, case.look)
    if why_not is None:
        yield _gate(case, metric, gate)
    else:
        yield from shown(metric, tail, case.sides, case.look, remarks=(why_not,))


def _witness(
    case: _Case, metric: Metric, gate: Gate, main: Reading
) -> Iterator[Reading]:
    """Hear the floor only where the median has not decided: it never acquits."""
    asked = main.state is State.OPEN
    found = read(metric, gate, case.sides, case.look) if asked else None
    if found is not None and (found.state is State.FLAGGED or found.suspect):
        yield found
        return
    remarks = () if found is None else ("held against the budget of the median",)
    yield from shown(metric, gate.statistic, case.sides, case.look, remarks=remarks)


def _anchored(case: _Case, baseline: Baseline | None) -> list[Reading]:
    if baseline is None:
        return []
    return read_anchor(
        case.policy,
        baseline,
        case.sides.candidate,
        metrics=(
            m
            for m in case.stored.values()
            if _refusal(case, m) is None and m.name not in case.only_shown
        ),
        look=case.look,
    )


def _other_metrics(case: _Case) -> Iterator[Reading]:
    """Name what a budget asks for and the baseline, or the benchmark, lacks."""
    for name, metric in case.known.items():
        if name in case.stored:
            continue
        gates = [gate for gate in case.policy.gates(metric) if gate.explicit]
        if gates:
            verdict = Verdict(
                outcome=Outcome.NO_BASELINE,
                reason=Reason.NOTHING_STORED,
                detail=f"the baseline has no {name}",
            )
            yield plain_reading(metric, gates[0], verdict)
    if not case.policy.gate:
        return
    for name in case.policy.unknown_metrics(chain(case.known, _measured(case))):
        verdict = Verdict(
            outcome=Outcome.ERROR,
            reason=Reason.METRIC_ABSENT,
            detail=f"the marker names {name}, and the benchmark does not measure it",
        )
        judgement = Judgement(
            metric=Metric(name=name, unit=""), statistic="", verdict=verdict
        )
        yield Reading(judgement=judgement, state=State.SETTLED)


def _measured(case: _Case) -> Iterator[str]:
    for run in case.sides.candidate:
        yield from (name for name, found in run.statistics.items() if found)


# what it means ----------------------------------------------------------------


def _conclude(
    readings: Sequence[Reading], case: _Case, *, decided: bool, fresh: bool
) -> BenchmarkJudgement:
    gated = gated_of(readings)
    flagged = any(reading.state is State.FLAGGED for reading in gated)
    other = other_work(case.sides.base_runs, case.sides.candidate)
    verdict = combined(
        [reading.judgement for reading in gated], stored=bool(case.stored)
    )
    return BenchmarkJudgement(
        judgements=tuple(
            one if other is None else not_earned(one)
            for one in (reading.judgement for reading in readings)
        ),
        verdict=earned(verdict, other),
        decided=decided,
        flagged=flagged,
        suspect=not fresh and any(reading.suspect for reading in gated),
        remarks=(*_remarks(case), *_of_output(verdict, other)),
    )


def _of_output(verdict: Verdict, other: str | None) -> Iterator[str]:
    if other and verdict.outcome is not Outcome.IMPROVED:
        yield other


def _remarks(case: _Case) -> Iterator[str]:
    yield from _of_new(case)
    yield from _of_bound(case)
    for name, why_not in case.only_shown.items():
        if case.policy.gates(case.stored[name]):
            yield why_not
    for name, metric in case.stored.items():
        if case.lacking[name] and not case.policy.gates(metric):
            yield f"{name} is in the baseline and was not measured in every run"
        elif not case.policy.gates(metric) and (refusal := _refusal(case, metric)):
            yield f"{name} is not compared: {refusal.detail}"


def _of_bound(case: _Case) -> Iterator[str]:
    """Say what the host has to do with the GPU's time."""
    metric = case.stored.get(DEVICE_TIME)
    bound = case.sides.bound
    if bound.change:
        yield bound.change
    if metric is None or not case.policy.gates(metric):
        return
    if bound.both and not case.follows_host(metric):
        yield f"{NAMED}: {bound.text}"
    if bound.now_by_host and bound.before is None:
        yield BASELINE_SILENT


def _of_new(case: _Case) -> Iterator[str]:
    """Name what has no baseline yet; counts that nobody gates together."""
    new = [metric for name, metric in case.known.items() if name not in case.stored]
    counts = [m.name for m in new if m.exact and not case.policy.gates(m)]
    for metric in new:
        if metric.name not in counts:
            yield f"{metric.name} is new: it has no baseline, record one to gate it"
    if counts:
        yield f"{len(counts)} counts have no baseline yet"
