"""Drives pytest-benchmark's fixture, and reads what it measured.

Nothing of pytest-benchmark is imported: its objects are known by their module,
and used by name. The private names that are leaned on stand in one table; what
a version lacks of them costs the part that needs it and is said, never the
numbers. A *round* is a number of calls in a row that are timed together; what
one call takes on average is one sample.
"""

import math
import random
import statistics
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

from pytest_perfgate.errors import NothingMeasured
from pytest_perfgate.interop.benchmark_calls import (
    Foreign,
    Prepare,
    call_of,
    do_after,
    pedantic_call_of,
    wrap_calls,
)

FIXTURE = "benchmark"
KIND = "pytest-benchmark"
"""What the workload of a plan begins with, where its rounds are theirs."""
MOST_SAMPLES = 5000
"""Rounds of a run that are kept; of more, as many are drawn."""

CALIBRATIONS = 5
"""What a plan rests on is measured so often: a neighbour may be in one of them."""

_PLUGIN = "pytest_benchmark.plugin"
_FIXTURE_MODULE = "pytest_benchmark.fixture"

ADD_STATS = "_add_stats"
CALIBRATE = "_calibrate_timer"
MAKE_RUNNER = "_make_runner"
MAX_TIME = "_max_time"
MIN_ROUNDS = "_min_rounds"
PRECISION = "_precision"
PRECISIONS = "_precisions"
TIMER = "_timer"
WARMUP = "_warmup"
MODE = "_mode"
FOR_TURNS = (ADD_STATS,)
FOR_GOVERNING = (CALIBRATE, MIN_ROUNDS, MAX_TIME)
FOR_CALLS = (MAKE_RUNNER,)
RAW = "_raw"
RAW_PEDANTIC = "_raw_pedantic"
FOR_COUNTS = (RAW, RAW_PEDANTIC)
HOW_MANY = (MIN_ROUNDS, MAX_TIME, "_min_time", WARMUP, PRECISION, "_confidence")
"""Attributes that hold the options by which it finds out how many rounds to make."""
HOW = (TIMER, "_disable_gc")
"""And by which it times them."""

_FILES: dict[str, object] = {
    "benchmark_json": None,
    "benchmark_save": None,
    "benchmark_autosave": None,
    "benchmark_save_data": False,
    "benchmark_compare": None,
    "benchmark_compare_fail": [],
    "benchmark_histogram": None,
    "benchmark_cprofile": None,
    "benchmark_cprofile_dump": [],
}
_CHOICE = {
    "benchmark_disable": False,
    "benchmark_skip": False,
    "benchmark_only": False,
}
_OUTPUT = {"benchmark_quiet": True, "benchmark_verbose": False}


def put_out(options: object, *, output: bool = False) -> tuple[str, ...]:
    """Set to nothing the options by which it writes, compares, skips or disables.

    Must run before its `pytest_configure`, where it reads them.

    Parameters
    ----------
    options : `config.option`
    output : its table and its log, too

    Returns
    -------
    tuple of str
        Those that the user had given and that hold no more. `--benchmark-only`
        is none of them: what it asks for is done.
    """
    told = []
    for name, nothing in (_FILES | _CHOICE | (_OUTPUT if output else {})).items():
        if not hasattr(options, name):
            continue
        if getattr(options, name) and name not in {"benchmark_only", *_OUTPUT}:
            told.append("--" + name.replace("_", "-"))
        setattr(options, name, nothing)
    return tuple(told)


def is_meant(definitions: Sequence[Foreign]) -> bool:
    """Whether a test gets pytest-benchmark's fixture, by the definitions in reach.

    A suite may wrap the fixture in one of the same name that asks for the one
    before. Where there is none at all, it is what the test wants: pytest itself
    will say that it is not found.

    Parameters
    ----------
    definitions : pytest's, of the fixture of that name, the closest last
    """
    for definition in reversed(definitions):
        if getattr(definition.func, "__module__", "") == _PLUGIN:
            return True
        if FIXTURE not in definition.argnames:
            return False
    return not definitions


def is_fixture(value: object) -> bool:
    """Whether a fixture's value is pytest-benchmark's object."""
    return any(kind.__module__ == _FIXTURE_MODULE for kind in type(value).__mro__)


Calibrated: TypeAlias = tuple[float, int, Sequence[int]]
"""What a round takes, of how many calls, and the range that counts them."""


