"""The course of a measurement: warm-up, calibration, blocks.

A schedule is a generator. It asks for a number of iterations, is sent their
durations, and decides what to ask for next; what an iteration is, it does not
know. So the form that calls a function and the form that lends the user a loop
share it.
"""

import contextlib
import math
import statistics
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field, replace

from pytest_perfgate.measure.compile_watch import Compiles, watching_compiles
from pytest_perfgate.measure.context import Agreement, Pair
from pytest_perfgate.measure.cpu_guard import (
    DISTURBED_RUN_SHARE,
    BlockUse,
    difference,
    judge_blocks,
    usable_cores,
    why_disturbed,
)
from pytest_perfgate.measure.device import Device
from pytest_perfgate.measure.flushing import Flush
from pytest_perfgate.measure.garbage import Garbage, quiet_garbage
from pytest_perfgate.measure.health import Watch
from pytest_perfgate.measure.lengthening import Calls, lengthen
from pytest_perfgate.measure.recipe import Recipe, block_of, calibrate, each_ns, turn_of
from pytest_perfgate.measure.settling import Inner, Request
from pytest_perfgate.measure.slow import BlockEvidence, slow_iterations
from pytest_perfgate.measure.warming import warm_up
from pytest_perfgate.measured import FLUSH, HOT, Health, SlowIterations

COLLECT_S = 0.2
"""Garbage is collected after this much measured time, between blocks."""
MOST_SHIFTS = 3
"""Blocks that are made again because something of the code's own moved in them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What was measured, apart from what the driver itself collected."""

    iterations: int
    warmup: int
    inner_loop: int
    host_ns: tuple[int, ...]
    """One an iteration, of the whole inner loop."""
    wall_ns: int
    """Of all measured blocks."""
    cpu_time_s: tuple[float, ...]
    """One a block: CPU seconds ÷ iterations and inner loop."""
    turns: tuple[int, ...]
    """Iterations of each turn; empty where nobody takes turns."""
    health: Health
    remarks: tuple[str, ...]
    recompiles: int = 0
    """Functions that torch compiled within the measured blocks."""
    first_s: float | None = None
    """What the first call took; None where it is a measured one."""
    cache: str = HOT
    """What each call found in the device's cache."""
    evidence: tuple[BlockEvidence, ...] = ()
    """What is known of each measured block."""

    @property
    def slow(self) -> SlowIterations | None:
        """The iterations that took far longer than the others; None without any."""
        return slow_iterations(self.seconds, self.evidence, inner_loop=self.inner_loop)

    @property
    def typical_s(self) -> float:
        """The median call; zero where nothing was measured."""
        return statistics.median(self.seconds or (0.0,))

    @property
    def calls(self) -> int:
        """All calls that were made, warm-up and measured."""
        return self.warmup + self.iterations * self.inner_loop

    @property
    def seconds(self) -> tuple[float, ...]:
        """Seconds an iteration, per call of the inner loop."""
        return tuple(time / self.inner_loop / 1e9 for time in self.host_ns)


Schedule = Generator[Request, Sequence[int], Outcome]
Perform = Callable[[Request], Sequence[int]]


def drive(schedule: Schedule, perform: Perform) -> Outcome:
    """Carry a schedule out with a function that performs iterations."""
    with contextlib.closing(schedule):
        request = next(schedule)
        while True:
            times = perform(request)
            try:
                request = schedule.send(times)
            except StopIteration as finished:
                outcome: Outcome = finished.value
                return outcome


def schedule(
    device: Device,
    wanted: Recipe,
    *,
    inner: Inner | None = None,
    flush: Flush | None = None,
    calls: Calls | None = None,
) -> Schedule:
    """Ask for a warm-up and then for blocks, and judge what came back.

    Parameters
    ----------
    inner : what of the code under test has to rest while it is measured
    flush : what flushes the cache before each iteration, where it is
    calls : what makes the iterations, where an iteration may become several calls
    """
    warm = yield from warm_up(
        device, inner, warmup=wanted.warmup, max_time_s=wanted.max_time_s
    )
    if wanted.lengthens and calls is not None:
        wanted, warm = yield from lengthen(wanted, warm, calls)
    recent, warmup = warm.recent, warm.calls
    if wanted.pair is not None:
        wanted = yield from _agree(wanted, wanted.pair, recent, warmup, flush)
    with quiet_garbage() as garbage, watching_compiles() as compiles:
        device.measuring()
        state = _Measured(
            device=device,
            wanted=wanted,
            garbage=garbage,
            compiles=compiles,
            watch=Watch(device.telemetry),
            cores=usable_cores(),
            inner=inner,
            flush=flush,
        )
        yield from _measure(state, recent)
    seen = state.watch.close()
    health = judge_blocks(
        state.uses,
        repeated=state.repeated,
        cores=state.cores,
        steady=warm.steady and device.settled() and not state.restless,
    )
    return Outcome(
        iterations=len(state.host_ns),
        warmup=warmup,
        inner_loop=wanted.inner_loop,
        host_ns=tuple(state.host_ns),
        wall_ns=sum(use.own_wall_ns for use in state.uses),
        cpu_time_s=tuple(state.cpu_time_s),
        turns=tuple(state.counts) if wanted.pair else (),
        health=seen.added_to(health),
        remarks=(*warm.remarks, *_remarks(garbage, state), *seen.remarks),
        recompiles=compiles.count,
        first_s=None if warm.first_ns is None else warm.first_ns / 1e9,
        cache=HOT if flush is None else FLUSH,
        evidence=tuple(state.evidence),
    )


