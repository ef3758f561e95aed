"""From what the ledger and the shelf hold to verdicts: the judge of a session."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from pytest_perfgate.campaign.attempts import Earlier, PastAttempts
from pytest_perfgate.campaign.ledger import Entry, Ledger, discarded
from pytest_perfgate.campaign.manager import CONFIRMING_RUNS
from pytest_perfgate.campaign.proof import judge_proof
from pytest_perfgate.campaign.shelf import Shelf
from pytest_perfgate.campaign.summaries import (
    Summaries,
    base_of,
    count_fresh,
)
from pytest_perfgate.campaign.twins import base_trouble
from pytest_perfgate.gate.comparability import (
    compare_environments,
    compare_plans,
    definitions,
    difference_text,
)
from pytest_perfgate.gate.confirm import FreshPairs
from pytest_perfgate.gate.judge import (
    BenchmarkJudgement,
    count_comparisons,
    judge_benchmark,
)
from pytest_perfgate.gate.looks import Look
from pytest_perfgate.gate.policy import BenchmarkPolicy
from pytest_perfgate.gate.shift import effect_of, machine_wide_shift, under_shift
from pytest_perfgate.model import (
    Baseline,
    BenchmarkResult,
    Difference,
    Measurement,
    Outcome,
    Plan,
    Profile,
    Reason,
    RunSummary,
    Shift,
    Verdict,
)
from pytest_perfgate.settings import Settings
from pytest_perfgate.store.attempts import Evidence, conditions_of

CLEAREST = 5
"""So many are confirmed where the machine as a whole seems to have moved."""


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
        self.in_base: Callable[[str], bool] = lambda _: True
        """Whether the base commit has an item of this node id."""
        self.shift: Shift | None = None
        """How far the machine as a whole moved, once all is screened."""
        self._weighed = False
        self._past = past
        self._conditions: dict[str, str] = {}
        self._ledger = ledger
        self._shelf = shelf
        self._policies = policies
        self._settings = settings
        self._looks = settings.looks
        self._judged: dict[str, dict[str, BenchmarkJudgement]] = {}
        self._last: dict[str, tuple[list[int], Look]] = {}
        self._summaries = Summaries(policies)
        self._pairing = settings.pairing
        self._comparisons = 0
        self._counted_at = 0
        if not self._against:
            self._comparisons = self._stored_comparisons()

    @property
    def _against(self) -> bool:
        """Whether everything is judged in pairs, and nothing by what is stored."""
        return self._pairing.against is not None and not self._settings.update

    def _stored_comparisons(self) -> int:
        return sum(
            self._comparisons_of(nodeid, baseline)
            for nodeid in self._ledger.entries
            for baseline in self._shelf.of_item(nodeid).values()
        )

    def _comparisons_of(self, nodeid: str, baseline: Baseline) -> int:
        look = Look(final_runs=self._looks[-1], paired=self._against)
        return count_comparisons(self._policies[nodeid], baseline, look)

    def _paired_comparisons(self) -> int:
        """Count what the pairs put to a test: known once some are made."""
        return sum(
            self._comparisons_of(entry.nodeid, baseline)
            for entry in self._ledger.entries.values()
            for benchmark in entry.benchmarks
            if (baseline := self._baseline(entry, benchmark)) is not None
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
        if entry.finished or len(entry.complete_runs) < self._looks[0]:
            return True
        if self._against and target != self._counted_at:
            self._counted_at, self._comparisons = target, self._paired_comparisons()
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
            if entry.complete_runs and entry.screened is None:
                self.decided(entry, target=len(entry.complete_runs), last=True)
        self.weigh_the_suite()

    def weigh_the_suite(self) -> None:
        """See whether the machine as a whole moved, when all is screened.

        What is flagged on a machine that became slower wants base code to be
        confirmed, and there is none: no fresh runs are made for it. Baselines
        are recorded all the same; the report then says what they have in them.
        A slowdown that we planted ourselves is no shift of the machine, and both
        halves of a pair move with it. With base code the clearest are confirmed:
        if they are, the code became slower as a whole.
        """
        if self._settings.slowdown or self._weighed or self._against:
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
        spared = self._clearest() if self._pairing.confirm else set()
        for nodeid, judged in self._judged.items():
            self._judged[nodeid] = {
                benchmark: judgement
                if benchmark in spared
                else under_shift(judgement, self.shift)
                for benchmark, judgement in judged.items()
            }

    def _clearest(self) -> set[str]:
        """Return the flagged benchmarks that stand out most."""
        effects = {
            benchmark: effect_of(judgement.judgements) or 0.0
            for judged in self._judged.values()
            for benchmark, judgement in judged.items()
            if judgement.flagged
        }
        return set(sorted(effects, key=lambda one: -effects[one])[:CLEAREST])

    def _look(self, runs: int, *, last: bool) -> Look:
        index = sum(1 for planned in self._looks[:-1] if runs > planned)
        return Look(
            index=index,
            last=last,
            comparisons=max(1, self._comparisons),
            final_runs=self._looks[-1],
            base_code=self._pairing.ref is not None and not self._settings.update,
            paired=self._against,
        )

    def flagged(self, entry: Entry) -> bool:
        judged = self._judged.get(entry.nodeid, {}).values()
        asked = any(j.flagged or (self._confirming and j.suspect) for j in judged)
        return not entry.finished and asked

    @property
    def _confirming(self) -> bool:
        """Whether base code settles what stored baselines only suspect."""
        return self._pairing.confirm is not None and not self._settings.update

    def base_problem(self) -> str:
        """Say why the pairs so far did not measure the base tree.

        A worker that was lost on the way has proven nothing; another one will.
        """
        base = self._ledger.base
        if base is None or base.proof is None or not _any_runs(base):
            return ""  # its own failures say more
        found = judge_proof(base.proof, self._ledger.proof)
        for difference in found.differences:
            self._ledger.note(difference)
        return "" if found.measured else found.why

    def unproven(self) -> str:
        """Say, at the end, where no worker of the base tree came to prove itself."""
        base = self._ledger.base
        if base is None or base.proof is not None or not _any_runs(base):
            return ""
        return judge_proof(None, self._ledger.proof).why

    # -- judging one benchmark

    def _judge(
        self, entry: Entry, benchmark: str, runs: Sequence[int], look: Look
    ) -> BenchmarkJudgement | None:
        """Judge by limits and by what is stored; None where that cannot be compared."""
        if any(d.forbids for d in self.differences(entry, benchmark)):
            return None
        screened = entry.screened if entry.screened is not None else entry.runs
        new = self._screening(entry, benchmark, runs)
        earlier = self._earlier(entry, benchmark, new)
        fresh = self._summaries.fresh(entry, benchmark)
        confirmation = (
            fresh if isinstance(fresh, FreshPairs) else (*earlier.fresh, *fresh)
        )
        return judge_benchmark(
            policy=self._policies[entry.nodeid],
            baseline=self._baseline(entry, benchmark, runs),
            candidate=(*earlier.evidence, *new),
            # whoever looks again has had his looks
            look=look.at_last if earlier.evidence else look,
            metrics=definitions(
                [run[benchmark] for run in screened.values() if benchmark in run]
            ),
            confirmation=confirmation
            if count_fresh(fresh) >= CONFIRMING_RUNS
            else None,
        )

    def _screening(
        self, entry: Entry, benchmark: str, runs: Sequence[int]
    ) -> tuple[RunSummary, ...]:
        """Summarise the candidate's runs that are screened, of pairs or not."""
        if self._against:
            return self._pairs(entry, benchmark, runs).candidate
        screened = entry.screened if entry.screened is not None else entry.runs
        return self._summaries.of(entry.nodeid, benchmark, screened, runs)

    def _pairs(self, entry: Entry, benchmark: str, runs: Sequence[int]) -> FreshPairs:
        return self._summaries.pairs(
            entry, benchmark, runs, screened=entry.screened is not None
        )

    def _baseline(
        self, entry: Entry, benchmark: str, runs: Sequence[int] | None = None
    ) -> Baseline | None:
        """Return what a benchmark is judged against: stored, or the pairs' base halves."""
        if not self._against:
            return self._shelf.baseline(benchmark)
        if runs is None:
            runs = sorted(entry.screened if entry.screened is not None else entry.runs)
        return base_of(self._pairs(entry, benchmark, runs), entry, benchmark)

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
            made = self._summaries.of(
                entry.nodeid, benchmark, measured, sorted(measured)
            )
            return [run for run in made if not run.disturbed]

        earlier = self._past.of(benchmark, conditions)
        confirming = entry.screened is not None and entry.twin is None
        return Evidence(
            conditions=conditions,
            attempts=earlier.attempts + 1,
            runs=(*earlier.runs, *sound(entry.screened or entry.runs)),
            fresh=(*earlier.fresh, *(sound(entry.runs) if confirming else ())),
        )

    def differences(self, entry: Entry, benchmark: str) -> tuple[Difference, ...]:
        """Say in what the stored and the measured environment and plan differ."""
        baseline = self._baseline(entry, benchmark)
        plan = self._ledger.plan_of(benchmark, entry.nodeid)
        if baseline is None or plan is None:
            return ()
        return (*self._machine(benchmark), *compare_plans(baseline.plan, plan))

    def _machine(self, benchmark: str) -> tuple[Difference, ...]:
        stored, now = self._shelf.environment(benchmark), self._ledger.environment
        if self._against and self._ledger.base is not None:
            stored = self._ledger.base.environment
        return compare_environments(stored, now) if stored and now else ()

    # -- results

    def result(
        self, entry: Entry, benchmark: str, *, out_of_time: bool
    ) -> BenchmarkResult:
        """Return the final result of a measured benchmark."""
        judgement = self._judged.get(entry.nodeid, {}).get(benchmark)
        baseline = self._baseline(entry, benchmark)
        differences = self.differences(entry, benchmark)
        screened = entry.screened if entry.screened is not None else entry.runs
        runs = self._screening(entry, benchmark, sorted(screened))
        earlier = self._earlier(entry, benchmark, runs)
        fresh = self._summaries.fresh(entry, benchmark)
        paired = fresh if isinstance(fresh, FreshPairs) else None
        return BenchmarkResult(
            benchmark=benchmark,
            nodeid=entry.nodeid,
            verdict=self._verdict(entry, benchmark, judgement, out_of_time=out_of_time),
            judgements=judgement.judgements if judgement else (),
            runs=(*earlier.evidence, *runs),
            confirmation=paired.candidate
            if paired
            else (*earlier.fresh, *(fresh if isinstance(fresh, tuple) else ())),
            base_runs=self._pairs(entry, benchmark, sorted(screened)).baseline
            if self._against
            else (),
            base_confirmation=paired.baseline if paired else (),
            attempt=earlier.attempts + 1,
            earlier_runs=len(earlier.evidence),
            plan=self._ledger.plan_of(benchmark, entry.nodeid),
            differences=differences,
            metrics=definitions(
                [run[benchmark] for run in entry.all_runs.values() if benchmark in run]
            ),
            longest_warmup=_longest_warmup(entry, benchmark),
            profile=_profile(entry.all_runs, benchmark),
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
        if self._baseline(entry, benchmark) is None and verdict.outcome not in {
            Outcome.REGRESSED,  # a limit needs no baseline
            Outcome.ERROR,
        }:
            return self._no_baseline()
        if judgement.flagged and not self._settings.update:
            return self._unconfirmed(entry, benchmark)
        unfinished = (
            len(entry.complete_runs) < self._looks[-1] and not judgement.decided
        )
        if out_of_time and unfinished and verdict.outcome is Outcome.INCONCLUSIVE:
            detail = f"{len(entry.complete_runs)} of {self._looks[-1]} runs made"
            return replace(verdict, reason=Reason.OUT_OF_TIME, detail=detail)
        return verdict

    def _unconfirmed(self, entry: Entry, benchmark: str) -> Verdict:
        """Keep from going red what its fresh runs could not confirm for want of them."""
        why = base_trouble(entry)
        if why:
            return Verdict(
                outcome=Outcome.INVALID, reason=Reason.BASE_NOT_MEASURED, detail=why
            )
        made = count_fresh(self._summaries.fresh(entry, benchmark))
        return Verdict(
            outcome=Outcome.INCONCLUSIVE,
            reason=Reason.UNCONFIRMED,
            detail=f"only {made} of {CONFIRMING_RUNS} fresh runs could be made",
        )

    def without_base(self, entry: Entry, why: str) -> Verdict:
        """Judge a benchmark whose other half could not be made."""
        if not self.in_base(entry.nodeid):
            return Verdict(
                outcome=Outcome.NO_BASELINE, reason=Reason.NOT_IN_BASE, detail=why
            )
        return Verdict(
            outcome=Outcome.INVALID, reason=Reason.BASE_NOT_MEASURED, detail=why
        )

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


def _longest_warmup(entry: Entry, benchmark: str) -> int:
    """Return how many iterations some run took to become warm, if more than the first."""
    made = [
        run[benchmark].plan.warmup
        for run in entry.all_runs.values()
        if benchmark in run
    ]
    return max(made) if made and max(made) > made[0] else 0


def _any_runs(ledger: Ledger) -> bool:
    return any(entry.runs for entry in ledger.entries.values())


def _profile(
    measured: Mapping[int, Mapping[str, Measurement]], benchmark: str
) -> Profile | None:
    """Return the profile of the first run that has one."""
    found = (run[benchmark].profile for run in measured.values() if benchmark in run)
    return next((profile for profile in found if profile), None)


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
