"""Several calls for a sample, where one is too short for the events of a device.

The span between two events has the gaps between launches in it. Of a call of a few
microseconds it is made of little else; of many calls one after the other it is not.
"""

import math
import statistics
from collections.abc import Generator, Sequence
from dataclasses import replace
from typing import Protocol

from pytest_perfgate.measure.recipe import Recipe
from pytest_perfgate.measure.settling import Request
from pytest_perfgate.measure.warming import MOST, Warm

SHORTEST_SPAN_S = 50e-6
"""Below it events measure the gaps between launches."""
LONG_ENOUGH_S = 200e-6
"""What a sample of several calls should span at least."""
MOST_CALLS = 1000
TRIED = 5
"""Iterations whose median span decides."""
_TRIES = 3
_MORE = 1.25
"""Aimed higher by so much after each try: calls in a row take less than apart."""


class Calls(Protocol):
    """What makes the iterations, and sees how long the device is at them."""

    inner: int
    """Calls in an iteration; set here."""
    spans_ns: Sequence[float] | None
    """Of the last warm iterations, five at most; None where there are no events."""


def calls_needed(span_s: float, *, inner: int = 1) -> int:
    """Count the calls that make a sample long enough, given the span of so many."""
    wanted = inner * LONG_ENOUGH_S / max(span_s, 1e-9)
    return min(math.ceil(round(wanted, 6)), MOST_CALLS)  # 200.00000000000003 is 200


def lengthen(
    wanted: Recipe, warm: Warm, calls: Calls
) -> Generator[Request, Sequence[int], tuple[Recipe, Warm]]:
    """Put more calls into an iteration if the device is done with one too soon.

    Parameters
    ----------
    warm : what single calls of a warm-up left behind

    Returns
    -------
    tuple[Recipe, Warm]
        As they were; or with an inner loop, and with a warm-up that counts its
        iterations, as the plan does: calls that were made one by one are added up.
    """
    if calls.spans_ns is None:
        return wanted, warm
    last, singles = yield from _singles(calls, warm.recent)
    # what is over for the events and not for the host is work on another stream
    elsewhere = statistics.median(last) >= LONG_ENOUGH_S * 1e9
    if elsewhere or _long(calls.spans_ns):
        return wanted, _made(wanted, warm, warm.calls + singles)
    recent, more = yield from _enough(calls)
    iterations = math.ceil((warm.calls + singles + more) / calls.inner)
    while iterations < (wanted.warmup or 0):
        left = min((wanted.warmup or 0) - iterations, MOST)
        recent = yield Request(count=left, measured=False)
        iterations += left
    longer = replace(wanted, inner_loop=calls.inner)
    return longer, _made(wanted, replace(warm, recent=recent[-TRIED:]), iterations)


def _made(wanted: Recipe, warm: Warm, iterations: int) -> Warm:
    """Count what was made; a stated number stands, and later runs keep to it."""
    return replace(warm, calls=wanted.warmup or iterations)


def _singles(
    calls: Calls, recent: Sequence[int]
) -> Generator[Request, Sequence[int], tuple[Sequence[int], int]]:
    """Make the calls it takes to know how long one is: none where it is known.

    Returns
    -------
    tuple
        The last durations as the host saw them, and how many calls were made.
    """
    made = 0
    for count in (1, TRIED):
        known = calls.spans_ns or ()
        if len(known) >= TRIED or _long(known):
            break
        if count == 1 and known:
            continue
        recent = yield Request(count=count, measured=False)
        made += count
    return recent, made


def _enough(
    calls: Calls,
) -> Generator[Request, Sequence[int], tuple[Sequence[int], int]]:
    """Try how many calls it takes; gives the last durations, and the calls made."""
    made, aim = 0, 1.0
    recent: Sequence[int] = ()
    for _ in range(_TRIES):
        span_s = _typical_s(calls)
        calls.inner = calls_needed(span_s / aim, inner=calls.inner)
        recent = yield Request(count=TRIED, measured=False)
        made += TRIED * calls.inner
        if calls.inner == MOST_CALLS or _typical_s(calls) >= LONG_ENOUGH_S:
            break
        aim *= _MORE
    return recent, made


def _typical_s(calls: Calls) -> float:
    return statistics.median(calls.spans_ns or (0.0,)) / 1e9


def _long(spans_ns: Sequence[float]) -> bool:
    return bool(spans_ns) and statistics.median(spans_ns) >= SHORTEST_SPAN_S * 1e9
