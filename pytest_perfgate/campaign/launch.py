"""Turn an order into a worker process with a place in the run folder."""

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from pytest_perfgate import protocol
from pytest_perfgate.campaign.manager import Order
from pytest_perfgate.campaign.worker_process import (
    Launch,
    WorkerEnd,
    WorkerProcess,
    worker_command,
)
from pytest_perfgate.protocol import Record, Task
from pytest_perfgate.store import RunFolder

ALLOW_TRACER = "_PERFGATE_ALLOW_TRACER"
_TRACERS = ("COV_CORE_", "COVERAGE_PROCESS_")


class WorkerLauncher:
    """Starts workers with the user's own arguments."""

    def __init__(
        self,
        folder: RunFolder,
        *,
        arguments: Sequence[str],
        start: Path,
        device: str,
        cache: Path | None,
        timeouts: Mapping[str, float],
    ) -> None:
        self._folder = folder
        self._arguments = arguments
        self._start = start
        self._device = device
        self._cache = cache
        self._timeouts = timeouts
        self._parts: dict[int, int] = {}

    def __call__(
        self,
        order: Order,
        *,
        on_record: Callable[[Record], None],
        until: float | None,
    ) -> WorkerEnd:
        """Run one worker to its end."""
        part = self._parts[order.run] = self._parts.get(order.run, 0) + 1
        files = self._folder.worker(order.run, part=part)
        Task(
            run=order.run,
            wanted=order.wanted,
            records=str(files.records),
            device=self._device,
            manager=os.getpid(),
            alone=order.alone,
            plans=order.plans,
            iterations=order.iterations,
            inner_loops=order.inner_loops,
        ).write(files.task)
        launch = Launch(
            command=worker_command(
                self._arguments,
                executable=sys.executable,
                as_module=Path(sys.argv[0]).name == "__main__.py"
                and not sys.flags.safe_path,
                cache=self._cache,
            ),
            environment=environment(os.environ, task=files.task, seed=order.seed),
            folder=self._start,
            records=files.records,
            log=files.log,
        )
        process = WorkerProcess(launch, timeouts=self._timeouts)
        return process.run(on_record=on_record, until=until)


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
