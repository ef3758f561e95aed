"""What calls that hand their work to a GPU took, and what of it the host can spoil.

A host that was pushed aside while the GPU worked on has lost nothing that anybody
waits for. One that was pushed aside while it handed work over, or after all was
done, has made the call longer.
"""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from pytest_perfgate.measured import HOST_BOUND

UNSEEN_SHARE = 0.02
"""So little of the latency is not seen in it; the CPU guard's own bound."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OnGpu:
    """What the calls of a block have to do with the host."""

    enqueue_share: float
    """Of all latency, until the host had handed all work over."""
    worst_share: float
    """Of one call's latency: what lies outside of the GPU's own time, and what
    handing over took longer than usual. That of the worst call."""

    def covers(self, lost_share: float) -> bool:
        """Tell whether the GPU was waited for, whatever the host had lost.

        Not one call may show it. And what the host lost while it handed work over,
        so that the GPU may have run dry in each of them, must be as little.
        """
        if self.enqueue_share >= HOST_BOUND or self.worst_share > UNSEEN_SHARE:
            return False
        return lost_share * self.enqueue_share <= UNSEEN_SHARE


def on_gpu(
    latencies: Sequence[int], enqueued: Sequence[int], spans: Sequence[float]
) -> OnGpu:
    """Look at the calls of a block.

    Parameters
    ----------
    latencies, enqueued : nanoseconds a call, until all was done and handed over
    spans : likewise, between the events around its work
    """
    usual = statistics.median(enqueued)
    return OnGpu(
        enqueue_share=sum(enqueued) / max(sum(latencies), 1),
        worst_share=max(
            (latency - span + max(handed - usual, 0)) / max(latency, 1)
            for latency, handed, span in zip(latencies, enqueued, spans, strict=True)
        ),
    )
