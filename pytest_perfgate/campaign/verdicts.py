"""From what the ledger and the shelf hold to verdicts: the judge of a session."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from pytest_perfgate.campaign.attempts import PastAttempts
from pytest_perfgate.campaign.ledger import Entry, Ledger
from pytest_perfgate.campaign.manager import CONFIRMING_RUNS
from pytest_perfgate.campaign.memory import Memory
from pytest_perfgate.campaign.reference import Reference, screened
from pytest_perfgate.campaign.shelf import Shelf
from pytest_perfgate.campaign.summaries import count_fresh
from pytest_perfgate.campaign.twins import base_trouble
from pytest_perfgate.campaign.unused import discarded
from pytest_perfgate.gate.comparability import (
    definitions,
    difference_text,
)
from pytest_perfgate.gate.confirm import FreshPairs
from pytest_perfgate.gate.judge import (
    BenchmarkJudgement,
    judge_benchmark,
)
from pytest_perfgate.gate.looks import Look
from pytest_perfgate.gate.policy import BenchmarkPolicy
from pytest_perfgate.gate.shift import effect_of, machine_wide_shift, under_shift
from pytest_perfgate.measured import Measurement, Plan, Profile, SlowIterations
from pytest_perfgate.model import (
    BenchmarkResult,
    Difference,
    Outcome,
    Reason,
    Shift,
    Verdict,
)
from pytest_perfgate.settings import Settings
from pytest_perfgate.store.attempts import Evidence

MOST_SLOW = 3
"""So many slow iterations of a run are in the report; the record has more."""
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
        self.shift: Shift | None = None
        """How far the machine as a whole moved, once all is screened."""
        self._weighed = False
        self.reference = Reference(ledger, shelf, policies, settings)
        self._memory = Memory(ledger, self.reference, past)
        self._ledger = ledger
        self._shelf = shelf
        self._policies = policies
        self._settings = settings
        self._looks = settings.looks
        self._judged: dict[str, dict[str, BenchmarkJudgement]] = {}
        self._last: dict[str, tuple[list[int], Look]] = {}
        self._pairing = settings.pairing
        self._comparisons = self.reference.count()
        self._counted_at = 0

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
        return {name: plan for name, plan in stored.items() if own.keeps(plan)}

    def decided(self, entry: Entry, *, target: int, last: bool) -> bool:
        """Judge an item's benchmarks at a look; whether more runs can tell more."""
        if entry.finished or len(entry.complete_runs) < self._looks[0]:
            return True
        if self.reference.paired and target != self._counted_at:
            self._counted_at, self._comparisons = target, self.reference.count()
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
        if self._settings.slowdown or self._weighed or self.reference.paired:
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
            paired=self.reference.paired,
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
        """Say why the pairs so far did not measure the base tree."""
        return self.reference.base_problem()

    def evidence(self) -> Mapping[str, Evidence]:
        """Return what there is to remember of this attempt."""
        return self._memory.evidence()

    # -- judging one benchmark

    def _judge(
        self, entry: Entry, benchmark: str, runs: Sequence[int], look: Look
    ) -> BenchmarkJudgement | None:
        """Judge by limits and by what is stored; None where that cannot be compared."""
        if any(d.forbids for d in self.reference.differences(entry, benchmark)):
            return None
        measured = screened(entry)
        new = self.reference.screening(entry, benchmark, runs)
        earlier = self._memory.of(entry, benchmark, new)
        fresh = self.reference.summaries.fresh(entry, benchmark)
        confirmation = (
            fresh if isinstance(fresh, FreshPairs) else (*earlier.fresh, *fresh)
        )
        return judge_benchmark(
            policy=self._policies[entry.nodeid],
            baseline=self.reference.baseline(entry, benchmark, runs),
            candidate=(*earlier.evidence, *new),
            # whoever looks again has had his looks
            look=look.at_last if earlier.evidence else look,
            metrics=definitions(
                [run[benchmark] for run in measured.values() if benchmark in run]
            ),
            confirmation=confirmation
            if count_fresh(fresh) >= CONFIRMING_RUNS
            else None,
        )

    # -- results

    def result(
        self, entry: Entry, benchmark: str, *, out_of_time: bool
    ) -> BenchmarkResult:
        """Return the final result of a measured benchmark."""
        judgement = self._judged.get(entry.nodeid, {}).get(benchmark)
        baseline = self.reference.baseline(entry, benchmark)
        differences = self.reference.differences(entry, benchmark)
        numbers = sorted(screened(entry))
        runs = self.reference.screening(entry, benchmark, numbers)
        earlier = self._memory.of(entry, benchmark, runs)
        fresh = self.reference.summaries.fresh(entry, benchmark)
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
            base_runs=self.reference.pairs(entry, benchmark, numbers).baseline
            if self.reference.paired
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
            slow=tuple(_slow(entry.all_runs, benchmark)),
            discarded=discarded(entry, used=self._used(entry)),
            remarks=(
                *(judgement.remarks if judgement and baseline else ()),
                *self._remarks(entry, benchmark),
            ),
        )

    def _used(self, entry: Entry) -> set[int]:
        """Return the numbers of the runs that were judged, and those that confirmed."""
        judged = self._last[entry.nodeid][0] if entry.nodeid in self._last else []
        fresh = entry.usable(CONFIRMING_RUNS) if entry.screened is not None else []
        return {*judged, *fresh}

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
        if self.reference.baseline(
            entry, benchmark
        ) is None and verdict.outcome not in {
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
        made = count_fresh(self.reference.summaries.fresh(entry, benchmark))
        return Verdict(
            outcome=Outcome.INCONCLUSIVE,
            reason=Reason.UNCONFIRMED,
            detail=f"only {made} of {CONFIRMING_RUNS} fresh runs could be made",
        )

    def _refusal(self, entry: Entry, benchmark: str) -> Verdict | None:
        """Say why a benchmark is not judged, whatever its numbers are."""
        forbidding = [
            d for d in self.reference.differences(entry, benchmark) if d.forbids
        ]
        ungated = not self._policies[entry.nodeid].gate
        if ungated and not (forbidding and self._settings.update):
            return Verdict(outcome=Outcome.SKIPPED, reason=Reason.NOT_GATED)
        if forbidding:
            hardware = any(d.forbids for d in self.reference.machine(benchmark))
            return _incomparable(forbidding, hardware=hardware)
        return None

    def _no_baseline(self) -> Verdict:
        if self.reference.paired:
            return Verdict(
                outcome=Outcome.NO_BASELINE,
                reason=Reason.NOT_IN_BASE,
                detail="the base tree measured nothing under this name",
            )
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


def _profile(
    measured: Mapping[int, Mapping[str, Measurement]], benchmark: str
) -> Profile | None:
    """Return the profile of the first run that has one."""
    found = (run[benchmark].profile for run in measured.values() if benchmark in run)
    return next((profile for profile in found if profile), None)


def _slow(
    measured: Mapping[int, Mapping[str, Measurement]], benchmark: str
) -> Iterator[SlowIterations]:
    """Yield what stood out in each run, the worst few of it."""
    for run in measured.values():
        slow = run[benchmark].slow if benchmark in run else None
        if slow is not None:
            yield replace(slow, worst=slow.worst[:MOST_SLOW])


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
    if entry.all_unfit:
        last = entry.all_unfit[-1]
        told = "; ".join(last.evidence)
        detail = f"{detail}; {len(entry.all_unfit)} not used: {told}"
        return Verdict(outcome=Outcome.INVALID, reason=last.reason, detail=detail)
    ways = ", ".join(loss.how for loss in entry.losses)
    return Verdict(
        outcome=Outcome.INVALID,
        reason=Reason.WORKER_LOST,
        detail=f"{detail}; {ways}" if ways else detail,
    )
