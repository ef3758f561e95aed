"""The turn: of two workers that measure side by side, only one does anything.

PYTEST_DONT_REWRITE: no asserts here.

A worker has one socket to the manager. It asks for the turn and waits; what it
does from then on until it asks again is its turn, set-up, warm-up and teardown
included. Each request says how far the worker has come, so that the manager can
let the side go first that is further behind; how the two alternate is decided
there alone.
"""

import json
import os
import socket
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from pytest_perfgate.measure.context import Agreement

Position = tuple[int, int, int]
"""Benchmark, measurement in it, turn: compared as tuples, later is further."""

HELLO: Position = (-2, 0, 0)
"""Started, and nothing collected yet."""
COLLECTED: Position = (-1, 0, 0)
_SET_UP = -1
"""In place of a measurement's number."""
_WARM_UP = 0
"""In place of a turn's number, which begins with 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """What a worker sends: it gives the turn away and wants it back."""

    position: Position
    benchmark: str | None = None
    """The measurement it is about to begin; the answer brings what is agreed."""
    agreement: Agreement | None = None
    """What it found out as the first of the two, for both."""

    def to_line(self) -> bytes:
        return json.dumps(asdict(self)).encode() + b"\n"

    @classmethod
    def from_line(cls, line: bytes) -> "Ask":
        raw = json.loads(line)
        found = raw["agreement"]
        first, second, third = raw["position"]
        return cls(
            position=(first, second, third),
            benchmark=raw["benchmark"],
            agreement=Agreement(**found) if found else None,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Go:
    """What the manager answers when it is the worker's turn."""

    agreement: Agreement | None = None

    def to_line(self) -> bytes:
        return json.dumps(asdict(self)).encode() + b"\n"

    @classmethod
    def from_line(cls, line: bytes) -> "Go":
        found = json.loads(line)["agreement"]
        return cls(agreement=Agreement(**found) if found else None)


class TurnClient:
    """A worker's end: every method blocks until it is this worker's turn."""

    def __init__(self, descriptor: int, order: Sequence[str]) -> None:
        # a duplicate is not inherited: children that a benchmark starts shall not
        # keep the socket open
        self._socket = socket.socket(fileno=os.dup(descriptor))
        os.close(descriptor)
        self._lines = self._socket.makefile("rb")
        self._place: Mapping[str, int] = {name: at for at, name in enumerate(order)}
        self._pid = os.getpid()
        self._item = self._measurement = self._turn = 0
        self._agreement: Agreement | None = None

    def hello(self) -> None:
        self._ask(Ask(position=HELLO))

    def collected(self) -> None:
        self._ask(Ask(position=COLLECTED))

    def arrive(self, nodeid: str) -> None:
        """Come to a benchmark, before anything of it is set up."""
        self._item, self._measurement = self._place[nodeid], _SET_UP
        self._turn = 0
        self._ask(Ask(position=(self._item, _SET_UP, 0)))

    # -- what a measurement calls

    def begin(self, benchmark: str) -> Agreement | None:
        """Come to a measurement; returns what the other side found out first."""
        self._measurement += 1
        self._turn = _WARM_UP
        self._agreement = None
        place = (self._item, self._measurement, _WARM_UP)
        return self._ask(Ask(position=place, benchmark=benchmark)).agreement

    def agree(self, agreement: Agreement) -> None:
        """Settle, as the first of the two, how both measure."""
        self._agreement = agreement

    def turn(self) -> None:
        """Give the turn away, and wait for the next."""
        self._turn += 1
        place = (self._item, self._measurement, self._turn)
        self._ask(Ask(position=place, agreement=self._agreement))
        self._agreement = None

    def _ask(self, ask: Ask) -> Go:
        if os.getpid() != self._pid:
            return Go()  # a forked child has no turn to wait for
        try:
            self._socket.sendall(ask.to_line())
            line = self._lines.readline()
        except OSError:
            line = b""
        if not line:
            os._exit(1)  # the manager is gone: there is nobody to measure for
        return Go.from_line(line)
