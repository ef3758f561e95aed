"""Identical code against itself, in fresh processes that take turns."""

import json
import math
import os
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from pytest_perfgate.errors import MeasurementError
from pytest_perfgate.measure.trial import READY

FEWEST_PAIRS, MOST_PAIRS = 3, 5
TURN_S = 0.02
_FEWEST_TURNS, _MOST_TURNS = 20, 100
_PATIENCE_S = 120.0
_TAIL = 500
_ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"
)
"""Threads that wait for one another multiply what a neighbour does: it is the
machine that is examined, not a library's way to wait."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """What one process measured while it had its turn."""

    median_s: float
    disturbed: str | None
    steal: float
    throttled_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Two processes of the same code that took turns."""

    first: tuple[Turn, ...]
    second: tuple[Turn, ...]

    @property
    def medians_s(self) -> tuple[float, float]:
        """One a process, as a run has."""
        return _median_s(self.first), _median_s(self.second)

    @property
    def difference(self) -> float:
        """Log ratio of the halves, from neighbouring turns."""
        return statistics.median(
            math.log(second.median_s / first.median_s)
            for first, second in zip(self.first, self.second, strict=True)
        )

    @property
    def turns(self) -> tuple[Turn, ...]:
        return (*self.first, *self.second)


def _median_s(turns: Sequence[Turn]) -> float:
    return statistics.median(turn.median_s for turn in turns)


def measure_pairs(
    device: str, *, seconds: float, clock: Callable[[], float] = time.monotonic
) -> tuple[Pair, ...]:
    """Measure pairs until the time is up, but at least three.

    Raises
    ------
    MeasurementError
        Where a process ends before it has measured; its own words are shown.
    """
    begun = clock()
    pairs: list[Pair] = []
    share_s = seconds / MOST_PAIRS
    while len(pairs) < MOST_PAIRS:
        late = clock() - begun > seconds - share_s / 2
        if late and len(pairs) >= FEWEST_PAIRS:
            break
        pairs.append(measure_pair(device, until=clock() + share_s, clock=clock))
    return tuple(pairs)


def measure_pair(device: str, *, until: float, clock: Callable[[], float]) -> Pair:
    """Start two processes, one after the other, and let them take turns: ABBA."""
    first: list[Turn] = []
    second: list[Turn] = []
    with ExitStack() as stack:
        ask_first = stack.enter_context(_process(device))
        ask_second = stack.enter_context(_process(device))
        while len(first) < _MOST_TURNS:
            if clock() > until and len(first) >= _FEWEST_TURNS:
                break
            if len(first) % 2:
                second.append(ask_second())
                first.append(ask_first())
            else:
                first.append(ask_first())
                second.append(ask_second())
    return Pair(first=tuple(first), second=tuple(second))


@contextmanager
def _process(device: str) -> Iterator[Callable[[], Turn]]:
    """Start one process, and wait until it is warm; yields how to give it the turn."""
    process = subprocess.Popen(  # noqa: S603 (our own interpreter and module)
        [sys.executable, "-P", "-m", "pytest_perfgate.measure.trial", device],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, **_ONE_THREAD},
        text=True,
    )

    hung = threading.Timer(_PATIENCE_S, process.kill)
    hung.daemon = True
    hung.start()

    def hear() -> str:
        line = process.stdout.readline() if process.stdout else ""
        if not line:
            _, said = process.communicate(timeout=_PATIENCE_S)
            raise MeasurementError(
                f"the trial process for {device} ended with exit code "
                f"{process.returncode}; it said:\n{said[-_TAIL:]}"
            )
        return line.strip()

    def take_turn() -> Turn:
        if process.stdin:
            process.stdin.write(f"{TURN_S}\n")
            process.stdin.flush()
        return Turn(**json.loads(hear()))

    try:
        ready = hear()
        if ready != READY:
            raise MeasurementError(f"the trial process for {device} said {ready!r}")
        yield take_turn
    finally:
        hung.cancel()
        process.kill()
        process.communicate()
