"""`perfgate accept`: baselines from a report, without the machine that made it."""

import argparse
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pytest_perfgate import protocol
from pytest_perfgate.errors import BaselineError, ProtocolError, UsageError
from pytest_perfgate.gate.accepting import (
    FORCE,
    Accepted,
    Shelved,
    accept,
    budget_of,
    refuse_report,
)
from pytest_perfgate.gate.grammar import is_for
from pytest_perfgate.gate.update import sketch
from pytest_perfgate.measured import Measurement
from pytest_perfgate.model import (
    BaselineFile,
    BenchmarkResult,
    Environment,
    Reason,
    Report,
)
from pytest_perfgate.reports import update
from pytest_perfgate.reports.changes import Change, shown
from pytest_perfgate.store import (
    BaselineStore,
    benchmark_file_of,
    decode_measurement,
    environment_digest,
    load_report,
    merged,
)
from pytest_perfgate.units import parse_runs

REFUSED, NOTHING = 1, 5
_RUNS = "--perfgate-runs"
_USUAL_RUNS = "3:12"


def add(commands: Any) -> None:  # noqa: ANN401 (argparse keeps the type private)
    """Add the command to those of the parser."""
    parser = commands.add_parser(
        "accept", help="record what a report measured as baselines"
    )
    parser.add_argument("report", type=Path, help="report.json or a session's folder")
    parser.add_argument(
        "--select",
        action="append",
        default=[],
        metavar="BENCHMARK",
        help="only this one: an id, a file, or a pattern with * and ? (repeatable)",
    )
    parser.add_argument(
        "--baselines",
        type=Path,
        default=Path("baselines"),
        metavar="DIR",
        help="folder of the baselines (default: baselines)",
    )
    parser.add_argument(
        FORCE,
        action="store_true",
        help="store also what is inconclusive, or was judged by another baseline",
    )
    parser.set_defaults(run=_accept)


def _accept(given: argparse.Namespace) -> int:
    report = load_report(given.report)
    problem = refuse_report(report, fake=protocol.FAKE_VARIABLE in os.environ)
    if problem:
        raise UsageError(f"{given.report} cannot be accepted: {problem}; measure again")
    chosen = _selected(report, given.select)
    absent = _not_here(chosen)
    raw = _raw(given.report)
    session = _Session(report=report, raw=raw.measured, force=given.force)
    changes = list(_store(BaselineStore(given.baselines), session, chosen))
    runs = parse_runs(report.policy.get(_RUNS, _USUAL_RUNS).partition(" ")[0])[1]
    width = shutil.get_terminal_size().columns
    for line in update.render(shown(changes, budget_of, runs=runs), width=width):
        print(line.text)
    for note in (*absent, *raw.notes):
        print(f"note: {note}")
    return _close(changes, given.baselines)


def _close(changes: Sequence[Change], folder: Path) -> int:
    stored = sum(change.new is not None for change in changes)
    if stored:
        print(f"look at the change and commit it: git diff {folder}")
    if not changes:
        print("nothing was measured in this report")
        return NOTHING
    return 0 if stored == len(changes) else REFUSED


# what is meant ----------------------------------------------------------------


def _selected(report: Report, patterns: Sequence[str]) -> list[BenchmarkResult]:
    """Return the results to accept: those selected, less what was only skipped.

    Raises
    ------
    UsageError
        Where a pattern fits none.
    """
    for pattern in patterns:
        if not any(_fits(pattern, result) for result in report.results):
            near = f"; *{pattern}* would fit" if _would(pattern, report) else ""
            raise UsageError(f"--select={pattern!r} fits no benchmark of it{near}")
    return [
        result
        for result in report.results
        if (not patterns or any(_fits(pattern, result) for pattern in patterns))
        and result.verdict.reason is not Reason.SKIPPED
    ]


def _fits(pattern: str, result: BenchmarkResult) -> bool:
    name = result.benchmark
    return is_for(pattern, name) or pattern in {
        benchmark_file_of(name),
        result.nodeid,
        result.nodeid.partition("[")[0],
    }


def _would(pattern: str, report: Report) -> bool:
    return any(is_for(f"*{pattern}*", result.benchmark) for result in report.results)


