"""The adaptive loop: runs until every benchmark is decided, or time is up.

It measures nothing and knows no pytest: workers are started through a door,
and what they bring is booked in the ledger.
"""

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pytest_perfgate.campaign.booking import (
    book_half,
    book_left,
    book_loss,
    disqualify,
)
from pytest_perfgate.campaign.doors import Doors, Order, PairedLauncher
from pytest_perfgate.campaign.hub import Side
from pytest_perfgate.campaign.ledger import Entry, Ledger
from pytest_perfgate.campaign.selection import shuffled
from pytest_perfgate.campaign.twins import held_by_twin
from pytest_perfgate.campaign.worker_process import WorkerEnd
from pytest_perfgate.protocol import Record

CONFIRMING_RUNS = 5
RECORDING_RUNS = 10
RECOVERY_S = 5.0
"""What a throttled or busy device is given first; twice as much each time after."""
_FRUITLESS = 2
"""So many workers in a row that open no benchmark end the campaign."""


@dataclass(slots=True, kw_only=True)
class Cost:
    """What a campaign cost."""

    runs: int = 0
    workers: int = 0
    seconds: float = 0.0
    waited_s: float = 0.0
    """For a device that had to recover."""

    @property
    def told(self) -> dict[str, float]:
        """What a report says of it."""
        told = {
            "runs": self.runs,
            "workers": self.workers,
            "seconds": round(self.seconds, 3),
        }
        waited = round(self.waited_s, 3)
        return told | ({"waited_s": waited} if self.waited_s else {})


