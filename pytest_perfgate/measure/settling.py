"""The first part of a warm-up: until calls do nothing for the first time any more.

A call may still compile, take memory from the driver, or find its loss scale. Only
when that is over does it make sense to wait until the clocks of a GPU hold, and only
then to look at durations.
"""

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass

from pytest_perfgate.measure.compile_watch import watching_compiles
from pytest_perfgate.measure.device import Device

QUIET_CALLS = 2
"""In a row, after the cold call: a recorded graph is replayed by the third."""
MOST_CALLS = 50
CLOCKS_LEAST_S, CLOCKS_MOST_S = 1.0, 10.0
CLOCKS_APART_S = 0.25
CLOCKS_HOLD = 0.02
"""Two readings of the clock that differ by less are the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """So many iterations, please."""

    count: int
    measured: bool
    first: bool = False
    """The first of all: one call, whatever the inner loop."""
    dropped: int = 0
    """Forget so many of the iterations measured last, first: something disturbed
    them, and these are made in their place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Inner:
    """What of the code under test has to come to rest, such as a loss scale."""

    what: str
    state: Callable[[], object]
    calls: int
    """So many in a row must leave it as it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """What came of the first part of a warm-up."""

    times: tuple[int, ...]
    """Of the calls until it was quiet."""
    clock_calls: int
    """Calls made while the clocks came to hold."""
    quiet: bool
    remarks: tuple[str, ...] = ()


Settling = Generator[Request, Sequence[int], Settled]


def settle(device: Device, inner: Inner | None, *, patience_s: float) -> Settling:
    """Call until two calls in a row bring nothing new, then until clocks hold.

    Parameters
    ----------
    patience_s : how long the calls may take that it needs to become quiet
    """
    times, quiet = yield from _until_quiet(device, inner, patience_s)
    calls, remarks = yield from _until_clocks_hold(device)
    return Settled(
        times=tuple(times), clock_calls=calls, quiet=quiet, remarks=tuple(remarks)
    )


def _until_quiet(
    device: Device, inner: Inner | None, patience_s: float
) -> Generator[Request, Sequence[int], tuple[list[int], bool]]:
    times: list[int] = []
    quiet = rested = 0
    wanted = 0 if inner is None else inner.calls
    while quiet < QUIET_CALLS or rested < wanted:
        if len(times) >= MOST_CALLS or sum(times) > patience_s * 1e9:
            return times, False
        memory = device.allocator_state()
        state = inner and inner.state()
        with watching_compiles(every=True) as compiles:
            times += yield Request(count=1, measured=False)
        silent = not compiles.count and device.allocator_state() == memory
        quiet = quiet + 1 if silent else 0
        rested = rested + 1 if state == (inner and inner.state()) else 0
    return times, True


def _until_clocks_hold(
    device: Device,
) -> Generator[Request, Sequence[int], tuple[int, list[str]]]:
    """Keep a GPU busy, reading its clock between calls, four times a second."""
    calls, last = 0, _clock_mhz(device)
    started = looked = device.now_ns()
    while last:
        yield Request(count=1, measured=False)
        calls += 1
        now = device.now_ns()
        if now - looked < CLOCKS_APART_S * 1e9:
            continue
        looked, before, last = now, last, _clock_mhz(device)
        moved = abs((last or before) / before - 1)
        spent_s = (now - started) / 1e9
        if spent_s >= CLOCKS_LEAST_S and moved < CLOCKS_HOLD:
            break
        if spent_s >= CLOCKS_MOST_S:
            text = (
                f"the GPU's clock still moved by {moved:.1%} in a quarter of a second"
            )
            return calls, [f"{text}, after {spent_s:.1f} s of warm-up"]
    return calls, []


def _clock_mhz(device: Device) -> float | None:
    telemetry = device.telemetry
    return None if telemetry is None else telemetry.read().sm_mhz
