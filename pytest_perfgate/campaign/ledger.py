"""What is known of each benchmark, run by run; filled from workers' records."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pytest_perfgate.gate.twins import disturbed_unequally
from pytest_perfgate.measured import Measurement, Plan
from pytest_perfgate.model import Environment, Reason
from pytest_perfgate.protocol import Record
from pytest_perfgate.settings import ItemSettings
from pytest_perfgate.store import decode_environment, decode_measurement

REPEATS = 3
"""How many disturbed or lost runs of a benchmark are made again."""
UNFIT_REPEATS = 3
"""How many runs in a row that the device made worthless are made again."""
SAME_LOSSES = 2
"""The same crash or hang so many times ends a benchmark."""
ENDED_SESSION = "ended its worker's session"
NOT_COLLECTED = "not collected by the worker"
XPASS_STRICT = "[XPASS(strict)]"
NOT_RUN = "[NOTRUN]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A body, a set-up or a tear-down that raised in one run."""

    run: int
    when: str
    reason: Reason
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """A run that ended with its worker: a crash, a kill or a hang."""

    run: int
    how: str
    timed_out: bool
    tail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Unfit:
    """A run that is not used at all, for what the device told of itself."""

    run: int
    reason: Reason
    evidence: tuple[str, ...]

    def __str__(self) -> str:
        return "; ".join((self.reason, *self.evidence))


@dataclass(slots=True, kw_only=True)
class Entry:
    """One item: what its runs brought."""

    nodeid: str
    settings: ItemSettings
    runs: dict[int, dict[str, Measurement]] = field(default_factory=dict)
    """Complete runs: by run number, then by benchmark id."""
    reports: dict[int, list[dict[str, Any]]] = field(default_factory=dict)
    """pytest's reports in the form in which they travel, by run."""
    failures: list[Failure] = field(default_factory=list)
    losses: list[Loss] = field(default_factory=list)
    unfit: list[Unfit] = field(default_factory=list)
    unfit_in_a_row: int = 0
    refusal: Unfit | None = None
    """Why the machine is not fit to measure it at all."""
    skipped_runs: list[int] = field(default_factory=list)
    tracer: str | None = None
    unreadable: bool = False
    """Its baseline cannot be read, so measuring it would be for nothing."""
    pending: dict[str, Measurement] = field(default_factory=dict)
    screened: dict[int, dict[str, Measurement]] | None = None
    """The runs that raised a flag, while fresh ones are made to confirm it."""
    unusable: str = ""
    """Why nothing that was measured of it counts: a base tree that was not."""
    twin: "Entry | None" = None
    """The same item in the base tree, while runs are made in pairs."""
    _counted: int = 0

    def begin_confirmation(self) -> None:
        """Put the screening runs aside; from here on runs are fresh ones."""
        self.screened, self.runs = self.runs, {}
        self._counted = len(self.reports) + len(self.losses)
        if self.twin is not None:
            self.twin.begin_confirmation()

    @property
    def attempts(self) -> int:
        own = len(self.reports) + len(self.losses) - self._counted
        return max(own, self.twin.attempts) if self.twin else own

    @property
    def complete_runs(self) -> dict[int, dict[str, Measurement]]:
        """Those that can be judged: of a pair, both halves were made."""
        if self.twin is None:
            return self.runs
        return {n: run for n, run in self.runs.items() if n in self.twin.runs}

    def _was_disturbed(self, number: int) -> bool:
        own = self.runs[number]
        if self.twin is None:
            return _disturbed(own)
        theirs = self.twin.runs[number]
        return any(
            disturbed_unequally(own[benchmark], theirs[benchmark])
            for benchmark in own.keys() & theirs.keys()
        )

    @property
    def sound_runs(self) -> list[int]:
        """Runs, or pairs, in which no benchmark of this item was disturbed."""
        return [n for n in self.complete_runs if not self._was_disturbed(n)]

    @property
    def disturbed_runs(self) -> list[int]:
        return [n for n in self.complete_runs if self._was_disturbed(n)]

    @property
    def unfit_for_good(self) -> Unfit | None:
        """Return why no run of it can be used, where waiting did not help."""
        for half in (self, self.twin):
            if half is not None and half.unfit_in_a_row > UNFIT_REPEATS:
                return half.unfit[-1]
        return self.refusal

    @property
    def unfit_streak(self) -> int:
        """Count the newest runs, or halves of pairs, that the device spoilt."""
        theirs = self.twin.unfit_in_a_row if self.twin else 0
        return max(self.unfit_in_a_row, theirs)

    @property
    def all_unfit(self) -> tuple[Unfit, ...]:
        """Return every run that the device spoilt, of a pair's base as well."""
        return (*self.unfit, *(self.twin.unfit if self.twin else ()))

    @property
    def lost_for_good(self) -> bool:
        """Whether it died the same way often enough to expect it again."""
        ways = [loss.how for loss in self.losses]
        return any(ways.count(way) >= SAME_LOSSES for way in ways)

    @property
    def finished(self) -> bool:
        """Whether no further run can tell more."""
        return self.finished_itself or (
            self.twin is not None and self.twin.finished_itself
        )

    @property
    def finished_itself(self) -> bool:
        """Whether this half of it is, whatever its twin did."""
        return bool(
            self.unreadable
            or self.unusable
            or self.failures
            or self.skipped_runs
            or self.tracer
            or self.lost_for_good
            or self.unfit_for_good
        )

    def wants(self, target: int) -> bool:
        """Whether another run is needed to have `target` sound ones."""
        if self.finished or len(self.sound_runs) >= target:
            return False
        return self.attempts < target + REPEATS

    def usable(self, target: int) -> list[int]:
        """Return the numbers of the runs to judge by, sound ones first.

        Disturbed runs only make up the number where repeating did not help;
        they carry their mark with them.
        """
        sound = self.sound_runs[:target]
        return sorted(sound + self.disturbed_runs[: target - len(sound)])

    @property
    def benchmarks(self) -> list[str]:
        """The ids measured in any run, in the order first seen."""
        return list(dict.fromkeys(b for run in self.all_runs.values() for b in run))

    @property
    def all_runs(self) -> dict[int, dict[str, Measurement]]:
        """Those put aside when a confirmation began, and those made since."""
        return {**(self.screened or {}), **self.runs}