class Campaign:
    """Runs made until every benchmark is decided.

    Parameters
    ----------
    ledger : where records are booked
    seed : of the order of benchmarks; run r uses seed + r
    max_total_s : for the whole campaign, or None
    """

    def __init__(
        self,
        ledger: Ledger,
        doors: Doors,
        *,
        seed: int,
        max_total_s: float | None,
    ) -> None:
        self.ledger = ledger
        self.cost = Cost()
        self.out_of_time = False
        self._launcher = doors.launcher
        self._judge = doors.judge
        self._progress = doors.progress
        self._clock = doors.clock
        self._sleep = doors.sleep
        self._seed = seed
        self._begun = doors.clock()
        self._until = None if max_total_s is None else self._begun + max_total_s
        self._run = 0
        self._pass_s: list[float] = []
        self._pairs: PairedLauncher | None = None

    # -- the plan

    def measure(self, looks: Sequence[int]) -> None:
        """Make runs up to each planned look, for what is undecided then."""
        undecided = list(self.ledger.entries.values())
        for target in looks:
            self._fill(undecided, target)
            last = target == looks[-1] or self.out_of_time
            undecided = [
                entry
                for entry in undecided
                if not self._judge.decided(entry, target=target, last=last)
            ]
            if not undecided or last:
                break
        self._close()

    def pair_up(self, launcher: PairedLauncher, entries: Sequence[Entry]) -> None:
        """From now on make runs in pairs with the base tree."""
        self._pairs = launcher
        self.ledger.pair_up(entries)

    def confirm(self, pairs: Callable[[], PairedLauncher] | None = None) -> None:
        """Make fresh runs for what is flagged, after all screening.

        Parameters
        ----------
        pairs : opens the base tree, where fresh runs shall be halves of pairs
            and those before were not
        """
        flagged = [e for e in self.ledger.entries.values() if self._judge.flagged(e)]
        if flagged and pairs is not None:
            self.pair_up(pairs(), flagged)
        for entry in flagged:
            entry.begin_confirmation()
        self._fill(flagged, CONFIRMING_RUNS)
        for entry in flagged:
            self._judge.confirmed(entry)
        self._close()

    def record(self) -> None:
        """Make the runs of one session of baselines."""
        entries = list(self.ledger.entries.values())
        self._fill(entries, RECORDING_RUNS)
        for entry in entries:
            self._judge.decided(entry, target=RECORDING_RUNS, last=True)
        self._close()

    def _close(self) -> None:
        self.cost.seconds = self._clock() - self._begun
        self._progress.done()

    # -- runs

    def _fill(self, entries: Sequence[Entry], target: int) -> None:
        """Make runs, round-robin, until each entry has `target` usable ones."""
        while not self.out_of_time:
            wanting = [entry for entry in entries if entry.wants(target)]
            if not wanting:
                return
            self._let_it_recover(wanting)
            self._announce(wanting, target)
            begun = self._clock()
            self._make_run(wanting)
            self._pass_s.append((self._clock() - begun) / len(wanting))

    def _let_it_recover(self, wanting: Sequence[Entry]) -> None:
        """Wait longer after each run in a row that the device made worthless."""
        worst = max(entry.unfit_streak for entry in wanting)
        if not worst:
            return
        pause_s = RECOVERY_S * 2 ** (worst - 1)
        if self._until is not None:
            pause_s = max(0.0, min(pause_s, self._until - self._clock()))
        self._sleep(pause_s)
        self.cost.waited_s += pause_s
        if self._until is not None and self._clock() >= self._until:
            self.out_of_time = True

    def _announce(self, wanting: Sequence[Entry], target: int) -> None:
        done = min(len(entry.sound_runs) for entry in wanting)
        left_s = None
        if self._pass_s:
            mean = sum(self._pass_s) / len(self._pass_s)
            left_s = mean * sum(target - len(e.sound_runs) for e in wanting)
        self._progress.run_begins(
            done + 1,
            target,
            benchmarks=len(self.ledger.entries),
            undecided=len(wanting),
            left_s=left_s,
        )

    def _make_run(self, wanting: Sequence[Entry]) -> None:
        """Make one run: isolated benchmarks in processes of their own."""
        self._run += 1
        self.cost.runs += 1
        order = shuffled([entry.nodeid for entry in wanting], self._seed + self._run)
        isolated = {entry.nodeid for entry in wanting if entry.settings.isolate}
        together = [nodeid for nodeid in order if nodeid not in isolated]
        for group in (together, *([nodeid] for nodeid in order if nodeid in isolated)):
            if self._pairs is None:
                self._pass_over(list(group))
            elif group:
                self._pass_over_both(list(group), self._pairs)

    def _pass_over(self, wanted: list[str]) -> None:
        """Start workers until each of the wanted has had its turn.

        A worker that dies costs only the benchmark it was in.
        """
        fruitless = 0
        while wanted and not self.out_of_time:
            closed: set[str] = set()
            end = self._start(wanted, closed)
            lost = end.open_item
            if lost is not None and not end.out_of_time:
                book_loss(self.ledger, lost, end, run=self._run)
                closed.add(lost)
            fruitless = 0 if closed else fruitless + 1
            wanted = [nodeid for nodeid in wanted if nodeid not in closed]
            if wanted and fruitless >= (1 if end.finished else _FRUITLESS):
                book_left(self.ledger, wanted, end, run=self._run)
                return

    def _pass_over_both(self, wanted: list[str], launcher: PairedLauncher) -> None:
        """Make one pair: whatever one half does, the other makes all of its own.

        What a half that died never came to has another pair to come.
        """
        begun: dict[Side, set[str]] = {side: set() for side in Side}
        ends = self._start_both(wanted, begun, launcher)
        for side, end in ends.items():
            book_half(self._of(side), wanted, end, begun=begun[side], run=self._run)
        why = self._judge.base_problem()
        if self.ledger.base is not None and why:
            disqualify(self.ledger.base, why)
        text = held_by_twin(self.ledger, self._run) if launcher.in_turns else ""
        if text:
            launcher.in_turns = False
            self.ledger.note(
                f"one tree's set-up failed while the other was alive ({text}): "
                "whole runs alternate from here on, as with --perfgate-interleave run"
            )

    def _of(self, side: Side) -> Ledger:
        base = self.ledger.base
        return base if side is Side.BASE and base is not None else self.ledger

    def _start_both(
        self,
        wanted: Sequence[str],
        begun: Mapping[Side, set[str]],
        launcher: PairedLauncher,
    ) -> Mapping[Side, WorkerEnd]:
        def book(side: Side, record: Record) -> None:
            if record["kind"] == "open":
                begun[side].add(record["nodeid"])
                self._progress.benchmark_begins(record["nodeid"])
            self._of(side).take(record, run=self._run)

        self.cost.workers += 2
        with self._timed():
            return launcher(self._order(wanted), on_record=book, until=self._until)

    def _start(self, wanted: Sequence[str], closed: set[str]) -> WorkerEnd:
        def book(record: Record) -> None:
            if record["kind"] == "open":
                self._progress.benchmark_begins(record["nodeid"])
            if record["kind"] == "close":
                closed.add(record["nodeid"])
            self.ledger.take(record, run=self._run)

        self.cost.workers += 1
        with self._timed():
            return self._launcher(
                self._order(wanted), on_record=book, until=self._until
            )

    @contextlib.contextmanager
    def _timed(self) -> Iterator[None]:
        try:
            yield
        finally:  # an interrupted session has its cost too
            self.cost.seconds = self._clock() - self._begun
        if self._until is not None and self._clock() >= self._until:
            self.out_of_time = True

    def _order(self, wanted: Sequence[str]) -> Order:
        plans = {
            b: plan
            for nodeid in wanted
            for b, plan in self._judge.plans(nodeid).items()
        }
        calibrated = {
            benchmark: plan
            for nodeid in wanted
            for benchmark in self.ledger.entries[nodeid].benchmarks
            if (plan := self.ledger.plan_of(benchmark, nodeid))
            and benchmark not in plans
        }
        return Order(
            run=self._run,
            wanted=tuple(wanted),
            seed=self._seed + self._run,
            alone=len(wanted) < len(self.ledger.entries),
            plans=plans,
            iterations={name: plan.iterations for name, plan in calibrated.items()},
            inner_loops={name: plan.inner_loop for name, plan in calibrated.items()},
        )
