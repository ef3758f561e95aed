"""Everything through which a campaign acts and asks."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from pytest_perfgate.campaign.hub import Side
from pytest_perfgate.campaign.ledger import Entry
from pytest_perfgate.campaign.worker_process import WorkerEnd
from pytest_perfgate.measured import Plan
from pytest_perfgate.protocol import Record


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What one worker is asked to do, before it has a place in the run folder."""

    run: int
    wanted: tuple[str, ...]
    seed: int
    alone: bool
    plans: Mapping[str, Plan]
    iterations: Mapping[str, int]
    inner_loops: Mapping[str, int] = field(default_factory=dict)


class Launcher(Protocol):
    """The door through which workers are started."""

    def __call__(
        self,
        order: Order,
        *,
        on_record: Callable[[Record], None],
        until: float | None,
    ) -> WorkerEnd: ...


class PairedLauncher(Protocol):
    """The door through which pairs of workers are started."""

    in_turns: bool
    """Both workers are alive together, and take turns."""

    def __call__(
        self,
        order: Order,
        *,
        on_record: Callable[[Side, Record], None],
        until: float | None,
    ) -> Mapping[Side, WorkerEnd]: ...


class Judge(Protocol):
    """What the loop asks between runs."""

    def decided(self, entry: Entry, *, target: int, last: bool) -> bool:
        """Whether the runs so far decide a benchmark."""
        ...

    def flagged(self, entry: Entry) -> bool:
        """Whether a decided benchmark wants fresh runs to confirm it."""
        ...

    def confirmed(self, entry: Entry) -> None:
        """Judge a flagged benchmark again, with its fresh runs."""
        ...

    def plans(self, nodeid: str) -> Mapping[str, Plan]:
        """Return the stored plans of an item's benchmarks."""
        ...

    def base_problem(self) -> str:
        """Say why the newest pair did not measure the base tree; empty if it did."""
        ...


class Progress(Protocol):
    """Tells a person what goes on."""

    def run_begins(
        self,
        run: int,
        of: int,
        *,
        benchmarks: int,
        undecided: int,
        left_s: float | None,
    ) -> None: ...

    def benchmark_begins(self, nodeid: str) -> None: ...

    def done(self) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Doors:
    """Everything through which a campaign acts and asks."""

    launcher: Launcher
    judge: Judge
    progress: Progress
    clock: Callable[[], float] = time.monotonic
    """Seconds."""
    sleep: Callable[[float], None] = time.sleep