def _disturbed(run: Mapping[str, Measurement]) -> bool:
    return any(measurement.health.disturbed for measurement in run.values())


class Ledger:
    """All entries, and what a session learns on the way."""

    def __init__(self, settings: list[ItemSettings], *, is_base: bool = False) -> None:
        self.is_base = is_base
        self.entries = {
            own.nodeid: Entry(nodeid=own.nodeid, settings=own) for own in settings
        }
        self.environment: Environment | None = None
        self.notes: dict[str, None] = {}
        self.warnings: list[Record] = []
        self.collect_errors: dict[str, str] = {}
        self.absent: set[str] = set()
        self.proof: Mapping[str, Any] | None = None
        """What the newest worker says of where its modules came from."""
        self.base: Ledger | None = None
        """Of the base tree, once runs are made in pairs."""
        self._run = 0

    def pair_up(self, entries: Sequence[Entry]) -> None:
        """Book the base tree's runs of these beside them, from now on."""
        self.base = Ledger([entry.settings for entry in entries], is_base=True)
        for entry in entries:
            entry.twin = self.base.entries[entry.nodeid]

    def take(self, record: Record, *, run: int) -> None:
        """Book one record of a worker that makes run number `run`."""
        self._run = run
        handler = getattr(self, f"_take_{record['kind'].replace('-', '_')}", None)
        if handler is not None:
            handler(record)

    def lose(self, nodeid: str, loss: Loss) -> None:
        """Book a run that its worker did not survive."""
        entry = self.entries[nodeid]
        entry.losses.append(loss)
        entry.reports.pop(loss.run, None)
        entry.pending.clear()

    def _take_open(self, record: Record) -> None:
        entry = self.entries[record["nodeid"]]
        entry.pending.clear()
        entry.reports[self._run] = []

    def _take_measured(self, record: Record) -> None:
        measurement = decode_measurement(record["measurement"])
        self.entries[measurement.nodeid].pending[measurement.benchmark] = measurement

    def _take_report(self, record: Record) -> None:
        entry = self.entries[record["nodeid"]]
        report = record["report"]
        entry.reports[self._run].append(report)
        if failed_as_expected(report):
            entry.failures.append(_failure(report, self._run))
        elif report["outcome"] == "skipped":
            entry.skipped_runs.append(self._run)
        elif report["outcome"] == "failed" and not passed_strictly(report):
            entry.failures.append(_failure(report, self._run))

    def _take_close(self, record: Record) -> None:
        entry = self.entries[record["nodeid"]]
        reports = entry.reports[self._run]
        if not reports or reports[-1]["when"] != "teardown":
            # pytest.exit() and the like: no report tells of it
            loss = Loss(run=self._run, how=ENDED_SESSION, timed_out=False, tail="")
            self.lose(entry.nodeid, loss)
            return
        failed = any(failure.run == self._run for failure in entry.failures)
        # timings of a body that raised are neither compared nor kept
        if entry.pending and not failed and self._run not in entry.skipped_runs:
            self._keep(entry)
        entry.pending.clear()

    def _keep(self, entry: Entry) -> None:
        """Keep what a run brought, unless the device made it worthless."""
        healths = [measured.health for measured in entry.pending.values()]
        reason = next((health.unfit for health in healths if health.unfit), None)
        if reason is None:
            entry.runs[self._run] = dict(entry.pending)
            entry.unfit_in_a_row = 0
            return
        said = dict.fromkeys(e for health in healths for e in health.evidence)
        unfit = Unfit(run=self._run, reason=reason, evidence=tuple(said))
        entry.unfit.append(unfit)
        entry.unfit_in_a_row += 1

    def refuse(self, reason: Reason, evidence: tuple[str, ...]) -> None:
        """Measure nothing: the machine is not fit for it."""
        for entry in self.entries.values():
            entry.refusal = Unfit(run=0, reason=reason, evidence=evidence)

    def _take_traced(self, record: Record) -> None:
        self.entries[record["nodeid"]].tracer = record["tracer"]

    def _take_environment(self, record: Record) -> None:
        self.environment = self.environment or decode_environment(record["environment"])

    def note(self, text: str) -> None:
        """Keep something to be told at the end, once."""
        self.notes[text] = None

    def _take_note(self, record: Record) -> None:
        self.note(record["text"])

    def _take_proof(self, record: Record) -> None:
        self.proof = record["proof"]

    def _take_warning(self, record: Record) -> None:
        if self._run == 1:  # later runs repeat them
            self.warnings.append(record)

    def _take_collect_error(self, record: Record) -> None:
        self.collect_errors[record["nodeid"]] = record["text"]

    def _take_collected(self, record: Record) -> None:
        self.absent.update(record["absent"])

    def plan_of(self, benchmark: str, nodeid: str) -> Plan | None:
        """Return the plan by which a benchmark was measured in its first run."""
        for run in self.entries[nodeid].all_runs.values():
            if benchmark in run:
                return run[benchmark].plan
        return None


def failed_as_expected(report: dict[str, Any]) -> bool:
    """Whether an xfail's body ran and failed, which pytest reports as a skip."""
    expected = report.get("wasxfail")
    return (
        report["outcome"] == "skipped"
        and expected is not None
        and NOT_RUN not in expected
    )


def passed_strictly(report: dict[str, Any]) -> bool:
    """Whether a strict xfail's body passed, which pytest reports as a failure."""
    return str(report.get("longrepr")).startswith(XPASS_STRICT)


def _failure(report: dict[str, Any], run: int) -> Failure:
    properties = dict(report.get("user_properties", ()))
    reason = Reason(properties.get("perfgate_failure", Reason.BODY_RAISED))
    return Failure(run=run, when=report["when"], reason=reason, text=_text(report))


def _text(report: dict[str, Any]) -> str:
    """Return the last line of what a report says went wrong."""
    longrepr = report.get("longrepr")
    if isinstance(longrepr, dict):
        return (
            str(longrepr["reprcrash"]["message"]) if longrepr.get("reprcrash") else ""
        )
    return str(longrepr or "")