def both_in_one(nodeid: str) -> str:
    """Say why a test that asks for our fixture and theirs is refused."""
    return (
        f"{nodeid} asks for both benchmark and perfgate: one would be measured with "
        "the other's work; keep one fixture, or make two tests"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Doors:
    """What is done for us while it measures."""

    begin: Callable[[], None]
    """Before the first round."""
    pause: Callable[[], None]
    """Between two rounds, about every `pause_s` of measured time."""
    pause_s: float
    pause_rounds: int | None = None
    """Rounds between two pauses; None goes by time."""
    settle: "Callable[[Rounds, float], int] | None" = None
    """Called before the rounds with how many there will be and what one takes, in
    seconds; answers how many to make between two pauses."""
    stretch: Callable[[], Callable[[], None]] | None = None
    """Called before a call within a round; what it returns is called after it."""
    clock: Callable[[], float] | None = None
    """Seconds; in place of the timer."""
    after: "Callable[[Prepare], None] | None" = None
    """Called when all rounds of `benchmark(fn)` have been made, before it returns."""
    after_pedantic: "Callable[[Prepare], None] | None" = None
    """Likewise of `benchmark.pedantic(fn, …)`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rounds:
    """How many rounds, of how many calls."""

    rounds: int
    iterations: int
    workload: str | None = None
    """Holds only where they are made like this; None holds always."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What it measured."""

    seconds: tuple[float, ...]
    """A call's mean time, of each round that is kept, in order."""
    rounds: int
    iterations: int
    turns: tuple[int, ...]
    """How many of `seconds` were made between two pauses."""
    group: str | None
    extra_info: dict[str, object]


class Driver:
    """Takes the fixture's object over before the test has it.

    Parameters
    ----------
    fixture : the object, unused
    where : the benchmark's id, for errors
    governing : rounds to be made where it would calibrate; None lets it. What
        `benchmark.pedantic` is told stands in the test, and is not overruled.
    """

    def __init__(
        self, fixture: Foreign, doors: Doors, *, where: str, governing: Rounds | None
    ) -> None:
        self._fixture = fixture
        self._where = where
        self._doors = doors
        self._how_many = _written(fixture, HOW_MANY)
        self._how = _written(fixture, HOW)
        self.takes_turns = _has(fixture, FOR_TURNS)
        self.reaches_calls = _has(fixture, FOR_CALLS)
        self.fixes_rounds = _has(fixture, FOR_GOVERNING)
        self._per_pause = doors.pause_rounds
        self._pauses: list[int] = []
        self._measured_s = 0.0
        fixture.disabled = False
        if doors.clock is not None:
            _set_clock(fixture, doors.clock)
        if doors.stretch is not None and self.reaches_calls:
            wrap_calls(fixture, MAKE_RUNNER, doors.stretch)
        if self.fixes_rounds:
            self._calibrate = getattr(fixture, CALIBRATE)
            setattr(
                fixture, CALIBRATE, lambda runner: self._rounds_of(runner, governing)
            )
        self.reaches_ends = _has(fixture, FOR_COUNTS)
        if self.reaches_ends:
            do_after(fixture, RAW, doors.after, call_of)
            do_after(fixture, RAW_PEDANTIC, doors.after_pedantic, pedantic_call_of)
        if self.takes_turns:
            # nothing is handed on: it makes no table and no file of ours
            setattr(fixture, ADD_STATS, self._begin)

    def _begin(self, stats: Foreign) -> None:
        """See each round as it is counted; called before the first."""
        update = stats.update

        def counted(duration: float) -> None:
            update(duration)
            self._measured_s += duration
            if self._is_due(len(stats.stats.data)):
                self._measured_s = 0.0
                self._pauses.append(len(stats.stats.data))
                self._doors.pause()

        stats.update = counted
        self._doors.begin()

    def _is_due(self, rounds: int) -> bool:
        if self._per_pause is None:
            return self._measured_s >= self._doors.pause_s
        return rounds % self._per_pause == 0

    def read(self) -> Found:
        """Read what was measured.

        Raises
        ------
        NothingMeasured
            It was never called, or its call raised and the test went on.
        """
        fixture = self._fixture
        if getattr(fixture, "has_error", False):
            raise NothingMeasured(
                f"{self._where}: {self._mode} raised and the test went on, so "
                "its times are no measurement; let it raise, or measure what does not"
            )
        if fixture.stats is None or not fixture.stats.stats.data:
            raise NothingMeasured(
                f"{self._where}: asks for pytest-benchmark's fixture and measured "
                "nothing with it; call benchmark(fn), or remove it from the test"
            )
        data = fixture.stats.stats.data
        kept = drawn(len(data), MOST_SAMPLES)
        return Found(
            seconds=tuple(float(data[index]) for index in kept),
            rounds=len(data),
            iterations=int(fixture.stats.iterations),
            turns=_per_turn(kept, self._pauses, len(data)),
            group=None if fixture.group is None else str(fixture.group),
            extra_info=dict(fixture.extra_info),
        )

    def _rounds_of(self, runner: object, governing: Rounds | None) -> Calibrated:
        """Say how many rounds of how many calls, where it asks what one takes.

        It calibrates in any case, which also warms up.
        """
        own: Calibrated = self._calibrate(runner)
        if governing is not None and governing.workload in {None, self.workload}:
            return self._fixed(governing, call_s=own[0] / own[1])
        own = self._several(own, runner)
        if self._doors.settle is None:
            return own
        filling = math.ceil(getattr(self._fixture, MAX_TIME) / own[0])
        fewest = getattr(self._fixture, MIN_ROUNDS)
        chosen = Rounds(rounds=max(filling, fewest), iterations=own[1])
        return self._fixed(chosen, call_s=own[0] / own[1])

    def _fixed(self, wanted: Rounds, *, call_s: float) -> Calibrated:
        """Answer so that it makes just these rounds."""
        if self._doors.settle is not None:
            self._per_pause = self._doors.settle(wanted, call_s * wanted.iterations)
        setattr(self._fixture, MIN_ROUNDS, wanted.rounds)
        setattr(self._fixture, PRECISION, None)  # or it would stop when it is content
        # however long a round takes, the fewest rounds are then all
        return math.inf, wanted.iterations, range(wanted.iterations)

    def _several(self, first: Calibrated, runner: object) -> Calibrated:
        """Calibrate again while that is cheap: what was found is found for all runs."""
        if getattr(self._fixture, WARMUP, False):
            return first  # each would warm up anew
        longest_s = getattr(self._fixture, MAX_TIME)
        found = [first]
        while len(found) < CALIBRATIONS and sum(one[0] for one in found) < longest_s:
            found.append(self._calibrate(runner))
        # whoever is kept waiting takes fewer calls for enough
        iterations = max(one[1] for one in found)
        call_s = statistics.median(one[0] / one[1] for one in found)
        return call_s * iterations, iterations, range(iterations)

    @property
    def workload(self) -> str:
        """Say how rounds are made: numbers of different ways are not compared."""
        mode = self._mode
        told = self._how if "pedantic" in mode else (*self._how_many, *self._how)
        return " ".join((KIND, mode, *told))

    @property
    def _mode(self) -> str:
        return str(getattr(self._fixture, MODE, None) or FIXTURE)


def _has(fixture: object, names: Sequence[str]) -> bool:
    return all(hasattr(fixture, name) for name in names)


def _written(fixture: object, names: Sequence[str]) -> tuple[str, ...]:
    """Write options that are set, so that a plan shows where one is changed."""
    found = ((name, getattr(fixture, name, None)) for name in names)
    return tuple(
        f"{name.removeprefix('_')}={_text(value)}"
        for name, value in found
        if value is not None and value is not False
    )


def _text(value: object) -> str:
    name = getattr(value, "__qualname__", None)
    return str(value) if name is None else f"{getattr(value, '__module__', '')}.{name}"


def _set_clock(fixture: Foreign, clock: Callable[[], float]) -> None:
    setattr(fixture, TIMER, clock)
    # a clock that stands still between calls has no precision to be found out
    getattr(fixture, PRECISIONS)[clock] = 1e-9


def drawn(count: int, most: int) -> Sequence[int]:
    """Choose which of so many rounds are kept: all, or one drawn from each stretch.

    Drawn rather than every n-th, which would keep step with work that recurs
    (a buffer that is flushed every fourth call); the same for every run, so
    that both sides keep as many and the same ones.
    """
    if count <= most:
        return range(count)
    draw = random.Random(0)  # noqa: S311 (keeps no secret)
    ends = [stretch * count // most for stretch in range(most + 1)]
    return [draw.randrange(*ends[at : at + 2]) for at in range(most)]


def _per_turn(
    kept: Sequence[int], pauses: Sequence[int], count: int
) -> tuple[int, ...]:
    """Count the kept rounds between pauses; a last stretch without a pause, too.

    Of a stretch that is so short that none was kept there is nothing to tell.
    """
    ends = [*pauses] if pauses and pauses[-1] == count else [*pauses, count]
    places = [bisect_left(kept, end) for end in ends]
    counts = (end - begin for begin, end in pairwise((0, *places)))
    return tuple(count for count in counts if count)
