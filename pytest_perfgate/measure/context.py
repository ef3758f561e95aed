"""What a worker knows when it measures: one value, handed down."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from pytest_perfgate.measure.compile_watch import BreakBook
from pytest_perfgate.measure.device import Device
from pytest_perfgate.measured import HOT, Measurement, Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """How both sides of a pair measure a benchmark: equal numbers, equal turns."""

    iterations: int
    warmup: int
    per_turn: int
    """Iterations in a turn; the last turn has what is left."""
    inner_loop: int | None = None
    """Calls of an iteration; None only from an older version's side."""


class Pair(Protocol):
    """The other half of a pair, as a measurement sees it."""

    def begin(self, benchmark: str) -> Agreement | None:
        """Wait for the turn to begin; returns what was agreed, if anything was."""
        ...

    def agree(self, agreement: Agreement) -> None:
        """Settle how both measure, as the first to know."""
        ...

    def turn(self) -> None:
        """Let the other side have a turn, and wait for the next one."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasureContext:
    """Everything a measurement needs besides the function itself."""

    device: Device
    run: int
    seed: int
    max_time_s: float
    """Measured time aimed at, for each benchmark in each run."""
    iterations: int | None
    warmup: int | None
    """Calls before the first measured one; None finds out when it is steady."""
    inner_loop: int | None
    """Calls of an iteration; None where nobody says, and one is enough unless it
    is over too soon for a device with events."""
    plans: Mapping[str, Plan]
    """Stored plans by benchmark id: they govern iterations, warm-up, inner loop."""
    slowdown: float
    """Planted: 0.6 makes every call take 60 % longer."""
    emit: Callable[[Measurement], None]
    note: Callable[[str], None]
    alone: bool
    wants_p99: bool
    calibrated: Mapping[str, int] = field(default_factory=dict)
    """Iterations by benchmark id, where an earlier run of this session, not a
    stored plan, found out how many: every run of a session has as many."""
    calibrated_inner: Mapping[str, int] = field(default_factory=dict)
    """Likewise the calls of an iteration."""
    counting: bool = True
    """Take counts once a benchmark's timing is over."""
    counting_asked: bool = False
    """Even where a test says itself how many calls are to be made."""
    breaks: BreakBook = field(default_factory=BreakBook)
    """One for the whole process: a function is compiled once."""
    pair: Pair | None = None
    """Where another process measures the other tree, and both take turns."""
    cache: str = HOT
    """What a call is to find in the device's cache."""
    hide_launch: bool = False
    """Keep a device from beginning with a full queue until all is handed over."""

    def hand_over(self) -> None:
        """Let the other side of a pair have its turn; nothing of ours runs on in it.

        Ends each pass that both sides make once the timed turns are over: they
        make it one right after the other, and before anything else is done.
        A side that does not make the pass is waited for no longer than that.
        """
        if self.pair is not None:
            self.device.synchronize()
            self.pair.turn()

    def unslowed_ns(self, seconds: float) -> int:
        """Say how long something takes without the planted slowdown."""
        return round(seconds / (1.0 + self.slowdown) * 1e9)

    def __post_init__(self) -> None:
        if self.slowdown < 0:
            raise ValueError(
                f"MeasureContext.slowdown={self.slowdown!r} is not allowed"
            )
        if self.max_time_s <= 0:
            raise ValueError(
                f"MeasureContext.max_time_s={self.max_time_s!r} is not allowed"
            )
