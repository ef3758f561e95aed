"""What a trace in Chrome's format says of one call: launches, waits, copies, memory.

Read from the exported text, never from the profiler's own objects: the text is
the same from version to version, and small ones can be written by hand. Times
in it are microseconds, whole ones in old traces and fractions in new.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from pytest_perfgate.errors import MeasurementError

CALL = "perfgate::call"
"""Marks in a trace what belongs to the call; without it everything does."""
COMPILED = "Torch-Compiled Region: "
CPU_MEMORY, CUDA_MEMORY = 0, 1
"""Kinds of memory, as torch numbers them."""

_RUNTIME = frozenset({"cuda_runtime", "cuda_driver"})
_ON_DEVICE = frozenset({"kernel", "gpu_memcpy", "gpu_memset"})
_GRAPH_LAUNCHES = frozenset({"cudaGraphLaunch", "cuGraphLaunch"})
_NO_LAUNCHES = frozenset({"cudaLaunchHostFunc", "cuLaunchHostFunc"})
_COPIES = {"HtoD": "h2d", "DtoH": "d2h"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One event of a trace; what it does not have is empty or zero."""

    category: str
    name: str
    at_us: float
    lasts_us: float = 0.0
    thread: object = None
    correlation: object = None
    """Ties what the host asked for to what the device did."""
    size_bytes: int = 0
    memory: int | None = None
    """Which kind of memory was allocated (or freed: then the size is negative)."""

    @property
    def ends_us(self) -> float:
        return self.at_us + self.lasts_us

    @property
    def waits(self) -> bool:
        """Whether the host waited for the device here."""
        return self.category in _RUNTIME and (
            self.name.endswith("Synchronize") or self.name in {"cudaMemcpy", "cuMemcpy"}
        )

    @property
    def launches(self) -> bool:
        return (
            self.category in _RUNTIME
            and "Launch" in self.name
            and self.name not in _NO_LAUNCHES
        )


@dataclass(frozen=True, kw_only=True)
class Trace:
    """The events of one call, in order of time."""

    events: tuple[Event, ...] = field(repr=False)
    watched: bool = True
    """Whether anything was told of what the host asked of a GPU, in the call or
    outside of it: our own wait at least."""

    # -- what the host asked for

    @cached_property
    def _launches(self) -> list[Event]:
        """Calls that launch; one that the driver lists again counts once."""
        seen: dict[object, Event] = {}
        for number, event in enumerate(self.events):
            if event.launches:
                tie = event.correlation
                seen.setdefault(("alone", number) if tie is None else tie, event)
        return list(seen.values())

    @property
    def kernel_launches(self) -> int:
        """Calls that launch a kernel or a whole graph of them."""
        return len(self._launches)

    @property
    def graph_launches(self) -> int:
        return sum(event.name in _GRAPH_LAUNCHES for event in self._launches)

    @property
    def syncs(self) -> int:
        """How often the host waited.

        A copy into pageable memory makes it wait without saying so. Where the
        same thread synchronises right after it, that is one wait, not two.
        """
        said = sum(event.waits for event in self.events)
        blocking = {
            event.correlation
            for event in self.events
            if event.category == "gpu_memcpy"
            and "DtoH" in event.name
            and "Pageable" in event.name
        }
        return said + sum(
            first.correlation in blocking and not (first.waits or after)
            for first, after in self._with_next_wait()
        )

    def _with_next_wait(self) -> Iterator[tuple[Event, bool]]:
        """Each call of the runtime, and whether the thread's next one waits."""
        following: dict[object, bool] = {}
        for event in reversed(self.events):
            if event.category in _RUNTIME:
                yield event, following.get(event.thread, False)
                following[event.thread] = event.waits

    # -- what the device did

    @property
    def kernels(self) -> int:
        return sum(event.category == "kernel" for event in self.events)

    @property
    def busy_s(self) -> float:
        """How long kernels ran; where several ran at once, that time counts once."""
        busy_us, until = 0.0, float("-inf")
        for event in self.events:
            if event.category == "kernel":
                busy_us += max(0.0, event.ends_us - max(event.at_us, until))
                until = max(until, event.ends_us)
        return busy_us / 1e6

    @property
    def driven(self) -> bool:
        """Whether a kernel was launched past torch's operators, as Triton does."""
        return any(event.category == "cuda_driver" for event in self._launches)

    @property
    def on_device(self) -> bool:
        """Whether a device did anything at all."""
        return any(event.category in _ON_DEVICE for event in self.events)

    def copies(self, way: str) -> tuple[int, int]:
        """Give how many copies went `h2d` or `d2h`, and their bytes in all."""
        sizes = [e.size_bytes for e in self.events if _way_of(e) == way]
        return len(sizes), sum(sizes)

    @property
    def pageable_copies(self) -> int:
        """Copies from or to host memory that is not pinned."""
        return sum("Pageable" in e.name for e in self.events if _way_of(e) is not None)

    # -- memory and compiled code

    def allocations(self, kind: int) -> int:
        """How often memory of a kind was allocated."""
        return sum(e.memory == kind and e.size_bytes > 0 for e in self.events)

    def peak_bytes(self, kind: int) -> int:
        """Give the most that was allocated at once, over what was there before."""
        peak = held = 0
        for event in self.events:
            if event.memory == kind:
                held += event.size_bytes
                peak = max(peak, held)
        return peak

    @property
    def compiled(self) -> frozenset[str]:
        """Ids of the compiled graphs that ran, `0/0` and the like."""
        return frozenset(
            e.name.removeprefix(COMPILED)
            for e in self.events
            if e.name.startswith(COMPILED)
        )