def _not_here(results: Iterable[BenchmarkResult]) -> tuple[str, ...]:
    """Say which benchmark files this checkout does not have.

    Raises
    ------
    UsageError
        Where it has none of them: ids are relative to pytest's rootdir.
    """
    files = dict.fromkeys(benchmark_file_of(result.benchmark) for result in results)
    absent = [name for name in files if not Path(name).is_file()]
    if absent and len(absent) == len(files):
        raise UsageError(
            f"there is no {absent[0]} here: run this in the checkout that was measured,"
            " in the folder that is pytest's rootdir there"
        )
    return tuple(f"there is no {name} in this checkout" for name in absent)


# what was measured ------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _Raw:
    """The raw measurements of a session, where its folder is at hand."""

    measured: Mapping[str, Sequence[Measurement]]
    notes: tuple[str, ...] = ()


def _raw(path: Path) -> _Raw:
    folder = (path if path.is_dir() else path.parent) / "runs"
    found: dict[str, list[Measurement]] = {}
    notes = []
    for file in sorted(folder.glob("*.records.jsonl")):
        try:
            for one in _measurements(file):
                found.setdefault(one.benchmark, []).append(one)
        except (ProtocolError, BaselineError, OSError) as error:
            notes.append(f"no distributions from {file}: {error}")
    return _Raw(measured=found, notes=tuple(notes))


def _measurements(file: Path) -> Iterator[Measurement]:
    for record in protocol.RecordReader(file).read():
        if record["kind"] == "measured":
            measurement = decode_measurement(record["measurement"])
            if not measurement.health.disturbed:
                yield measurement


# storing ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _Session:
    """A report and what goes with it."""

    report: Report
    raw: Mapping[str, Sequence[Measurement]]
    force: bool

    def environment(self, result: BenchmarkResult) -> Environment | None:
        return result.environment or self.report.environment

    def change(self, result: BenchmarkResult, file: BaselineFile | None) -> Change:
        """Decide about one benchmark by what is stored."""
        stored = file.benchmarks.get(result.benchmark) if file else None
        shelved = None
        if file is not None and stored is not None:
            where = stored.environment or file.environment
            shelved = Shelved(baseline=stored, environment=where)
        environment = self.environment(result)
        decision = accept(
            Accepted(
                result=result,
                report=self.report,
                environment_digest=environment_digest(environment)
                if environment
                else "",
                sketch=dict(sketch(self.raw.get(result.benchmark, ()))),
                force=self.force,
            ),
            shelved,
        )
        return Change(
            result=replace(result, verdict=decision.verdict),
            old=stored,
            new=decision.baseline,
        )


def _store(
    store: BaselineStore, session: _Session, results: Iterable[BenchmarkResult]
) -> Iterator[Change]:
    """Write each file once, atomically and under its lock.

    Raises
    ------
    StoreUnreachable
        Where the disk refuses; each file is then as it was, or complete.
    """
    groups: dict[tuple[str, str], list[BenchmarkResult]] = {}
    for result in results:
        environment = session.environment(result)
        if environment is None:
            yield session.change(result, None)
            continue
        place = environment.key, benchmark_file_of(result.benchmark)
        groups.setdefault(place, []).append(result)
    for place, group in groups.items():
        yield from _store_file(store, session, place, group)


def _store_file(
    store: BaselineStore,
    session: _Session,
    place: tuple[str, str],
    results: Sequence[BenchmarkResult],
) -> Sequence[Change]:
    changes: list[Change] = []

    def decide(file: BaselineFile | None) -> list[Change]:
        return [session.change(result, file) for result in results]

    def write(file: BaselineFile | None) -> BaselineFile:
        changes[:] = decide(file)  # again: another process may have been faster
        for change in changes:
            environment = session.environment(change.result)
            if change.new is not None and environment is not None:
                new = {change.result.benchmark: change.new}
                file = merged(file, new, environment=environment)
        if file is None:
            raise UsageError(f"{place[1]} was removed meanwhile; try again")
        return file

    changes = decide(store.load(*place))
    if any(change.new is not None for change in changes):
        store.update(*place, write)
    return changes
