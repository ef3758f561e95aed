"""The warm-up of a measurement: nothing new, clocks that hold, durations that agree."""

import math
import statistics
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, replace

from pytest_perfgate.measure.compile_watch import watching_compiles
from pytest_perfgate.measure.device import Device
from pytest_perfgate.measure.settling import Inner, Request, settle
from pytest_perfgate.measure.warmup import BATCH, FEW, is_steady

MOST = 5000
"""Iterations at most, of a warm-up and of what is measured after it."""
WARMUP_SHARE = 0.5
"""Share of the wanted duration that warm-up may take, the first call apart."""
WARMUP_LEAST_SHARE = 0.1
"""And must take, if the function is not so fast that the count ends it."""
SETTLING_SHARE = 10.0
"""Times the wanted duration that a call may take to bring nothing new any more."""
WARMUP_LEAST = BATCH * FEW
WARMUP_LEAST_SLOW = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Warm:
    """What a warm-up left behind."""

    recent: Sequence[int] = ()
    """The last durations."""
    calls: int = 0
    steady: bool = True
    remarks: tuple[str, ...] = ()
    first_ns: int | None = None
    """What the first call took, in which all happens that happens once."""


WarmUp = Generator[Request, Sequence[int], Warm]


def warm_up(
    device: Device, inner: Inner | None, *, warmup: int | None, max_time_s: float
) -> WarmUp:
    """Make a stated number of calls, or as many as it takes.

    Parameters
    ----------
    inner : what of the code under test has to rest
    warmup : the number of calls; None finds out
    max_time_s : the wanted duration of what is measured afterwards
    """
    if warmup == 0:
        return Warm()
    with watching_compiles() as compiles:
        (first_ns,) = yield Request(count=1, measured=False, first=True)
    warm = yield from _after_first(device, inner, warmup, max_time_s)
    told = _compiled(compiles.count)
    return replace(warm, first_ns=first_ns, remarks=(*told, *warm.remarks))


def _compiled(functions: int) -> Iterator[str]:
    if functions:
        yield f"functions compiled in the first call: {functions}"


def _after_first(
    device: Device, inner: Inner | None, warmup: int | None, max_time_s: float
) -> WarmUp:
    if warmup is None:
        return (yield from _until_warm(device, inner, max_time_s))
    times: list[int] = []
    while len(times) < warmup - 1:
        # in portions: a GPU makes two events for each call of a request
        left = warmup - 1 - len(times)
        times += yield Request(count=min(left, MOST), measured=False)
    return Warm(recent=tuple(times[-BATCH:]), calls=1 + len(times))


def _until_warm(device: Device, inner: Inner | None, max_time_s: float) -> WarmUp:
    patience_s = SETTLING_SHARE * max_time_s
    first = yield from settle(device, inner, patience_s=patience_s)
    times, steady = yield from _until_steady(max_time_s, list(first.times))
    return Warm(
        recent=times[-BATCH:],
        calls=1 + len(times) + first.clock_calls,
        steady=steady and first.quiet,
        remarks=first.remarks,
    )


def _until_steady(
    max_time_s: float, times: list[int]
) -> Generator[Request, Sequence[int], tuple[list[int], bool]]:
    limit_ns = WARMUP_SHARE * max_time_s * 1e9
    least_ns = WARMUP_LEAST_SHARE * max_time_s * 1e9
    while True:
        left_ns = limit_ns - sum(times)
        times += yield Request(count=_next_warmup(times, left_ns), measured=False)
        enough = len(times) >= WARMUP_LEAST and sum(times) >= least_ns
        steady = is_steady(times)
        if (enough or len(times) >= MOST) and steady:
            return times, True
        late = sum(times) >= limit_ns and len(times) >= WARMUP_LEAST_SLOW
        if late or len(times) >= MOST:
            return times, steady


def _next_warmup(times: Sequence[int], left_ns: float) -> int:
    """Half as many again, but no more than fit into the time that is left."""
    if len(times) < WARMUP_LEAST_SLOW:
        return 1
    typical = max(statistics.median(times[-BATCH:]), 1)
    fitting = max(1, math.ceil(left_ns / typical))
    grown = max(BATCH, len(times) // 2)
    return min(grown, fitting, MOST - len(times))