def _way_of(event: Event) -> str | None:
    if event.category != "gpu_memcpy":
        return None
    return next((way for kind, way in _COPIES.items() if kind in event.name), None)


def read_trace(text: str, *, where: str = "trace") -> Trace:
    """Read a trace and keep what belongs to the call.

    Raises
    ------
    MeasurementError
        It is cut off, or no trace.
    """
    try:
        raw = json.loads(text)
    except ValueError as error:
        raise MeasurementError(f"{where} is cut off or no JSON: {error}") from error
    listed = raw.get("traceEvents") if isinstance(raw, dict) else raw
    if not isinstance(listed, list):
        raise MeasurementError(f"{where} has no traceEvents: it is no trace")
    events = sorted(_events(listed), key=lambda event: event.at_us)
    watched = any(event.category in _RUNTIME for event in events)
    return Trace(events=tuple(_of_the_call(events)), watched=watched)


def _events(listed: Iterable[Any]) -> Iterator[Event]:
    for raw in listed:
        if isinstance(raw, dict) and raw.get("ph") in {"X", "i"}:
            event = _event(raw)
            if event is not None:
                yield event


def _event(raw: dict[str, Any]) -> Event | None:
    args = raw.get("args")
    args = args if isinstance(args, dict) else {}
    name = str(raw.get("name", ""))
    instant = raw["ph"] == "i"
    if instant and name != "[memory]":
        return None
    size = args.get("Bytes" if instant else "bytes", 0)
    return Event(
        category=str(raw.get("cat", "")),
        name=name,
        at_us=float(raw.get("ts", 0.0)),
        lasts_us=float(raw.get("dur", 0.0)),
        thread=raw.get("tid"),
        correlation=args.get("correlation"),
        size_bytes=size if isinstance(size, int) else 0,
        memory=args.get("Device Type") if instant else None,
    )


def _of_the_call(events: list[Event]) -> Iterator[Event]:
    """Keep what happened during the call, and what the device did for it later."""
    marks = [e for e in events if e.name == CALL and e.category not in _ON_DEVICE]
    marks = [e for e in marks if not e.category.startswith("gpu_")]
    if not marks:
        yield from events
        return
    mark = marks[0]
    asked = {
        event.correlation: mark.at_us <= event.at_us <= mark.ends_us
        for event in events
        if event.category in _RUNTIME and event.correlation is not None
    }
    for event in events:
        within = mark.at_us <= event.at_us <= mark.ends_us
        if event.category in _ON_DEVICE:
            within = asked.get(event.correlation, within)
        if within and event.name != CALL:
            yield event
