"""A full queue whose launches cost nothing: `hide_launch=True`.

The GPU is kept busy with waiting until the host has handed all calls over. What
follows then takes as long as the GPU does, however slowly the host launches.
"""

import math
from collections.abc import Callable
from functools import partial

from pytest_perfgate.measure.context import MeasureContext
from pytest_perfgate.measure.counters import Counted
from pytest_perfgate.measure.device import Hidden
from pytest_perfgate.measure.garbage import quiet_garbage
from pytest_perfgate.measure.recipe import BLOCK_S
from pytest_perfgate.measure.runner import Outcome
from pytest_perfgate.measured import Metric, Samples
from pytest_perfgate.workloads.assembly import samples
from pytest_perfgate.workloads.target import Target

MOST_LAUNCHES = 500
"""In a queue, marks between the calls counted: a GPU's own holds about twice as many,
and where it is full the host waits, and is ahead no longer."""
LONGEST_S = 1.0
"""The longest that a GPU is kept waiting."""
HOLD_MARGIN = 1.2
"""Times what handing over takes, for it takes now more, now less."""
TRIES = 3
HIDDEN_PERIOD = Metric(
    name="device_period", unit="s", definition="event-period-launches-hidden/1"
)
_LAUNCHES = ("kernel_launches", "graph_launches", "copies_h2d", "copies_d2h")
_WAITS = {"syncs": "waits for the GPU", "copies_pageable": "makes pageable copies"}

Period = tuple[tuple[Samples, ...], tuple[str, ...]]
"""The period, or why there is none."""


def hidden_period(
    context: MeasureContext,
    target: Target,
    outcome: Outcome,
    counts: Counted,
    call: Callable[[], object],
) -> Period:
    """Give what a call adds to a full queue that never waits for the host.

    Parameters
    ----------
    counts : they tell how much a call launches, and that it does not wait itself
    """
    if not context.device.queues:
        name = context.device.name
        return (), (f"hide_launch=True means nothing on {name}: it has no queue",)
    launches = _launches(counts)
    if isinstance(launches, str):
        return _none(launches)
    most = max(math.ceil(BLOCK_S / max(outcome.typical_s, 1e-9)), 1)
    entries = launches + 1 + bool(context.slowdown)  # planted by a spin of its own
    found = _ahead(context, outcome, call, min(most, MOST_LAUNCHES // entries))
    if isinstance(found, str):
        return _none(found)
    periods = [period / 1e9 for period in found.period_ns]
    return (samples(HIDDEN_PERIOD, periods, where=target.benchmark),), ()


def _none(why: str) -> Period:
    return (), (f"no device_period, since no launch can be hidden: {why}",)


def _launches(counts: Counted) -> int | str:
    """Count what a call puts into the queue, or say why it cannot be put there ahead."""
    known = {series.metric.name: int(max(series.values)) for series in counts.series}
    if "kernel_launches" not in known:
        return "what a call launches was not counted"
    for name, what in _WAITS.items():
        if known.get(name):
            return f"a call {what}, {known[name]:,} times"
    launches = sum(known.get(name, 0) for name in _LAUNCHES)
    if not launches:
        return "a call launches nothing"
    if launches + 2 > MOST_LAUNCHES:
        return f"a call launches {launches:,} times, more than fit into a queue"
    return launches


def _ahead(
    context: MeasureContext, outcome: Outcome, call: Callable[[], object], count: int
) -> Hidden | str:
    """Keep the GPU waiting for long enough, or say why that cannot be."""
    own_ns = context.unslowed_ns(outcome.typical_s)
    hidden = partial(context.device.hidden, call, count=count, own_ns=own_ns)
    with quiet_garbage() as garbage, garbage.block():
        found = hidden(hold_ns=0.0)  # tells how long handing over takes
        for _ in range(TRIES):
            if found is None:
                return "this version of torch cannot keep a GPU waiting"
            hold_ns = found.handed_ns * HOLD_MARGIN
            took = f"handing {count:,} calls over takes {found.handed_ns / 1e9:.3g} s"
            if hold_ns > LONGEST_S * 1e9:
                return f"{took}, longer than a GPU should be kept waiting"
            found = hidden(hold_ns=hold_ns)
            if found is not None and found.handed_ns < found.held_ns:
                return found
    return f"handing over took longer than before, {TRIES} times"
