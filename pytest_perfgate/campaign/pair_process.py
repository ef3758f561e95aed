"""Two workers side by side, of which one at a time does anything."""

import select
import time
from collections.abc import Callable, Mapping
from functools import partial

from pytest_perfgate.campaign.hub import Hub, Side
from pytest_perfgate.campaign.worker_process import (
    Launch,
    WorkerEnd,
    WorkerProcess,
    tick,
)
from pytest_perfgate.protocol import Record

_HOUSEKEEPING_S = 0.25
"""Records are read so seldom: it would cost the next turn its caches."""
OnRecord = Callable[[Side, Record], None]


def run_pair(
    launches: Mapping[Side, Launch],
    *,
    hub: Hub,
    timeouts: Mapping[str, float],
    on_record: OnRecord,
    until: float | None,
) -> Mapping[Side, WorkerEnd]:
    """Run both to their ends, whatever becomes of either.

    Parameters
    ----------
    on_record : called for every record of a side, in order
    until : `time.monotonic()` at which the session's time is up, or None
    """
    pair = _Pair(hub, on_record, until)
    try:
        for side, launch in launches.items():
            pair.start(side, launch, timeouts)
        while pair.living:
            pair.step()
    finally:
        pair.end()
    return pair.results()


class _Pair:
    def __init__(self, hub: Hub, on_record: OnRecord, until: float | None) -> None:
        self._hub = hub
        self._on_record = on_record
        self._until = until
        self._workers: dict[Side, WorkerProcess] = {}
        self.living: set[Side] = set()
        self._next_round = 0.0

    def start(self, side: Side, launch: Launch, timeouts: Mapping[str, float]) -> None:
        self._workers[side] = WorkerProcess(launch, timeouts=timeouts)
        self.living.add(side)
        self._hub.started(side)

    def step(self) -> None:
        """Hand the turn over where somebody gave it away; look around at times."""
        for side in self._speaking():
            self._hub.listen(side)
            if self._hub.waits(side):
                self._workers[side].pause()
        given = self._hub.give()
        if given is not None:
            self._workers[given].resume()
        if time.monotonic() >= self._next_round:
            self._look_around()
            self._next_round = time.monotonic() + _HOUSEKEEPING_S

    def _speaking(self) -> list[Side]:
        sockets = {ours: side for side, ours in self._hub.sockets.items()}
        readable, _, _ = select.select(list(sockets), [], [], tick(self._until))
        return [sockets[one] for one in readable]

    def _look_around(self) -> None:
        for side in sorted(self.living):
            worker = self._workers[side]
            over = worker.ended()  # first: what it wrote before is all there then
            worker.take(partial(self._on_record, side))
            if over or worker.must_stop(self._until):
                worker.end()
                self._hub.gone(side)
                self.living.discard(side)

    def end(self) -> None:
        for worker in self._workers.values():
            worker.end()
        self._hub.close()

    def results(self) -> Mapping[Side, WorkerEnd]:
        return {
            side: worker.result(partial(self._on_record, side))
            for side, worker in self._workers.items()
        }
