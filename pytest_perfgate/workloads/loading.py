"""What loading data costs a training step: the loader alone, and steps on its batches.

Two runs, once the step itself has been timed on one batch that is there already:
the loader alone, which gives its rate; and steps on what it brings, each waited for
as those that were timed were. What they take longer is the share of loading.
"""

import contextlib
import statistics
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

from pytest_perfgate.errors import PerfGateError, UsageError
from pytest_perfgate.measure.context import MeasureContext
from pytest_perfgate.measure.device import Device
from pytest_perfgate.measure.garbage import quiet_garbage
from pytest_perfgate.measure.seeding import Seeding
from pytest_perfgate.measured import METRICS, Samples
from pytest_perfgate.workloads.assembly import describe, samples

FIRST = 2
"""Batches dropped at the start of either run: workers start with them."""
FEWEST = 4
"""Batches that a loader must have."""
TIME_SHARE = 0.5
"""Share of the wanted duration of what is timed, for either of the two runs."""
_PART = "loader"
_LONGEST = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class Loader:
    """Something that brings batches, as often as it is asked to begin.

    Parameters
    ----------
    given : an iterable that can be gone through again, such as a DataLoader or a
        list; or a function without arguments that gives a fresh one
    """

    given: Any

    def __post_init__(self) -> None:
        if isinstance(self.given, Iterator):
            raise UsageError(
                f"training_step: loader={self.given!r:.{_LONGEST}} can be gone through "
                "once, and it is twice; pass the function that makes it "
                "(loader=batches, not loader=batches()), a DataLoader or a list"
            )
        if not (_is_iterable(self.given) or callable(self.given)):
            raise UsageError(
                f"training_step: loader={self.given!r:.{_LONGEST}} brings no batches; "
                "pass a DataLoader, a list of batches, or a function that gives one"
            )

    def fresh(self) -> Iterator[Any]:
        """Begin from the first batch.

        Raises
        ------
        UsageError
            The function gave something that has no batches.
        """
        if _is_iterable(self.given):
            return iter(self.given)
        made = self.given()
        if not _is_iterable(made):
            raise UsageError(
                f"training_step: loader() gave {made!r:.{_LONGEST}}, which brings no "
                "batches; let it return a DataLoader, a list, or be a generator function"
            )
        return iter(made)

    @property
    def workers(self) -> int:
        """Processes that load, as far as a DataLoader tells."""
        return int(self.given.num_workers) if self._is_torchs else 0

    @property
    def persistent(self) -> bool:
        return bool(self._is_torchs and self.given.persistent_workers)

    @property
    def _is_torchs(self) -> bool:
        data = sys.modules.get("torch.utils.data")
        return data is not None and isinstance(self.given, data.DataLoader)

    def settings(self) -> Iterator[str]:
        """Say how a DataLoader works; others do not tell."""
        if self._is_torchs:
            yield (
                f"loader: num_workers={self.workers}, "
                f"persistent_workers={self.persistent}, "
                f"pin_memory={bool(self.given.pin_memory)}"
            )


def _is_iterable(value: object) -> bool:
    kind = type(value)
    return isinstance(value, Iterable) or hasattr(kind, "__getitem__")


class _TooFew(Exception):
    """The loader ended sooner than anything can be said of it."""


class _Batches:
    """Batches without end: where the loader ends it is begun again."""

    def __init__(self, loader: Loader) -> None:
        self._loader = loader
        self._left: Iterator[Any] | None = None
        self._in_pass = 0
        self.passes = 0
        self.drawn = 0

    def __call__(self) -> Any:  # noqa: ANN401 (whatever the loader brings)
        while True:
            if self._left is None:
                self.passes, self._in_pass = self.passes + 1, 0
                self._left = self._loader.fresh()
            try:
                batch = next(self._left)
            except StopIteration:
                self._ended()
                continue
            self._in_pass += 1
            self.drawn += 1
            return batch

    def _ended(self) -> None:
        self._left = None
        if not self._in_pass and self.passes > 1:
            raise UsageError(
                "training_step: the loader brought batches once and then none; give one "
                "that can be gone through again, or a function that makes a fresh one"
            )
        if self._in_pass < FEWEST:
            raise _TooFew(self._in_pass)

    def close(self) -> None:
        """Let go of the pass that is under way, and so of its workers."""
        left: Any = self._left
        self._left = None
        if hasattr(left, "close"):
            left.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """The training that waits for the batches.

    Parameters
    ----------
    batch : what the timed step was made on
    train : makes a step on a batch and waits for it; returns nanoseconds
    step_s : the mean step on `batch`, as timed
    most : steps that are enough
    """

    batch: Any
    batch_size: int | None
    train: Callable[[Any], int]
    step_s: float
    most: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Loading:
    """What is known of loading."""

    series: tuple[Samples, ...] = ()
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Drawn:
    """One batch: how long the host waited for it, and the step on it."""

    wait_ns: int
    step_ns: int
    shapes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    batches: tuple[_Drawn, ...]
    tail_ns: int
    """Until the device had finished what loading had left to it."""
    again: bool
    """Whether the loader ended and was begun again."""


