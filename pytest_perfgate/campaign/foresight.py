"""What a session would do and how long it would take, before it is begun."""

from collections.abc import Iterator, Mapping, Sequence

from pytest_perfgate.campaign.shelf import Shelf
from pytest_perfgate.model import Baseline
from pytest_perfgate.settings import ItemSettings
from pytest_perfgate.units import format_duration

CONTEXT_BYTES = 1 << 30
"""What a CUDA process takes beside the memory that its allocator reserves."""


def plan_lines(
    planned: Sequence[ItemSettings], shelf: Shelf, *, runs: tuple[int, int]
) -> Iterator[str]:
    """Yield benchmarks, runs and expected minutes."""
    yield f"perfgate: plan for {shelf.key}"
    total_s = 0.0
    for own in planned:
        stored = shelf.of_item(own.nodeid)
        seconds = expected_s(own, stored)
        total_s += seconds
        what = "baseline stored" if stored else "no baseline yet"
        yield f"  {own.nodeid}: about {format_duration(seconds)} a run, {what}"
    minimum, maximum = runs
    yield (
        f"{len(planned)} benchmarks, {minimum} to {maximum} runs of each: "
        f"about {minimum * total_s / 60:.1f} to {maximum * total_s / 60:.1f} minutes "
        "and the start of each process"
    )


def expected_s(own: ItemSettings, stored: Mapping[str, Baseline]) -> float:
    """Estimate how long one run of a benchmark takes, from its baseline if there is one."""
    known = [
        baseline.plan.inner_loop
        * (baseline.plan.iterations + baseline.plan.warmup)
        * number.value
        for baseline in stored.values()
        for metric in baseline.metrics.values()
        if metric.unit == "s"
        and (number := baseline.runs[-1].get(metric.name, "median"))
    ]
    return max(known, default=own.max_time_s)


def needed_bytes(nodeids: Sequence[str], shelf: Shelf) -> float:
    """Say what the hungriest of some benchmarks took of a GPU's memory when recorded.

    Returns
    -------
    float
        Zero where no baseline tells.
    """
    took = [
        number.value
        for nodeid in nodeids
        for baseline in shelf.of_item(nodeid).values()
        for name in ("reserved_memory", "peak_memory")
        if (number := baseline.runs[-1].get(name, "max"))
    ]
    return max(took) + CONTEXT_BYTES if took else 0.0
