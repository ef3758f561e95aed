"""What earlier attempts on this commit say of a benchmark, and what this one leaves."""

from collections.abc import Mapping

from pytest_perfgate.campaign.attempts import Earlier, PastAttempts
from pytest_perfgate.campaign.ledger import Entry, Ledger
from pytest_perfgate.campaign.reference import Reference
from pytest_perfgate.measured import Measurement
from pytest_perfgate.model import RunSummary
from pytest_perfgate.store.attempts import Evidence, conditions_of


class Memory:
    """Earlier attempts, where they were judged against the same as this one."""

    def __init__(
        self, ledger: Ledger, reference: Reference, past: PastAttempts
    ) -> None:
        self._ledger = ledger
        self._reference = reference
        self._past = past
        self._conditions: dict[str, str] = {}

    def of(self, entry: Entry, benchmark: str, new: tuple[RunSummary, ...]) -> Earlier:
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
            baseline = self._reference.baseline(entry, benchmark)
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
                    d.forbids for d in self._reference.differences(entry, benchmark)
                )
                if conditions is not None and comparable:
                    found[benchmark] = self._remembered(entry, benchmark, conditions)
        return found

    def _remembered(self, entry: Entry, benchmark: str, conditions: str) -> Evidence:
        def sound(
            measured: Mapping[int, Mapping[str, Measurement]],
        ) -> list[RunSummary]:
            made = self._reference.summaries.of(
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
