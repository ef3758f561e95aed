"""Rounds that pytest-benchmark makes: one sample is a round's mean call."""

import statistics
import sys
from collections.abc import Callable

from pytest_perfgate.errors import UsageError
from pytest_perfgate.interop.benchmark_calls import Foreign, Prepare
from pytest_perfgate.interop.pytest_benchmark import Doors, Driver, Found, Rounds
from pytest_perfgate.measure.context import Agreement, MeasureContext
from pytest_perfgate.measure.counters import (
    NOTHING,
    Counted,
    Occasion,
    count_prepared,
)
from pytest_perfgate.measure.cpu_guard import (
    BlockUse,
    Reading,
    difference,
    judge_blocks,
    usable_cores,
)
from pytest_perfgate.measure.health import Watch
from pytest_perfgate.measure.recipe import BLOCK_S, TURN_S, turn_of
from pytest_perfgate.measure.runner import COLLECT_S
from pytest_perfgate.measure.seeding import Seeding
from pytest_perfgate.measured import ROUND_LATENCY, Measurement, Plan
from pytest_perfgate.workloads.assembly import samples, torch_threads

_LONGEST = 200
_EXACT = (
    "no counts of benchmark.pedantic: just as many calls are made as it says; "
    "@pytest.mark.perfgate(counts=True) adds some"
)


