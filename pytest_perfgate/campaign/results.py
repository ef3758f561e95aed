"""What a report says of each benchmark, measured or not."""

from collections.abc import Iterator, Sequence

from pytest_perfgate.campaign.ledger import (
    NOT_COLLECTED,
    Entry,
    Failure,
    Loss,
    Unfit,
)
from pytest_perfgate.campaign.missing import missing, unreadable
from pytest_perfgate.campaign.shelf import Shelf
from pytest_perfgate.campaign.twins import base_trouble
from pytest_perfgate.campaign.unused import discarded
from pytest_perfgate.campaign.verdicts import Verdicts
from pytest_perfgate.model import BenchmarkResult, Outcome, Reason, Verdict


def results_of(
    entry: Entry, verdicts: Verdicts, shelf: Shelf, *, out_of_time: bool
) -> list[BenchmarkResult]:
    """Return an item's results: at least one, never silently none."""
    unmeasured = _unmeasured(entry, shelf)
    if unmeasured is not None:
        return unmeasured
    trouble = base_trouble(entry) or verdicts.reference.unproven()
    if trouble and not entry.screened:
        return [
            _result(entry, benchmark, verdicts.reference.without_base(entry, trouble))
            for benchmark in entry.benchmarks or [entry.nodeid]
        ]
    if not entry.runs and not entry.screened:
        return [_result(entry, entry.nodeid, _nothing(entry, out_of_time=out_of_time))]
    found = [
        verdicts.result(entry, benchmark, out_of_time=out_of_time)
        for benchmark in entry.benchmarks
    ]
    return found + list(_not_measured_any_more(entry, shelf))


def _unmeasured(entry: Entry, shelf: Shelf) -> list[BenchmarkResult] | None:
    """Return what ends a benchmark whatever its numbers say."""
    problem = shelf.problem(entry.nodeid)
    if problem is not None:
        return [unreadable(entry.nodeid, problem)]
    if entry.failures:
        return [_failed(entry, entry.failures)]
    if entry.skipped_runs:
        return _skipped(entry, shelf)
    if entry.tracer:
        detail = f"{entry.tracer} is active: it slows what is measured"
        return [_error(entry, Reason.TRACED, detail=detail)]
    return _given_up(entry)


def _given_up(entry: Entry) -> list[BenchmarkResult] | None:
    """Return what ends a benchmark whose runs went wrong too often."""
    if entry.lost_for_good:
        return [_lost(entry, entry.losses)]
    if entry.unfit_for_good:
        return [_unfit(entry, entry.unfit_for_good)]
    return None


def _result(
    entry: Entry, benchmark: str, verdict: Verdict, *, text: str = ""
) -> BenchmarkResult:
    return BenchmarkResult(
        benchmark=benchmark,
        nodeid=entry.nodeid,
        verdict=verdict,
        text=text,
        discarded=discarded(entry),
    )


def _error(
    entry: Entry, reason: Reason, *, detail: str = "", text: str = ""
) -> BenchmarkResult:
    verdict = Verdict(outcome=Outcome.ERROR, reason=reason, detail=detail)
    return _result(entry, entry.nodeid, verdict, text=text)


def _failed(entry: Entry, failures: Sequence[Failure]) -> BenchmarkResult:
    runs = len({failure.run for failure in failures})
    first = failures[0]
    detail = f"{first.when} failed in {runs} of {len(entry.reports)} runs"
    return _error(entry, first.reason, detail=detail, text=first.text)


def _skipped(entry: Entry, shelf: Shelf) -> list[BenchmarkResult]:
    """Tell a skip of what the baseline holds from any other: it is no pass."""
    stored = shelf.of_item(entry.nodeid)
    if not stored:
        verdict = Verdict(outcome=Outcome.SKIPPED, reason=Reason.SKIPPED)
        return [_result(entry, entry.nodeid, verdict)]
    return [
        missing(benchmark, Reason.SKIPPED_NOW, nodeid=entry.nodeid)
        for benchmark in stored
    ]


def _lost(entry: Entry, losses: Sequence[Loss]) -> BenchmarkResult:
    last = losses[-1]
    if last.how == NOT_COLLECTED:
        detail = f"{NOT_COLLECTED}: are its parameters the same in every process?"
        verdict = Verdict(
            outcome=Outcome.INVALID, reason=Reason.WORKER_LOST, detail=detail
        )
        return _result(entry, entry.nodeid, verdict)
    detail = f"{len(losses)} runs: {', '.join(loss.how for loss in losses)}"
    if last.timed_out:
        verdict = Verdict(
            outcome=Outcome.INVALID, reason=Reason.TIMED_OUT, detail=detail
        )
    else:
        verdict = Verdict(outcome=Outcome.ERROR, reason=Reason.CRASHED, detail=detail)
    return _result(entry, entry.nodeid, verdict, text=last.tail)


def _unfit(entry: Entry, unfit: Unfit) -> BenchmarkResult:
    told = "; ".join(unfit.evidence)
    if entry.all_unfit:
        told = f"{len(entry.all_unfit)} runs not used, the last: {told}"
    verdict = Verdict(outcome=Outcome.INVALID, reason=unfit.reason, detail=told)
    return _result(entry, entry.nodeid, verdict)


def _nothing(entry: Entry, *, out_of_time: bool) -> Verdict:
    if entry.all_unfit:
        last = entry.all_unfit[-1]
        detail = f"{len(entry.all_unfit)} runs not used; {'; '.join(last.evidence)}"
        return Verdict(outcome=Outcome.INVALID, reason=last.reason, detail=detail)
    if entry.losses:
        detail = ", ".join(loss.how for loss in entry.losses)
        return Verdict(
            outcome=Outcome.INVALID, reason=Reason.WORKER_LOST, detail=detail
        )
    if out_of_time:
        return Verdict(
            outcome=Outcome.INCONCLUSIVE,
            reason=Reason.OUT_OF_TIME,
            detail="no run was made",
        )
    return Verdict(
        outcome=Outcome.INVALID,
        reason=Reason.WORKER_LOST,
        detail="no worker came to it; was it collected there?",
    )


def _not_measured_any_more(entry: Entry, shelf: Shelf) -> Iterator[BenchmarkResult]:
    """Yield what an item stored under a name it measures no more."""
    for benchmark in shelf.of_item(entry.nodeid):
        if benchmark not in entry.benchmarks:
            yield missing(benchmark, Reason.GONE, nodeid=entry.nodeid)
