"""What a candidate is judged against: stored baselines, or the base halves of pairs."""

from collections.abc import Callable, Mapping, Sequence

from pytest_perfgate.campaign.ledger import Entry, Ledger
from pytest_perfgate.campaign.proof import judge_proof
from pytest_perfgate.campaign.shelf import Shelf
from pytest_perfgate.campaign.summaries import Summaries, base_of
from pytest_perfgate.gate.comparability import compare_environments, compare_plans
from pytest_perfgate.gate.confirm import FreshPairs
from pytest_perfgate.gate.counting import count_comparisons
from pytest_perfgate.gate.looks import Look
from pytest_perfgate.gate.policy import BenchmarkPolicy
from pytest_perfgate.measured import Measurement
from pytest_perfgate.model import (
    Baseline,
    Difference,
    Outcome,
    Reason,
    RunSummary,
    Verdict,
)
from pytest_perfgate.settings import Settings


class Reference:
    """The other side of every comparison of a session."""

    def __init__(
        self,
        ledger: Ledger,
        shelf: Shelf,
        policies: Mapping[str, BenchmarkPolicy],
        settings: Settings,
    ) -> None:
        self.in_base: Callable[[str], bool] = lambda _: True
        """Whether the base commit has an item of this node id."""
        self.paired = settings.paired
        """Everything is judged in pairs, and nothing by what is stored."""
        self.summaries = Summaries(policies)
        self._ledger = ledger
        self._shelf = shelf
        self._policies = policies
        self._final = settings.looks[-1]

    def baseline(
        self, entry: Entry, benchmark: str, runs: Sequence[int] | None = None
    ) -> Baseline | None:
        """Return what a benchmark is judged against; of pairs, those of `runs`."""
        if not self.paired:
            return self._shelf.baseline(benchmark)
        if runs is None:
            runs = sorted(screened(entry))
        return base_of(self.pairs(entry, benchmark, runs), entry, benchmark)

    def screening(
        self, entry: Entry, benchmark: str, runs: Sequence[int]
    ) -> tuple[RunSummary, ...]:
        """Summarise the candidate's runs that are screened, of pairs or not."""
        if self.paired:
            return self.pairs(entry, benchmark, runs).candidate
        return self.summaries.of(entry.nodeid, benchmark, screened(entry), runs)

    def pairs(self, entry: Entry, benchmark: str, runs: Sequence[int]) -> FreshPairs:
        """Summarise both halves of the pairs that are screened."""
        return self.summaries.pairs(
            entry, benchmark, runs, screened=entry.screened is not None
        )

    # -- how many comparisons there are

    def count(self) -> int:
        """Count what is put to a test; of pairs only once some are made."""
        if self.paired:
            return sum(
                self._count(entry.nodeid, baseline)
                for entry in self._ledger.entries.values()
                for benchmark in entry.benchmarks
                if (baseline := self.baseline(entry, benchmark)) is not None
            )
        return sum(
            self._count(nodeid, baseline)
            for nodeid in self._ledger.entries
            for baseline in self._shelf.of_item(nodeid).values()
        )

    def _count(self, nodeid: str, baseline: Baseline) -> int:
        look = Look(final_runs=self._final, paired=self.paired)
        return count_comparisons(self._policies[nodeid], baseline, look)

    # -- whether the two sides can be compared

    def differences(self, entry: Entry, benchmark: str) -> tuple[Difference, ...]:
        """Say in what the stored and the measured environment and plan differ."""
        baseline = self.baseline(entry, benchmark)
        plan = self._ledger.plan_of(benchmark, entry.nodeid)
        if baseline is None or plan is None:
            return ()
        return (*self.machine(benchmark), *compare_plans(baseline.plan, plan))

    def machine(self, benchmark: str) -> tuple[Difference, ...]:
        """Say in what the two environments differ."""
        stored, now = self._shelf.environment(benchmark), self._ledger.environment
        if self.paired and self._ledger.base is not None:
            stored = self._ledger.base.environment
        return compare_environments(stored, now) if stored and now else ()

    def explaining(
        self, entry: Entry, benchmark: str
    ) -> tuple[Baseline, tuple[Difference, ...], bool] | None:
        """Return what explains a verdict best, how it differs, and if it is base code.

        Base code that was measured on this very machine, where there is some; else
        what is stored.
        """
        fresh = self.summaries.fresh(entry, benchmark)
        base = (
            base_of(fresh, entry, benchmark) if isinstance(fresh, FreshPairs) else None
        )
        now, ledger = self._ledger.environment, self._ledger.base
        if base is not None and ledger is not None:
            stored = ledger.environment
            differ = compare_environments(stored, now) if stored and now else ()
            return base, differ, True
        baseline = self.baseline(entry, benchmark)
        if baseline is None:
            return None
        return baseline, self.differences(entry, benchmark), self.paired

    # -- whether the base tree was measured at all

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

    def without_base(self, entry: Entry, why: str) -> Verdict:
        """Judge a benchmark whose other half could not be made."""
        if not self.in_base(entry.nodeid):
            return Verdict(
                outcome=Outcome.NO_BASELINE, reason=Reason.NOT_IN_BASE, detail=why
            )
        return Verdict(
            outcome=Outcome.INVALID, reason=Reason.BASE_NOT_MEASURED, detail=why
        )


def screened(entry: Entry) -> Mapping[int, Mapping[str, Measurement]]:
    """Return the runs that are screened, those made to confirm apart."""
    return entry.screened if entry.screened is not None else entry.runs


def _any_runs(ledger: Ledger) -> bool:
    return any(entry.runs for entry in ledger.entries.values())
