"""The loop form: the user writes the loop, and each round is one iteration."""

import contextlib
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from types import TracebackType

from pytest_perfgate.errors import MeasurementError, UsageError
from pytest_perfgate.measure.context import MeasureContext
from pytest_perfgate.measure.counters import NOTHING, Count, failed, not_taken
from pytest_perfgate.measure.device import Device
from pytest_perfgate.measure.recipe import recipe
from pytest_perfgate.measure.runner import Outcome, schedule
from pytest_perfgate.measured import METRICS, Measurement, Metric, Samples
from pytest_perfgate.workloads.assembly import (
    Findings,
    assemble,
    occasion,
    samples,
    workload_digest,
)
from pytest_perfgate.workloads.target import Target


class Stage:
    """Times a named part of a round; entered twice, its times add up."""

    __slots__ = ("_book", "_name", "_open", "_started", "_stretched")

    def __init__(self, book: "StageBook", name: str) -> None:
        self._book = book
        self._name = name
        self._open = False

    def __enter__(self) -> None:
        book = self._book
        if self._open:
            raise MeasurementError(
                f"stage {self._name!r} inside itself would count its time twice; "
                "give the inner one a name of its own"
            )
        self._open = True
        self._stretched = book.stretched_ns
        if book.synchronizes:
            book.device.synchronize()
        self._started = book.now_ns()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        book = self._book
        if book.synchronizes:
            book.device.synchronize()
        stopped = book.now_ns()
        self._open = False
        if book.stretches:
            within = book.stretched_ns - self._stretched
            stopped = book.stretch(stopped - self._started - within, self._name)
        book.add(self._name, stopped - self._started)


@dataclass(slots=True, kw_only=True)
class StageBook:
    """Collects the times of stages, round by round."""

    device: Device
    synchronizes: bool
    """The device is waited for at both ends of a stage."""
    now_ns: Callable[[], int]
    stretches: bool = False
    """Stages are slowed down."""
    open_round: dict[str, int] = field(default_factory=dict)
    times_ns: dict[str, list[int]] = field(default_factory=dict)
    rounds: int = 0
    stretched_ns: int = 0
    """Time of this round that has had its slowdown, the slowdown included."""

    def add(self, name: str, duration_ns: int) -> None:
        open_round = self.open_round
        open_round[name] = open_round.get(name, 0) + duration_ns

    def stretch(self, own_ns: int, name: str | None) -> int:
        """Slow a part down by its own time; returns when that is over."""
        started = self.now_ns()
        self.device.stretch(own_ns, "round" if name is None else f"stage:{name}")
        stopped = self.now_ns()
        self.stretched_ns += own_ns + stopped - started
        return stopped

    def close_round(self, *, measured: bool) -> None:
        """File the round's stages.

        Raises
        ------
        MeasurementError
            A stage is missing in some round.
        """
        if measured:
            self._compare()
            self.rounds += 1
            for name, duration_ns in self.open_round.items():
                self.times_ns.setdefault(name, []).append(duration_ns)
        self.open_round = {}

    def rest(self) -> None:
        """Leave from now on stages as they are: nothing is timed any more."""
        self.synchronizes = self.stretches = False

    def forget(self, count: int) -> None:
        """Forget the rounds filed last."""
        self.rounds -= count
        for times in self.times_ns.values():
            del times[-count:]

    def _compare(self) -> None:
        if not self.rounds:
            return
        unequal = sorted(self.open_round.keys() ^ self.times_ns.keys())
        if unequal:
            raise MeasurementError(
                f"stage {unequal[0]!r} is in some iterations and not in others "
                f"(seen at iteration {self.rounds}); enter every stage in each"
            )

    def samples(self, where: str) -> tuple[Samples, ...]:
        return tuple(
            samples(
                Metric(name=f"stage:{name}", unit="s", definition="host-wall/1"),
                [duration / 1e9 for duration in times],
                where=where,
            )
            for name, times in self.times_ns.items()
        )


class Rounds:
    """The rounds of one measurement, to be gone through to their end."""

    def __init__(
        self,
        context: MeasureContext,
        target: Target,
        *,
        done: Callable[[Measurement], None],
    ) -> None:
        device = context.device
        self._context = context
        self._target = target
        self._done = done
        self._stages: dict[str, Stage] = {}
        self._outcome: Outcome | None = None
        self._counted = NOTHING
        self._book = StageBook(
            device=device,
            synchronizes=device.name.startswith("cuda"),
            now_ns=device.now_ns,
        )

    def stage(self, name: str) -> Stage:
        """Return the stage of that name, always the same one.

        Raises
        ------
        UsageError
            The name is empty or not printable.
        """
        stage = self._stages.get(name)
        if stage is None:
            if not name.strip() or not name.isprintable():
                raise UsageError(f"{name!r} is no name of a stage; use printable text")
            stage = self._stages[name] = Stage(self._book, name)
        return stage

    def __iter__(self) -> Generator[int, None, None]:
        context, book = self._context, self._book
        device = context.device
        device.begin(self._target.benchmark, run=context.run, slowdown=context.slowdown)
        book.stretches = device.stretches
        wanted = recipe(context, self._target.benchmark).single("the loop form")
        plan = schedule(device, wanted)
        now_ns = book.now_ns
        done = 0
        with contextlib.closing(plan):
            request = next(plan)
            while self._outcome is None:
                if request.dropped:
                    book.forget(request.dropped)
                times = [0] * request.count
                for index in range(request.count):
                    book.stretched_ns = 0
                    if book.synchronizes:
                        device.synchronize()
                    started = now_ns()
                    yield done
                    if book.synchronizes:
                        device.synchronize()
                    stopped = now_ns()
                    if book.stretches:
                        own_ns = stopped - started - book.stretched_ns
                        stopped = book.stretch(own_ns, None)
                    times[index] = stopped - started
                    book.close_round(measured=request.measured)
                    done += 1
                try:
                    request = plan.send(times)
                except StopIteration as finished:
                    self._outcome = finished.value
        book.rest()
        if context.counting:
            yield from self._count(self._outcome, done)
        self.finish()

    def _count(self, outcome: Outcome, done: int) -> Generator[int, None, None]:
        """Lend some more rounds, each of them under a counter.

        What the body raises does not come here, but closes this generator.
        """
        count = Count(occasion(self._context, outcome))
        self._counted = not_taken("the loop was left in a round that was counted")
        try:
            with contextlib.closing(iter(count)) as passes:
                for one in passes:
                    with one:
                        yield done
                    done += 1
        except Exception as error:  # noqa: BLE001 (what torch raises here must not cost the times, which are there already)
            self._counted = failed(error)
        else:
            self._counted = count.found

    @property
    def is_timed(self) -> bool:
        """Whether all timed rounds have been made: what is left is to count."""
        return self._outcome is not None

    def finish(self) -> None:
        """Hand over what was measured, once all timed rounds have been made."""
        if self._outcome is not None:
            self._done(self._assemble(self._outcome))

    def _assemble(self, outcome: Outcome) -> Measurement:
        where = self._target.benchmark
        latency = samples(METRICS["latency"], outcome.seconds, where=where)
        found = Findings(
            series=(latency, *self._book.samples(where)),
            workload=workload_digest("iterations"),
            counted=self._counted,
        )
        return assemble(self._context, self._target, outcome, found)
