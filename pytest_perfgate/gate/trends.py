"""What moved while it was measured: runs that drift, or that never became steady."""

import math
import statistics

from pytest_perfgate.gate.evidence import Runs, Sides
from pytest_perfgate.gate.policy import Gate
from pytest_perfgate.measured import Metric
from pytest_perfgate.model import RunSummary
from pytest_perfgate.units import format_change

DRIFT_SHARE = 0.25
"""Of the budget: what a run may drift by."""
FIRST_CLOCK, LAST_CLOCK = "sm_clock_first_mhz", "sm_clock_last_mhz"


def why_not_steady(sides: Sides, metric: Metric, gate: Gate) -> str:
    """Say what moved within most runs of a side; empty where nothing did."""
    if sides.health.unsteady:
        return _never_steady(sides)
    if gate.budget.absolute or not sides.health.drifting:
        return ""
    allowed = gate.budget.value * DRIFT_SHARE
    return _trend(sides.candidate, metric, allowed, "") or _trend(
        sides.base_runs, metric, allowed, " of the baseline"
    )


def _never_steady(sides: Sides) -> str:
    now, before = (
        f"{sum(not run.steady for run in runs)} of {len(runs)} runs{whose}"
        for runs, whose in (
            (sides.candidate, ""),
            (sides.base_runs, " of the baseline"),
        )
    )
    return f"{now} and {before} never became steady"


def _trend(runs: Runs, metric: Metric, allowed: float, whose: str) -> str:
    """Say how far most runs drift one way.

    A neighbour that comes or goes makes a run drift too, up in one and down in
    another: that is spread between runs, which the interval has in it. Code
    that is not warm, or leaks, drifts the same way in most of them.
    """
    drifts = [(run.drift.get(metric.name, 0.0), run) for run in runs]
    up = [each for each in drifts if each[0] > allowed]
    down = [each for each in drifts if each[0] < -allowed]
    most = max(up, down, key=len)
    if len(most) <= len(runs) / 2:
        return ""
    change = format_change(math.exp(statistics.median([drift for drift, _ in most])))
    return (
        f"{metric.name} drifts by {change} within {len(most)} of {len(runs)} runs{whose}"
        f"{_clock([run for _, run in most])}"
    )


def _clock(runs: list[RunSummary]) -> str:
    """Say how the GPU's clock moved in them, where it did."""
    told = [
        (run.device[FIRST_CLOCK], run.device[LAST_CLOCK])
        for run in runs
        if FIRST_CLOCK in run.device and LAST_CLOCK in run.device
    ]
    if not told:
        return ""
    first, last = (statistics.median(each) for each in zip(*told, strict=True))
    return f", while the GPU's clock went from {first:.0f} to {last:.0f} MHz"
