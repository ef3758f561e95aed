"""Whether the host decides how long a call takes, or only waits inside of it."""

import statistics
from collections.abc import Iterator, Sequence

from pytest_perfgate.measure.counters import Counted
from pytest_perfgate.measured import HOST_BOUND

BUSY = 0.5
"""A GPU that works for this share of a call is not waiting for the host."""


def enqueue_share(
    shares: Sequence[float], counts: Counted, *, typical_s: float, fake: bool
) -> float | None:
    """Say after which share of its latency the host had handed all work over.

    Parameters
    ----------
    shares : of each call, as the host saw it; empty where the device has no events
    counts : with a trace, which sees whether the call waits for the GPU itself
    typical_s : the median call
    fake : the device is scripted, and leaves no traces

    Returns
    -------
    float or None
        None where that cannot be told: a call that waits for the GPU itself, to
        return a number or a tensor of the host's, hands the last work over late
        however busy the GPU was before. A trace tells the two apart; of a share
        that says nothing of the host none is needed.
    """
    share = statistics.median(shares) if shares else None
    if share is None or share < HOST_BOUND or fake:
        return share
    if not counts.kernels_busy_s:
        return None
    waits = any(
        series.metric.name == "syncs" and max(series.values) > 0
        for series in counts.series
    )
    busy = counts.kernels_busy_s >= BUSY * typical_s
    return None if waits and busy else share


def bound_remarks(share: float | None) -> Iterator[str]:
    """Say that the host decides, where it does."""
    if share is not None and share >= HOST_BOUND:
        yield (
            f"host-bound: {share:.0%} of the latency goes by before the GPU has been "
            "given all its work; times between events then follow the host"
        )
