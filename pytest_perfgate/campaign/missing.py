"""What the baselines hold and the suite has no more."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from pathlib import Path

from pytest_perfgate.campaign.selection import collected_whole, holds_benchmarks
from pytest_perfgate.campaign.shelf import Shelf, items_of
from pytest_perfgate.errors import BaselineError, SchemaTooNew
from pytest_perfgate.model import BenchmarkResult, Outcome, Reason, Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Collected:
    """What pytest collected, before `-k` and its like took something away."""

    benchmarks: Mapping[str, AbstractSet[str]]
    """By benchmark file: the node ids of its benchmarks."""
    files: AbstractSet[str]
    """Test files that were collected, with benchmarks or without."""
    skipped: AbstractSet[str]
    """Those that skipped themselves as a whole."""
    arguments: tuple[str, ...]
    root: Path
    start: Path
    partial: bool
    """Files were collected in part, as by `--lf`."""


def whole_files(
    collected: Collected, stored: Iterable[str], fixtures: Collection[str]
) -> dict[str, AbstractSet[str]]:
    """Return the benchmark files that can be judged as a whole, with their node ids.

    A stored file that is gone from the disk, or holds no benchmark any more,
    has none; one that is there and was not collected (by `--ignore`, say)
    cannot be judged.
    """
    if collected.partial:
        return {}
    covered = collected_whole(
        {*collected.benchmarks, *stored},
        collected.arguments,
        root=collected.root,
        start=collected.start,
    )
    found: dict[str, AbstractSet[str]] = {}
    for file in sorted(covered):
        path = collected.root / file
        if file in collected.benchmarks:
            found[file] = collected.benchmarks[file]
        elif (
            file in collected.files
            or not path.exists()
            or not holds_benchmarks(path, fixtures)
        ):
            found[file] = frozenset()
    return found


def gone(
    shelf: Shelf,
    collected: Mapping[str, AbstractSet[str]],
    *,
    skipped: Collection[str],
) -> Iterator[BenchmarkResult]:
    """Yield a result for every stored benchmark that no collected test belongs to.

    What is stored for a file without tests may be unreadable: that is told too,
    for nobody else does.

    Parameters
    ----------
    collected : by benchmark file that was collected whole: the node ids in it,
        before `-k` and its like
    skipped : the files that skipped themselves as a whole
    """
    for file, nodeids in collected.items():
        problem = shelf.problem(file)
        if problem is not None and not nodeids:
            yield unreadable(file, problem)
        for benchmark in shelf.stored(file):
            if nodeids.isdisjoint(items_of(benchmark)):
                reason = Reason.SKIPPED_NOW if file in skipped else Reason.GONE
                yield missing(benchmark, reason)


def unreadable(benchmark: str, problem: BaselineError) -> BenchmarkResult:
    newer = isinstance(problem, SchemaTooNew)
    reason = Reason.SCHEMA_TOO_NEW if newer else Reason.BASELINE_CORRUPT
    verdict = Verdict(outcome=Outcome.ERROR, reason=reason)
    return BenchmarkResult(
        benchmark=benchmark, nodeid=benchmark, verdict=verdict, text=str(problem)
    )


def missing(
    benchmark: str, reason: Reason, *, nodeid: str | None = None
) -> BenchmarkResult:
    verdict = Verdict(outcome=Outcome.MISSING, reason=reason)
    return BenchmarkResult(
        benchmark=benchmark, nodeid=nodeid or benchmark, verdict=verdict
    )