def _remarks(garbage: Garbage, state: "_Measured") -> Iterator[str]:
    if garbage.inside:
        yield f"garbage was collected {garbage.inside} times inside blocks"
    if state.shifts and state.inner:
        yield f"{state.inner.what} moved, blocks made again: {state.shifts}"


@dataclass(slots=True, kw_only=True)
class _Measured:
    """What the measured blocks brought so far."""

    device: Device
    wanted: Recipe
    garbage: Garbage
    compiles: Compiles
    watch: Watch
    cores: int
    host_ns: list[int] = field(default_factory=list)
    counts: list[int] = field(default_factory=list)
    uses: list[BlockUse] = field(default_factory=list)
    evidence: list[BlockEvidence] = field(default_factory=list)
    cpu_time_s: list[float] = field(default_factory=list)
    repeated: list[str] = field(default_factory=list)
    """Why each of the blocks that were measured again was."""
    uncollected_ns: int = 0
    inner: Inner | None = None
    flush: Flush | None = None
    shifts: int = 0
    """Blocks made again because `inner` moved in them."""
    restless: bool = False
    """It moved once more than blocks may be made again for."""


def _agree(
    wanted: Recipe,
    pair: Pair,
    recent: Sequence[int],
    warmup: int,
    flush: Flush | None,
) -> Generator[Request, Sequence[int], Recipe]:
    """Fix how both sides measure, unless the other one came first.

    A slower candidate that chose for itself would make fewer iterations, and
    unequal numbers move the floor and P99.
    """
    if wanted.per_turn is not None:
        return wanted
    recent = recent or (yield Request(count=1, measured=False))
    total = wanted.iterations or calibrate(recent, wanted)
    fitting = turn_of(total, each_ns(recent, flush) / 1e9)
    pair.agree(
        Agreement(
            iterations=total,
            warmup=warmup,
            per_turn=fitting,
            inner_loop=wanted.inner_loop,
        )
    )
    return replace(wanted, iterations=total, per_turn=fitting)


def _measure(
    state: _Measured, recent: Sequence[int]
) -> Generator[Request, Sequence[int], None]:
    """Measure block after block; without a warm-up the first is one iteration."""
    total = state.wanted.iterations
    _hand_over(state)
    while total is None or len(state.host_ns) < total:
        recent = recent or state.host_ns
        per_turn = state.wanted.per_turn
        usual = count = per_turn or (block_of(recent, state.flush) if recent else 1)
        if total is not None:
            count = min(count, total - len(state.host_ns))
        repeats = _repeats(total, usual, state.wanted)
        yield from _block(state, count, repeats=repeats)
        _hand_over(state)
        if total is None:
            total = calibrate(recent or state.host_ns, state.wanted)


def _hand_over(state: _Measured) -> None:
    """Let the other side have its turn; nothing of ours runs on in it."""
    if state.wanted.pair is not None:
        state.device.synchronize()
        state.wanted.pair.turn()


def _block(
    state: _Measured, count: int, *, repeats: int
) -> Generator[Request, Sequence[int], None]:
    """Measure one block, and again while it was disturbed and may be repeated."""
    dropped = 0
    while True:
        before = state.garbage.inside, state.compiles.count
        rest = state.inner and state.inner.state()
        use, times = yield from _attempt(state, count, dropped=dropped)
        if _shifted(state, rest):
            dropped = count
            continue
        why = why_disturbed(use, cores=state.cores, earlier=state.uses)
        if why is None or len(state.repeated) >= repeats:
            break
        state.repeated.append(why)
        dropped = count
    state.host_ns += times
    state.counts.append(count)
    state.uses.append(use)
    state.evidence.append(
        BlockEvidence(
            iterations=count,
            collections=state.garbage.inside - before[0],
            compilations=state.compiles.count - before[1],
            retries=use.allocation_retries,
            disturbed=why,
            waited_ns=use.delay_ns or 0,
            pushed=use.involuntary,
            sm_mhz=state.watch.sm_mhz if state.uncollected_ns == 0 else None,
        )
    )
    state.cpu_time_s.append(use.own_cpu_ns / 1e9 / count / state.wanted.inner_loop)


def _shifted(state: _Measured, before: object) -> bool:
    """Tell whether a block is to be made again: a step in it may be none at all.

    In a pair both sides take as many turns, so there it is only remarked.
    """
    if state.inner is None or state.inner.state() == before:
        return False
    if state.wanted.pair is not None:
        return False
    state.restless = state.shifts >= MOST_SHIFTS
    state.shifts += not state.restless
    return not state.restless


def _attempt(
    state: _Measured, count: int, *, dropped: int
) -> Generator[Request, Sequence[int], tuple[BlockUse, Sequence[int]]]:
    device = state.device
    with state.garbage.block():
        earlier = (0, 0) if state.flush is None else state.flush.spent
        before = device.reading(closing=False)
        times = yield Request(count=count, measured=True, dropped=dropped)
        after = device.reading(closing=True)
        spent = (0, 0) if state.flush is None else state.flush.spent
    use = replace(
        difference(before, after),
        apart_ns=spent[0] - earlier[0],
        apart_cpu_ns=spent[1] - earlier[1],
    )
    state.uncollected_ns += use.wall_ns
    if state.uncollected_ns >= COLLECT_S * 1e9:  # several turns together
        state.garbage.between()
        state.watch.look()
        state.uncollected_ns = 0
    return use, times


def _repeats(total: int | None, count: int, wanted: Recipe) -> int:
    """Say how many blocks of a run may be measured again.

    None in a pair: both of its sides take as many turns.
    """
    if total is None or wanted.pair is not None:
        return 0
    return int(DISTURBED_RUN_SHARE * math.ceil(total / count))
