"""Turn an order into a worker process with a place in the run folder."""

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from pytest_perfgate import protocol
from pytest_perfgate.campaign.doors import Order
from pytest_perfgate.campaign.hub import Side
from pytest_perfgate.campaign.worker_process import (
    Launch,
    WorkerEnd,
    run_worker,
    worker_command,
)
from pytest_perfgate.protocol import Record, Task
from pytest_perfgate.store import RunFolder

ALLOW_TRACER = "_PERFGATE_ALLOW_TRACER"
_TRACERS = ("COV_CORE_", "COVERAGE_PROCESS_")


class Tree(Protocol):
    """A checkout of the base code, and how workers of a pair are started."""

    @property
    def start(self) -> Path: ...

    def command(self, worker: Sequence[str]) -> tuple[str, ...]: ...

    def environment(self, own: Mapping[str, str]) -> dict[str, str]: ...

    def candidate_environment(self, own: Mapping[str, str]) -> dict[str, str]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Half:
    """What makes a worker one half of a pair."""

    side: Side
    tree: Tree
    turns: int | None = None
    """A descriptor of the socket for turns; None where whole runs alternate."""

    def of(self, launch: Launch) -> Launch:
        """Change how a worker is started to measure this half's tree."""
        launch = replace(
            launch,
            environment=self._passive(launch.environment),
            inherited=() if self.turns is None else (self.turns,),
        )
        if self.side is Side.CANDIDATE:
            own = self.tree.candidate_environment(launch.environment)
            return replace(launch, environment=own)
        return replace(
            launch,
            command=self.tree.command(launch.command),
            environment=self.tree.environment(launch.environment),
            folder=self.tree.start,
        )

    def _passive(self, environment: Mapping[str, str]) -> dict[str, str]:
        if self.turns is None:
            return dict(environment)
        # threads that spin between two regions would run on in the other's turn
        return {"OMP_WAIT_POLICY": "PASSIVE", **environment}


@dataclass(frozen=True, slots=True, kw_only=True)
class Invocation:
    """How the user started pytest: workers are started likewise."""

    arguments: tuple[str, ...]
    start: Path
    device: str
    cache: Path | None
    """Where workers keep pytest's cache; None where there is none."""
    timeouts: Mapping[str, float]
    """Seconds, by node id."""


class WorkerLauncher:
    """Starts workers with the user's own arguments."""

    def __init__(self, folder: RunFolder, invocation: Invocation) -> None:
        self._folder = folder
        self._invocation = invocation
        self._parts: dict[int, int] = {}

    def __call__(
        self,
        order: Order,
        *,
        on_record: Callable[[Record], None],
        until: float | None,
    ) -> WorkerEnd:
        """Run one worker to its end."""
        return run_worker(
            self.prepare(order, part=self.next_part(order.run)),
            timeouts=self._invocation.timeouts,
            on_record=on_record,
            until=until,
        )

    def next_part(self, run: int) -> int:
        """Return the number of a run's next worker: one that dies is followed by another."""
        part = self._parts[run] = self._parts.get(run, 0) + 1
        return part

    @property
    def on_gpu(self) -> bool:
        return self._invocation.device.startswith("cuda")

    @property
    def timeouts(self) -> Mapping[str, float]:
        return self._invocation.timeouts

    def prepare(self, order: Order, *, part: int, half: Half | None = None) -> Launch:
        """Write a worker's task, and say how it is started."""
        invocation = self._invocation
        files = self._folder.worker(
            order.run, part=part, side=half.side if half else ""
        )
        Task(
            run=order.run,
            wanted=order.wanted,
            records=str(files.records),
            device=invocation.device,
            manager=os.getpid(),
            alone=order.alone,
            plans=order.plans,
            iterations=order.iterations,
            inner_loops=order.inner_loops,
            turns=half.turns if half else None,
        ).write(files.task)
        command = worker_command(
            invocation.arguments,
            executable=sys.executable,
            as_module=Path(sys.argv[0]).name == "__main__.py"
            and not sys.flags.safe_path,
            cache=invocation.cache,
        )
        variables = environment(os.environ, task=files.task, seed=order.seed)
        launch = Launch(
            command=command,
            environment=variables,
            folder=invocation.start,
            records=files.records,
            log=files.log,
        )
        return half.of(launch) if half else launch


def environment(own: Mapping[str, str], *, task: Path, seed: int) -> dict[str, str]:
    """Return a worker's environment: the user's, less what would trace it.

    The hash seed differs from run to run, so that no order of a set or dict
    falls on all runs of one side; a user's own choice stands.
    """
    kept = {
        name: value
        for name, value in own.items()
        if ALLOW_TRACER in own or not name.startswith(_TRACERS)
    }
    kept.setdefault("PYTHONHASHSEED", str(seed % 2**32))
    kept[protocol.TASK_VARIABLE] = str(task)
    return kept
