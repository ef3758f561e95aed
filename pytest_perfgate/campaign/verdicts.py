"""From what the ledger and the shelf hold to verdicts: the judge of a session."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pytest_perfgate.campaign.attempts import Earlier, PastAttempts
from pytest_perfgate.campaign.ledger import Entry, Ledger, discarded
from pytest_perfgate.campaign.manager import CONFIRMING_RUNS
from pytest_perfgate.campaign.shelf import Shelf
from pytest_perfgate.gate.comparability import (
    compare_environments,
    compare_plans,
    definitions,
    difference_text,
)
from pytest_perfgate.gate.judge import (
    BenchmarkJudgement,
    count_comparisons,
    judge_benchmark,
)
from pytest_perfgate.gate.looks import Look, planned_looks
from pytest_perfgate.gate.policy import BenchmarkPolicy
from pytest_perfgate.gate.shift import effect_of, machine_wide_shift, under_shift
from pytest_perfgate.gate.summary import summarise
from pytest_perfgate.model import (
    BenchmarkResult,
    Difference,
    Measurement,
    Metric,
    Outcome,
    Plan,
    Reason,
    RunSummary,
    Shift,
    Verdict,
)
from pytest_perfgate.settings import Settings
from pytest_perfgate.store.attempts import Evidence, conditions_of


class Verdicts:
    """Judges benchmarks at the planned looks, and for the report."""

    def __init__(
        self,
        ledger: Ledger,
        shelf: Shelf,
        policies: Mapping[str, BenchmarkPolicy],
        *,
        settings: Settings,
        past: PastAttempts,
    ) -> None:
        self.shift: Shift | None = None
        """How far the machine as a whole moved, once all is screened."""
        self._weighed = False
        self._past = past
        self._conditions: dict[str, str] = {}
        self._ledger = ledger
        self._shelf = shelf
        self._policies = policies
        self._settings = settings
        self._looks = planned_looks(settings.runs_min, settings.runs_max)
        self._judged: dict[str, dict[str, BenchmarkJudgement]] = {}
        self._last: dict[str, tuple[list[int], Look]] = {}
        self._summaries: dict[tuple[str, int], RunSummary] = {}
        self._comparisons = sum(
            count_comparisons(
                policies[nodeid], baseline, Look(final_runs=self._looks[-1])
            )
            for nodeid in ledger.entries
            for baseline in shelf.of_item(nodeid).values()
        )

    # -- what the campaign asks

    def plans(self, nodeid: str) -> Mapping[str, Plan]:
        """Return the stored plans that govern an item's benchmarks.

        A new session of baselines goes by what the user says, where that is
        something else: its plan is what is recorded.
        """
        stored = self._shelf.plans(nodeid)
        if not self._settings.update:
            return stored
        own = self._ledger.entries[nodeid].settings
        return {name: plan for name, plan in stored.items() if own.agrees_with(plan)}

    def decided(self, entry: Entry, *, target: int, last: bool) -> bool:
        """Judge an item's benchmarks at a look; whether more runs can tell more."""
        if entry.finished or len(entry.runs) < self._looks[0]:
            return True
        runs = entry.usable(target)
        return self._judge_all(entry, runs, self._look(len(runs), last=last))

    def confirmed(self, entry: Entry) -> None:
        """Judge again what was flagged, with the fresh runs."""
        runs, look = self._last[entry.nodeid]
        self._judge_all(entry, runs, look)

    def _judge_all(self, entry: Entry, runs: list[int], look: Look) -> bool:
        judged = {
            benchmark: judgement
            for benchmark in entry.benchmarks
            if (judgement := self._judge(entry, benchmark, runs, look)) is not None
        }
        self._judged[entry.nodeid] = judged
        self._last[entry.nodeid] = runs, look
        return all(judgement.decided for judgement in judged.values())

    def judge_as_it_stands(self) -> None:
        """Judge what there is after an interruption, as at the last look."""
        for entry in self._ledger.entries.values():
            if entry.runs and entry.screened is None:
                self.decided(entry, target=len(entry.runs), last=True)
        self.weigh_the_suite()

    def weigh_the_suite(self) -> None:
        """See whether the machine as a whole moved, when all is screened.

        What is flagged on a machine that became slower wants base code to be
        confirmed, and there is none: no fresh runs are made for it. Baselines
        are recorded all the same; the report then says what they have in them.
        A slowdown that we planted ourselves is no shift of the machine.
        """
        if self._settings.slowdown or self._weighed:
            return  # what was made to confirm is no part of the screening
        self._weighed = True
        found = [
            effect_of(judgement.judgements)
            for judged in self._judged.values()
            for judgement in judged.values()
        ]
        self.shift = machine_wide_shift([one for one in found if one is not None])
        if self.shift is None or self._settings.update:
            return
        for nodeid, judged in self._judged.items():
            self._judged[nodeid] = {
                benchmark: under_shift(judgement, self.shift)
                for benchmark, judgement in judged.items()
            }

    def _look(self, runs: int, *, last: bool) -> Look:
        index = sum(1 for planned in self._looks[:-1] if runs > planned)
        return Look(
            index=index,
            last=last,
            comparisons=max(1, self._comparisons),
            final_runs=self._looks[-1],
        )

    def flagged(self, entry: Entry) -> bool:
        judged = self._judged.get(entry.nodeid, {})
        return not entry.finished and any(j.flagged for j in judged.values())

    # -- judging one benchmark

    def _judge(
        self, entry: Entry, benchmark: str, runs: Sequence[int], look: Look
    ) -> BenchmarkJudgement | None:
        """Judge by limits and by what is stored; None where that cannot be compared."""
        if any(d.forbids for d in self.differences(entry, benchmark)):
            return None
        screened = entry.screened if entry.screened is not None else entry.runs
        new = self.summaries(entry.nodeid, benchmark, screened, runs)
        earlier = self._earlier(entry, benchmark, new)
        fresh = self._fresh(entry, benchmark)
        confirmed = len(fresh) >= CONFIRMING_RUNS
        return judge_benchmark(
            policy=self._policies[entry.nodeid],
            baseline=self._shelf.baseline(benchmark),
            candidate=(*earlier.evidence, *new),
            # whoever looks again has had his looks
            look=look.at_last if earlier.evidence else look,
            metrics=_metrics(screened, benchmark),
            confirmation=(*earlier.fresh, *fresh) if confirmed else None,
        )

    def _earlier(
        self, entry: Entry, benchmark: str, new: tuple[RunSummary, ...]
    ) -> Earlier:
        """Return what earlier attempts on this commit have to say of a benchmark."""
        conditions = self._conditions_of(entry, benchmark)
        if conditions is None:
            return Earlier()
        return self._past.of(benchmark, conditions).like(new)

    def _conditions_of(self, entry: Entry, benchmark: str) -> str | None:
        """Digest what a benchmark is judged against; None where it cannot be."""
        if not self._past.counting:
            return None
        if benchmark not in self._conditions:
            baseline = self._shelf.baseline(benchmark)
            plan = self._ledger.plan_of(benchmark, entry.nodeid)
            environment = self._ledger.environment
            if baseline is None or plan is None or environment is None:
                return None
            self._conditions[benchmark] = conditions_of(baseline, plan, environment)
        return self._conditions[benchmark]

    def evidence(self) -> Mapping[str, Evidence]:
        """Return what there is to remember: the sound runs of all attempts."""
        found = {}
        for entry in self._ledger.entries.values():
            for benchmark in entry.benchmarks if not entry.finished else ():
                conditions = self._conditions_of(entry, benchmark)
                comparable = not any(
                    d.forbids for d in self.differences(entry, benchmark)
                )
                if conditions is not None and comparable:
                    found[benchmark] = self._remembered(entry, benchmark, conditions)
        return found

    def _remembered(self, entry: Entry, benchmark: str, conditions: str) -> Evidence:
        def sound(
            measured: Mapping[int, Mapping[str, Measurement]],
        ) -> list[RunSummary]:
            made = self.summaries(entry.nodeid, benchmark, measured, sorted(measured))
            return [run for run in made if not run.disturbed]

        earlier = self._past.of(benchmark, conditions)
        confirming = entry.screened is not None
        return Evidence(
            conditions=conditions,
            attempts=earlier.attempts + 1,
            runs=(*earlier.runs, *sound(entry.screened or entry.runs)),
            fresh=(*earlier.fresh, *(sound(entry.runs) if confirming else ())),
        )

    def _fresh(self, entry: Entry, benchmark: str) -> tuple[RunSummary, ...]:
        """Return the runs that were made to confirm a flag."""
        if entry.screened is None:
            return ()
        fresh = entry.usable(CONFIRMING_RUNS)
        return self.summaries(entry.nodeid, benchmark, entry.runs, fresh)

    def summaries(
        self,
        nodeid: str,
        benchmark: str,
        measured: Mapping[int, Mapping[str, Measurement]],
        runs: Sequence[int],
    ) -> tuple[RunSummary, ...]:
        """Summarise a benchmark's runs, each once."""
        found = []
        for number in runs:
            if benchmark not in measured[number]:
                continue
            key = (benchmark, number)
            if key not in self._summaries:
                self._summaries[key] = summarise(
                    measured[number][benchmark],
                    extra_statistics=self._policies[nodeid].extra_statistics,
                )
            found.append(self._summaries[key])
        return tuple(found)

    def differences(self, entry: Entry, benchmark: str) -> tuple[Difference, ...]:
        """Say in what the stored and the measured environment and plan differ."""
        baseline = self._shelf.baseline(benchmark)
        plan = self._ledger.plan_of(benchmark, entry.nodeid)
        if baseline is None or plan is None:
            return ()
        return (*self._machine(benchmark), *compare_plans(baseline.plan, plan))

    def _machine(self, benchmark: str) -> tuple[Difference, ...]:
        stored, now = self._shelf.environment(benchmark), self._ledger.environment
        return compare_environments(stored, now) if stored and now else ()

    # -- results

    def result(
        self, entry: Entry, benchmark: str, *, out_of_time: bool
    ) -> BenchmarkResult:
        """Return the final result of a measured benchmark."""
        judgement = self._judged.get(entry.nodeid, {}).get(benchmark)
        baseline = self._shelf.baseline(benchmark)
        differences = self.differences(entry, benchmark)
        screened = entry.screened if entry.screened is not None else entry.runs
        runs = self.summaries(entry.nodeid, benchmark, screened, sorted(screened))
        earlier = self._earlier(entry, benchmark, runs)
        return BenchmarkResult(
            benchmark=benchmark,
            nodeid=entry.nodeid,
            verdict=self._verdict(entry, benchmark, judgement, out_of_time=out_of_time),
            judgements=judgement.judgements if judgement else (),
            runs=(*earlier.evidence, *runs),
            confirmation=(*earlier.fresh, *self._fresh(entry, benchmark)),
            attempt=earlier.attempts + 1,
            earlier_runs=len(earlier.evidence),
            plan=self._ledger.plan_of(benchmark, entry.nodeid),
            differences=differences,
            metrics=_metrics(entry.all_runs, benchmark),
            longest_warmup=_longest_warmup(entry, benchmark),
            discarded=discarded(entry),
            remarks=(
                *(judgement.remarks if judgement and baseline else ()),
                *self._remarks(entry, benchmark),
            ),
        )

    def _verdict(
        self,
        entry: Entry,
        benchmark: str,
        judgement: BenchmarkJudgement | None,
        *,
        out_of_time: bool,
    ) -> Verdict:
        refusal = self._refusal(entry, benchmark)
        if refusal is not None:
            return refusal
        if judgement is None:
            return _too_few(entry, least=self._looks[0], out_of_time=out_of_time)
        verdict = judgement.verdict
        if self._shelf.baseline(benchmark) is None and verdict.outcome not in {
            Outcome.REGRESSED,  # a limit needs no baseline
            Outcome.ERROR,
        }:
            return self._no_baseline()
        if judgement.flagged and not self._settings.update:
            return _unconfirmed(len(self._fresh(entry, benchmark)))
        unfinished = len(entry.runs) < self._looks[-1] and not judgement.decided
        if out_of_time and unfinished and verdict.outcome is Outcome.INCONCLUSIVE:
            detail = f"{len(entry.runs)} of {self._looks[-1]} runs made"
            return replace(verdict, reason=Reason.OUT_OF_TIME, detail=detail)
        return verdict

    def _refusal(self, entry: Entry, benchmark: str) -> Verdict | None:
        """Say why a benchmark is not judged, whatever its numbers are."""
        forbidding = [d for d in self.differences(entry, benchmark) if d.forbids]
        ungated = not self._policies[entry.nodeid].gate
        if ungated and not (forbidding and self._settings.update):
            return Verdict(outcome=Outcome.SKIPPED, reason=Reason.NOT_GATED)
        if forbidding:
            hardware = any(d.forbids for d in self._machine(benchmark))
            return _incomparable(forbidding, hardware=hardware)
        return None

    def _no_baseline(self) -> Verdict:
        others = ", ".join(self._shelf.elsewhere())
        detail = f"stored for {others}" if others else ""
        return Verdict(
            outcome=Outcome.NO_BASELINE,
            reason=Reason.NOTHING_STORED,
            detail=f"{self._shelf.key}; {detail}" if detail else self._shelf.key,
        )

    def _remarks(self, entry: Entry, benchmark: str) -> tuple[str, ...]:
        runs = (entry.screened or {}) | entry.runs
        said = (
            remark
            for run in runs.values()
            if benchmark in run
            for remark in run[benchmark].remarks
        )
        return tuple(dict.fromkeys(said))


