"""Turn an order into two workers, one for each tree."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

from pytest_perfgate.campaign.doors import Order
from pytest_perfgate.campaign.foresight import CONTEXT_BYTES
from pytest_perfgate.campaign.hub import Hub, Side
from pytest_perfgate.campaign.launch import Half, Tree, WorkerLauncher
from pytest_perfgate.campaign.pair_process import OnRecord, run_pair
from pytest_perfgate.campaign.worker_process import WorkerEnd, run_worker
from pytest_perfgate.measure.context import Agreement
from pytest_perfgate.measured import Plan
from pytest_perfgate.protocol import Record
from pytest_perfgate.store import decode_measurement
from pytest_perfgate.units import format_value

_SHARE = 0.9
"""Of the device's memory that two processes may plan to fill."""


class _Needs:
    """What each side needed of the GPU's memory in a run of its own."""

    def __init__(self) -> None:
        self._reserved = dict.fromkeys(Side, 0.0)
        self._total = 0.0

    def take(self, side: Side, record: Record) -> None:
        if record["kind"] == "measured":
            found = decode_measurement(record["measurement"])
            for series in found.samples:
                if series.metric.name == "reserved_memory":
                    peak = max(series.values)
                    self._reserved[side] = max(self._reserved[side], peak)
        if record["kind"] == "environment":
            gib = record["environment"]["hardware"].get("gpu_memory_gib")
            self._total = float(gib or 0.0) * 2**30

    def why_not_together(self) -> str:
        """Say why both cannot be alive together; empty where they can."""
        needed = sum(self._reserved.values()) + 2 * CONTEXT_BYTES
        if not self._total or needed <= _SHARE * self._total:
            return ""
        return (
            f"both trees together need about {format_value(needed, 'B')} of the GPU's "
            f"{format_value(self._total, 'B')}: whole runs alternate, as with "
            "--perfgate-interleave run"
        )


class PairLauncher:
    """Starts a worker of the base tree and one of the candidate.

    Both are alive together and take turns, or whole runs alternate. Who goes
    first changes from run to run.
    """

    def __init__(
        self,
        launcher: WorkerLauncher,
        tree: Tree,
        *,
        in_turns: bool,
        note: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Know how to start both.

        Parameters
        ----------
        in_turns : both are alive together; on a GPU from the second pair on, if
            the first one showed that both fit into its memory
        note : takes what a person should know
        """
        self._launcher = launcher
        self._tree = tree
        self.in_turns = in_turns
        self._note = note
        self._needs = _Needs() if in_turns and launcher.on_gpu else None
        self._agreements: dict[str, Agreement] = {}
        self._plans: dict[str, Plan] = {}

    def __call__(
        self, order: Order, *, on_record: OnRecord, until: float | None
    ) -> Mapping[Side, WorkerEnd]:
        """Run both workers to their ends."""
        part = self._launcher.next_part(order.run)
        leader = list(Side)[order.run % 2]
        if self.in_turns and self._needs is None:
            return self._in_turns(order, part, leader, on_record, until)
        ends = self._whole_runs(order, part, leader, on_record, until)
        if self._needs is not None:
            why = self._needs.why_not_together()
            self.in_turns, self._needs = not why, None
            if why:
                self._note(why)
        return ends

    def _whole_runs(
        self,
        order: Order,
        part: int,
        leader: Side,
        on_record: OnRecord,
        until: float | None,
    ) -> Mapping[Side, WorkerEnd]:
        def book(side: Side, record: Record) -> None:
            if record["kind"] == "measured":
                found = decode_measurement(record["measurement"])
                self._plans.setdefault(found.benchmark, found.plan)
            if self._needs is not None:
                self._needs.take(side, record)
            on_record(side, record)

        ends = {}
        for side in (leader, leader.other):
            # whoever goes second measures as the first one found out
            agreed = replace(order, plans={**self._plans, **order.plans})
            ends[side] = run_worker(
                self._launcher.prepare(agreed, part=part, half=self._half(side)),
                timeouts=self._launcher.timeouts,
                on_record=partial(book, side),
                until=until,
            )
        return ends

    def _in_turns(
        self,
        order: Order,
        part: int,
        leader: Side,
        on_record: OnRecord,
        until: float | None,
    ) -> Mapping[Side, WorkerEnd]:
        hub = Hub(leader, self._agreements)
        launches = {
            side: self._launcher.prepare(
                order, part=part, half=self._half(side, hub.descriptor(side))
            )
            for side in (leader, leader.other)
        }
        return run_pair(
            launches,
            hub=hub,
            timeouts=self._launcher.timeouts,
            on_record=on_record,
            until=until,
        )

    def _half(self, side: Side, turns: int | None = None) -> Half:
        return Half(side=side, tree=self._tree, turns=turns)
