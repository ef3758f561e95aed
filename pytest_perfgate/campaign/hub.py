"""Whose turn it is in a pair: a pure state machine, and the sockets around it.

Both workers follow one order of benchmarks. The turn goes to the side that is
further behind; where both are in the same place they alternate ABBA. Whatever
one side does (skips, fails, dies, hangs), the other comes to its end: who is
gone is waited for no more.
"""

import contextlib
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from pytest_perfgate.errors import ProtocolError
from pytest_perfgate.measure.context import Agreement
from pytest_perfgate.turns import Ask, Go, Position

_LONGEST_LINE = 1 << 16


class Side(StrEnum):
    """The two halves of a pair."""

    BASE = "base"
    CANDIDATE = "candidate"

    @property
    def other(self) -> "Side":
        return Side.CANDIDATE if self is Side.BASE else Side.BASE


class State(StrEnum):
    """What a side does."""

    BUSY = "busy"
    """It runs: it has the turn, or has not asked for its first one yet."""
    WAITING = "waiting"
    GONE = "gone"


@dataclass(slots=True, kw_only=True)
class Turns:
    """Whose turn is it; knows no sockets and no clocks."""

    leader: Side
    """Goes first where both are in the same place, but for every second turn."""
    states: dict[Side, State] = field(
        default_factory=lambda: dict.fromkeys(Side, State.BUSY)
    )
    positions: dict[Side, Position] = field(default_factory=dict)

    def ask(self, side: Side, position: Position) -> None:
        self.states[side] = State.WAITING
        self.positions[side] = position

    def gone(self, side: Side) -> None:
        self.states[side] = State.GONE

    def next(self) -> Side | None:
        """Give the turn to a side and return it; None while somebody has it."""
        waiting = [side for side in Side if self.states[side] is State.WAITING]
        if not waiting or State.BUSY in self.states.values():
            return None
        chosen = waiting[0] if len(waiting) == 1 else self._of_both()
        self.states[chosen] = State.BUSY
        return chosen

    def _of_both(self) -> Side:
        base, candidate = (self.positions[side] for side in Side)
        if base != candidate:
            return Side.BASE if base < candidate else Side.CANDIDATE
        turn = base[-1]
        second = turn > 0 and turn % 2 == 0
        return self.leader.other if second else self.leader


class Hub:
    """The manager's ends of both sockets."""

    def __init__(self, leader: Side, agreements: dict[str, Agreement]) -> None:
        """Open a socket for each side.

        Parameters
        ----------
        agreements : by benchmark: what earlier pairs agreed on; added to
        """
        self._turns = Turns(leader=leader)
        self._agreements = agreements
        self._begun: dict[Side, str | None] = {}
        self._ours: dict[Side, socket.socket] = {}
        self._theirs: dict[Side, socket.socket] = {}
        self._buffers = dict.fromkeys(Side, b"")
        for side in Side:
            self._ours[side], self._theirs[side] = socket.socketpair()
            self._ours[side].settimeout(0.0)

    def descriptor(self, side: Side) -> int:
        """Return what a worker inherits."""
        return self._theirs[side].fileno()

    def started(self, side: Side) -> None:
        """Close our copy of a worker's end, so that its death is seen."""
        self._theirs[side].close()

    @property
    def sockets(self) -> Mapping[Side, socket.socket]:
        """Those of the sides that are still there."""
        return {
            side: self._ours[side]
            for side in Side
            if self._turns.states[side] is not State.GONE
        }

    def waits(self, side: Side) -> bool:
        """Whether a side does nothing but wait: its time does not run."""
        return self._turns.states[side] is State.WAITING

    def listen(self, side: Side) -> None:
        """Take what a worker has sent; an end of file means that it is gone."""
        try:
            data = self._ours[side].recv(_LONGEST_LINE)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self.gone(side)
            return
        *lines, self._buffers[side] = (self._buffers[side] + data).split(b"\n")
        for line in lines:
            self._heard(side, line)

    def _heard(self, side: Side, line: bytes) -> None:
        try:
            ask = Ask.from_line(line)
        except (ValueError, KeyError, TypeError) as error:
            raise ProtocolError(
                f"the {side} worker asked for its turn by {line[:80]!r}, which is no "
                "request: is the same version of pytest-perfgate installed for both?"
            ) from error
        begun = self._begun.get(side)
        if ask.agreement is not None and begun is not None:
            self._agreements.setdefault(begun, ask.agreement)
        if ask.benchmark is not None:
            self._begun[side] = ask.benchmark
        self._turns.ask(side, ask.position)

    def gone(self, side: Side) -> None:
        """Wait for a side no more."""
        self._turns.gone(side)

    def give(self) -> Side | None:
        """Give the turn away where nobody has it; returns to whom."""
        side = self._turns.next()
        if side is None:
            return None
        begun = self._begun.get(side)
        agreed = self._agreements.get(begun) if begun is not None else None
        # a worker that just died is found out by its end of file
        with contextlib.suppress(OSError):
            self._ours[side].sendall(Go(agreement=agreed).to_line())
        return side

    def close(self) -> None:
        for each in (*self._ours.values(), *self._theirs.values()):
            each.close()