def _unconfirmed(fresh: int) -> Verdict:
    """Keep from going red what its fresh runs could not confirm for want of them."""
    return Verdict(
        outcome=Outcome.INCONCLUSIVE,
        reason=Reason.UNCONFIRMED,
        detail=f"only {fresh} of {CONFIRMING_RUNS} fresh runs could be made",
    )


def _longest_warmup(entry: Entry, benchmark: str) -> int:
    """Return how many iterations some run took to become warm, if more than the first."""
    made = [
        run[benchmark].plan.warmup
        for run in entry.all_runs.values()
        if benchmark in run
    ]
    return max(made) if made and max(made) > made[0] else 0


def _metrics(
    measured: Mapping[int, Mapping[str, Measurement]], benchmark: str
) -> dict[str, Metric]:
    """Return the definitions of what was measured of a benchmark."""
    return definitions(run[benchmark] for run in measured.values() if benchmark in run)


def _incomparable(forbidding: Sequence[Difference], *, hardware: bool) -> Verdict:
    return Verdict(
        outcome=Outcome.INCOMPARABLE,
        reason=Reason.HARDWARE_DIFFERS if hardware else Reason.PLAN_DIFFERS,
        detail=difference_text(tuple(forbidding)),
    )


def _too_few(entry: Entry, *, least: int, out_of_time: bool) -> Verdict:
    detail = f"{len(entry.runs)} of at least {least} runs"
    if out_of_time:
        return Verdict(
            outcome=Outcome.INCONCLUSIVE, reason=Reason.OUT_OF_TIME, detail=detail
        )
    if entry.unfit:
        last = entry.unfit[-1]
        detail = f"{detail}; {len(entry.unfit)} not used: {'; '.join(last.evidence)}"
        return Verdict(outcome=Outcome.INVALID, reason=last.reason, detail=detail)
    ways = ", ".join(loss.how for loss in entry.losses)
    return Verdict(
        outcome=Outcome.INVALID,
        reason=Reason.WORKER_LOST,
        detail=f"{detail}; {ways}" if ways else detail,
    )