def measure_loading(
    context: MeasureContext, benchmark: str, loader: Loader, job: Job
) -> Loading:
    """Go through the loader alone, and then with training, once timing is over.

    Raises
    ------
    UsageError
        It cannot be gone through again.
    """
    with contextlib.closing(_Seeded(context.seed, benchmark)) as seeded:
        try:
            with quiet_garbage() as garbage:
                seeded.apply()
                with garbage.block():
                    alone = _run(context, loader, job.most, None)
                garbage.between()
                seeded.apply()
                with garbage.block():
                    real = _run(context, loader, job.most, job.train)
        except _TooFew as found:
            return Loading(remarks=(*loader.settings(), _too_few(found)))
    shares, odd = _share(job, real, where=benchmark)
    waits = [drawn.wait_ns / 1e9 for drawn in real.batches]
    return Loading(
        series=(
            *shares,
            samples(METRICS["loader_wait"], waits, where=benchmark),
            *_rate(job, alone, where=benchmark),
        ),
        remarks=(
            *loader.settings(),
            *odd,
            *_begun_again(loader, again=alone.again or real.again),
        ),
    )


class _Seeded:
    """The benchmark's random numbers, before each of the runs; then as they were."""

    def __init__(self, seed: int, benchmark: str) -> None:
        self._seeding, self._of = Seeding(), (seed, benchmark)

    def apply(self) -> None:
        self._seeding.apply(*self._of)

    def close(self) -> None:
        self._seeding.restore()


def _run(
    context: MeasureContext,
    loader: Loader,
    most: int,
    train: Callable[[Any], int] | None,
) -> _Run:
    """Draw batches, and train on them if there is a step to make.

    An error of the loader or of the step is raised as it is, and says where.
    """
    device, batches = context.device, _Batches(loader)
    found: list[_Drawn] = []
    limit_ns = TIME_SHARE * context.max_time_s * 1e9
    use = train or _leave_alone
    doing = "drawing"
    device.synchronize()
    try:
        with contextlib.closing(batches):
            for _ in range(FIRST):
                use(batches())
            started = device.now_ns()
            while len(found) < FEWEST - FIRST or (
                len(found) < most and device.now_ns() - started < limit_ns
            ):
                doing = "drawing"
                batch, wait_ns = _draw(device, batches)
                doing = "training on"
                step_ns = use(batch)
                found.append(
                    _Drawn(wait_ns=wait_ns, step_ns=step_ns, shapes=shapes(batch))
                )
            tail_ns = _finish(device)
    except (PerfGateError, _TooFew):
        raise
    except Exception as error:
        which = "alone" if train is None else "with training"
        error.add_note(
            f"perfgate: {doing} batch {batches.drawn} of the loader, {which}, after the "
            "step itself was timed"
        )
        raise
    return _Run(batches=tuple(found), tail_ns=tail_ns, again=batches.passes > 1)


def _leave_alone(batch: object) -> int:
    del batch
    return 0


def _draw(device: Device, batches: _Batches) -> tuple[Any, int]:
    started = device.now_ns()
    batch = batches()
    if device.stretches:
        device.stretch(device.now_ns() - started, _PART)
    return batch, device.now_ns() - started


def _finish(device: Device) -> int:
    started = device.now_ns()
    device.synchronize()
    return device.now_ns() - started


def shapes(batch: object) -> tuple[str, ...]:
    """List shape and type of all that is in a batch, whatever holds it together."""
    if isinstance(batch, Mapping):
        parts: Iterable[object] = batch.values()
    elif isinstance(batch, list | tuple):
        parts = batch
    else:
        return (describe(batch),)
    return tuple(chain.from_iterable(map(shapes, parts)))


def _share(
    job: Job, real: _Run, *, where: str
) -> tuple[tuple[Samples, ...], tuple[str, ...]]:
    """Compare steps on the loader's batches with those on the batch that was there.

    Only batches of the same shapes: a step on others is other work.
    """
    wanted = shapes(job.batch)
    like = [
        drawn.wait_ns + drawn.step_ns
        for drawn in real.batches
        if drawn.shapes == wanted
    ]
    others = [drawn.shapes for drawn in real.batches if drawn.shapes != wanted]
    few = len(like) < FEWEST - FIRST
    odd = tuple(_unlike(wanted, others[0], few=few) for _ in others[:1])
    if few:
        return (), odd
    loaded_s = statistics.fmean(like) / 1e9
    share = max(0.0, 1 - job.step_s / loaded_s) if loaded_s else 0.0
    return (samples(METRICS["data_share"], [share], where=where),), odd


def _unlike(wanted: tuple[str, ...], other: tuple[str, ...], *, few: bool) -> str:
    seen, asked = (", ".join(one) for one in (other, wanted))
    what = "no data_share" if few else "data_share leaves some batches out"
    return (
        f"{what}: the loader brings {seen:.{_LONGEST}}, batch= has {asked:.{_LONGEST}}"
    )


def _rate(job: Job, alone: _Run, *, where: str) -> tuple[Samples, ...]:
    wall_s = (sum(one.wait_ns for one in alone.batches) + alone.tail_ns) / 1e9
    if not wall_s:
        return ()
    unit, each = ("batches", 1) if job.batch_size is None else ("items", job.batch_size)
    metric = replace(METRICS["loader_rate"], unit=f"{unit}/s")
    return (samples(metric, [each * len(alone.batches) / wall_s], where=where),)


def _begun_again(loader: Loader, *, again: bool) -> Iterator[str]:
    if not again:
        return
    text = "the loader ended and was begun again, which is in its figures"
    if loader.workers and not loader.persistent:
        text += (
            f": {loader.workers} workers start anew each time; "
            "persistent_workers=True keeps them"
        )
    yield text


def _too_few(found: _TooFew) -> str:
    (count,) = found.args
    return (
        f"no figures of the loader: it has {count} batches, and fewer than {FEWEST} say "
        f"nothing, since the first {FIRST} start it"
    )
