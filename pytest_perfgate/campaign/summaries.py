"""Each run reduced to what the gate looks at, once."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pytest_perfgate.campaign.ledger import Entry
from pytest_perfgate.campaign.manager import CONFIRMING_RUNS
from pytest_perfgate.gate.comparability import definitions
from pytest_perfgate.gate.confirm import FreshPairs
from pytest_perfgate.gate.policy import BenchmarkPolicy
from pytest_perfgate.gate.summary import summarise
from pytest_perfgate.gate.twins import disturbed_unequally, with_twin
from pytest_perfgate.measured import Measurement
from pytest_perfgate.model import Baseline, RunSummary, Session

Measured = Mapping[int, Mapping[str, Measurement]]
"""By run number, then by benchmark id."""
Runs = tuple[RunSummary, ...]


class Summaries:
    """The summaries of a session's runs, and of their twins."""

    def __init__(self, policies: Mapping[str, BenchmarkPolicy]) -> None:
        self._policies = policies
        self._known: dict[int, RunSummary] = {}
        self._pairs: dict[tuple[int, int], tuple[RunSummary, RunSummary]] = {}
        self._measurements: list[Measurement] = []

    def of(
        self, nodeid: str, benchmark: str, measured: Measured, runs: Sequence[int]
    ) -> Runs:
        """Summarise a benchmark's runs, those that did not measure it left out."""
        return tuple(
            self._one(nodeid, measured[number][benchmark])
            for number in runs
            if benchmark in measured[number]
        )

    def _one(self, nodeid: str, measurement: Measurement) -> RunSummary:
        if id(measurement) not in self._known:
            self._measurements.append(measurement)  # or its id would be used again
            self._known[id(measurement)] = summarise(
                measurement,
                extra_statistics=self._policies[nodeid].extra_statistics,
            )
        return self._known[id(measurement)]

    # -- pairs

    def pairs(
        self,
        entry: Entry,
        benchmark: str,
        runs: Sequence[int],
        *,
        screened: bool = False,
    ) -> FreshPairs:
        """Summarise both halves of pairs in which both measured a benchmark.

        Parameters
        ----------
        screened : take those put aside when a confirmation began
        """
        ours, theirs = _halves(entry, screened=screened)
        both = [
            (theirs[n][benchmark], ours[n][benchmark])
            for n in runs
            if benchmark in ours.get(n, {}) and benchmark in theirs.get(n, {})
        ]
        halves = [self._halves(entry.nodeid, own, base) for base, own in both]
        return FreshPairs(
            baseline=tuple(base for base, _ in halves),
            candidate=tuple(own for _, own in halves),
        )

    def _halves(
        self, nodeid: str, candidate: Measurement, base: Measurement
    ) -> tuple[RunSummary, RunSummary]:
        key = id(candidate), id(base)
        if key not in self._pairs:
            self._pairs[key] = self._pair(nodeid, candidate, base)
        return self._pairs[key]

    def _pair(
        self, nodeid: str, candidate: Measurement, base: Measurement
    ) -> tuple[RunSummary, RunSummary]:
        disturbed = disturbed_unequally(candidate, base)
        own = with_twin(self._one(nodeid, candidate), candidate, base)
        return (
            replace(self._one(nodeid, base), disturbed=disturbed),
            replace(own, disturbed=disturbed),
        )

    def fresh(self, entry: Entry, benchmark: str) -> FreshPairs | Runs:
        """Return what was made to confirm a flag: pairs, or runs alone."""
        if entry.screened is None:
            return ()
        chosen = entry.usable(CONFIRMING_RUNS)
        if entry.twin is not None:
            return self.pairs(entry, benchmark, chosen)
        return self.of(entry.nodeid, benchmark, entry.runs, chosen)


def _halves(entry: Entry, *, screened: bool) -> tuple[Measured, Measured]:
    twin = entry.twin
    if screened:
        return entry.screened or {}, (twin.screened if twin else None) or {}
    return entry.runs, twin.runs if twin else {}


def base_of(pairs: FreshPairs, entry: Entry, benchmark: str) -> Baseline | None:
    """Turn the base halves of pairs into what a candidate is judged against."""
    twin = entry.twin
    measured = [
        run[benchmark]
        for run in (twin.all_runs.values() if twin else ())
        if benchmark in run
    ]
    if not pairs.baseline or not measured:
        return None
    session = Session(time="", commit=None, environment_digest="", runs=pairs.baseline)
    return Baseline(
        plan=measured[0].plan,
        metrics=definitions(measured),
        sessions=(session,),
        anchor=session,
        profile=next((one.profile for one in measured if one.profile), None),
    )


def count_fresh(fresh: FreshPairs | Runs) -> int:
    return len(fresh.candidate) if isinstance(fresh, FreshPairs) else len(fresh)