class BenchmarkRounds:
    """Stands behind pytest-benchmark's fixture for one test.

    Parameters
    ----------
    fixture : its object, before the test has it
    """

    def __init__(self, context: MeasureContext, nodeid: str, fixture: Foreign) -> None:
        self._context = context
        self._nodeid = nodeid
        self._uses: list[BlockUse] = []
        self._before: Reading | None = None
        self._watch = Watch(None)
        self._seen = self._watch.close()
        self._unwatched_ns = 0
        self._counted = NOTHING
        self._over = False
        self._seeding = Seeding()
        self._seeding.apply(context.seed, nodeid)
        device = context.device
        agreed = context.pair.begin(nodeid) if context.pair else None
        device.begin(nodeid, run=context.run, slowdown=context.slowdown)
        self.driver = Driver(
            fixture,
            Doors(
                begin=self._begin,
                pause=self._pause,
                pause_s=BLOCK_S if context.pair is None else TURN_S,
                pause_rounds=agreed.per_turn if agreed else None,
                settle=self._settle if context.pair and not agreed else None,
                stretch=self._stretch if device.stretches else None,
                after=self._count if context.counting else None,
                after_pedantic=self._after_pedantic if context.counting else None,
                clock=(lambda: device.now_ns() / 1e9) if device.fake else None,
            ),
            where=nodeid,
            governing=_agreed(agreed) if agreed else _governing(context, nodeid),
        )
        self._say_what_is_lacking()

    def _say_what_is_lacking(self) -> None:
        driver, context = self.driver, self._context
        this = "this version of pytest-benchmark lets perfgate"
        if not driver.fixes_rounds:
            context.note(
                f"{this} not fix the number of rounds: runs may not be comparable"
            )
        if not driver.takes_turns:
            context.note(
                f"{this} do nothing between rounds: sides of a pair cannot take turns, "
                "and neighbours on the CPU are not noticed"
            )
        if context.counting and not driver.reaches_ends:
            context.note(f"{this} not call once more, to take counts")
        if driver.reaches_calls:
            return
        if context.device.fake:
            raise UsageError(f"{this} not reach the calls, which a fake device needs")
        if context.slowdown:
            context.note(f"{self._nodeid}: {this} not slow down what it calls")

    # -- while it measures

    def _stretch(self) -> Callable[[], None]:
        device = self._context.device
        device.synchronize()
        started = device.now_ns()

        def done() -> None:
            device.synchronize()
            device.stretch(device.now_ns() - started, "call")
            device.synchronize()

        return done

    def _settle(self, rounds: Rounds, round_s: float) -> int:
        """Fix the turns for both sides of a pair, as the first to know the rounds."""
        per_turn = turn_of(rounds.rounds, round_s)
        if self._context.pair is not None:
            self._context.pair.agree(
                Agreement(
                    iterations=rounds.rounds,
                    warmup=0,
                    per_turn=per_turn,
                    inner_loop=rounds.iterations,
                )
            )
        return per_turn

    def _begin(self) -> None:
        self._context.hand_over()
        self._context.device.measuring()
        self._watch = Watch(self._context.device.telemetry)
        self._open()

    def _open(self) -> None:
        self._before = self._context.device.reading(closing=False)

    def _close(self) -> None:
        if self._before is not None:
            after = self._context.device.reading(closing=True)
            self._uses.append(difference(self._before, after))
            self._unwatched_ns += self._uses[-1].wall_ns
            self._before = None

    def _pause(self) -> None:
        self._close()
        if self._unwatched_ns >= COLLECT_S * 1e9:  # several turns together
            self._watch.look()
            self._unwatched_ns = 0
        self._context.hand_over()
        self._open()

    # -- afterwards

    def _end(self) -> None:
        """Close what was measured, before anything else is done; once."""
        if not self._over:
            self._over = True
            self._close()
            self._seen = self._watch.close()
            self._context.hand_over()

    def _after_pedantic(self, prepare: Prepare) -> None:
        """Make no call more than the test says, unless it is asked for."""
        if self._context.counting_asked:
            self._count(prepare)
        elif "torch" in sys.modules:
            self._counted = Counted(remarks=(_EXACT,))

    def _count(self, prepare: Prepare) -> None:
        """Count what one call does, now that all rounds have been made."""
        self._end()
        found = self.driver.read()
        context = self._context
        self._counted = count_prepared(
            Occasion(
                device=context.device,
                made=found.rounds * found.iterations,
                typical_s=statistics.median(found.seconds),
                # its own warm-up cannot be told from its rounds
                recompiles=None,
                breaks=context.breaks,
            ),
            prepare,
        )

    def measurement(self) -> Measurement:
        """Make the record of what was measured.

        Raises
        ------
        NothingMeasured
            The fixture was not called, or its call raised.
        BadSample
            A time is not a finite number.
        """
        self._end()
        found = self.driver.read()
        context = self._context
        told = _remarks(found) if context.run <= 1 else ()
        health = judge_blocks(
            self._uses, cores=usable_cores(), steady=context.device.settled()
        )
        series = samples(ROUND_LATENCY, found.seconds, where=self._nodeid)
        return Measurement(
            benchmark=self._nodeid,
            nodeid=self._nodeid,
            run=context.run,
            plan=self._plan(found),
            samples=(series, *self._counted.series),
            profile=self._counted.profile,
            health=self._seen.added_to(health),
            clock_tick_s=context.device.tick_s / found.iterations,
            alone=context.alone,
            remarks=(*self._seen.remarks, *self._counted.remarks, *told),
            turns=found.turns if context.pair else (),
        )

    def _plan(self, found: Found) -> Plan:
        return Plan(
            iterations=found.rounds,
            warmup=0,  # it warms up while it calibrates, and keeps no count
            inner_loop=found.iterations,
            seed=self._context.seed,
            threads=torch_threads(),
            device=self._context.device.name,
            workload=self.driver.workload,
        )

    def close(self) -> None:
        """Put back what was changed."""
        self._seeding.restore()


def _agreed(agreed: Agreement) -> Rounds:
    return Rounds(rounds=agreed.iterations, iterations=agreed.inner_loop or 1)


def _governing(context: MeasureContext, nodeid: str) -> Rounds | None:
    """Find the rounds of the stored plan, or of the first run of this session."""
    plan = context.plans.get(nodeid)
    if plan is not None:
        return Rounds(
            rounds=plan.iterations, iterations=plan.inner_loop, workload=plan.workload
        )
    calibrated = context.calibrated.get(nodeid)
    inner = context.calibrated_inner.get(nodeid)
    if calibrated is None or inner is None:
        return None
    return Rounds(rounds=calibrated, iterations=inner)


def _remarks(found: Found) -> tuple[str, ...]:
    """Hand on what the test says of itself, once a session: it may vary by run."""
    told = []
    if found.group is not None:
        told.append(f"group: {found.group}")
    if found.extra_info:
        told.append(f"extra_info: {found.extra_info!r:.{_LONGEST}}")
    return tuple(told)
