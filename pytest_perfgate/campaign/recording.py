"""`--perfgate-update`: what becomes of each baseline, first as values, then on disk."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from pytest_perfgate.campaign import manager
from pytest_perfgate.campaign.ledger import Entry, Ledger
from pytest_perfgate.campaign.selection import file_of
from pytest_perfgate.campaign.shelf import Shelf
from pytest_perfgate.gate.budgets import Budget
from pytest_perfgate.gate.comparability import definitions
from pytest_perfgate.gate.policy import BenchmarkPolicy
from pytest_perfgate.gate.update import Recording, sketch, update_baseline
from pytest_perfgate.measured import Measurement, Metric, Plan
from pytest_perfgate.model import (
    Baseline,
    BenchmarkResult,
    Environment,
    Outcome,
    Reason,
    Session,
    Verdict,
)
from pytest_perfgate.reports.changes import BudgetOf, Change, shown
from pytest_perfgate.reports.update import Update


@dataclass(frozen=True, slots=True, kw_only=True)
class Occasion:
    """When, of what and where a session of baselines is recorded."""

    time: str
    commit: str | None
    environment_digest: str
    force: bool
    out_of_time: bool
    """The session ended before all of its runs were made."""


class Recorder:
    """What becomes of the results of a session that records baselines."""

    def __init__(self, ledger: Ledger, shelf: Shelf) -> None:
        self._ledger = ledger
        self._shelf = shelf
        self._changes: list[Change] = []
        self._stored: list[Change] = []

    def decide(
        self, judged: Mapping[str, Sequence[BenchmarkResult]], occasion: Occasion
    ) -> dict[str, list[BenchmarkResult]]:
        """Turn verdicts into what becomes of the baselines; nothing is written yet."""
        self._changes = [
            change(
                self._ledger.entries[nodeid],
                result,
                self._shelf.baseline(result.benchmark),
                occasion,
            )
            for nodeid, results in judged.items()
            for result in results
        ]
        recorded: dict[str, list[BenchmarkResult]] = {nodeid: [] for nodeid in judged}
        for each in self._changes:
            recorded[each.result.nodeid].append(each.result)
        return recorded

    def store(self) -> None:
        """Write the new baselines.

        Raises
        ------
        StoreUnreachable
            Where the disk refuses.
        """
        environment = self._ledger.environment
        if environment is not None:
            apply(self._changes, self._shelf, environment)
            self._stored = self._changes

    def told(
        self, policies: Mapping[str, BenchmarkPolicy], *, runs: int
    ) -> tuple[Update, ...]:
        """Return what was written, as it is shown."""
        return tuple(shown(self._stored, budgets(policies), runs=runs))


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
        sketch=dict(sketch(measured)),
        profile=next((m.profile for m in measured if m.profile), None),
    )


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


def budgets(policies: Mapping[str, BenchmarkPolicy]) -> BudgetOf:
    """Give by what the metrics of a benchmark are judged; policies are by node id."""

    def budget_of(result: BenchmarkResult, metric: Metric) -> tuple[str, Budget] | None:
        gate = next(iter(policies[result.nodeid].gates(metric)), None)
        return (gate.statistic, gate.budget) if gate else None

    return budget_of
