"""Whether the host decides how long a call takes, on each side of a comparison.

Where it does on both, the time between a GPU's events follows the host: what it
has to say stands in the latency already. Where it does on one side alone, that it
began or ceased to is itself a change, and often the cause of one.
"""

from dataclasses import dataclass
from statistics import median_low

from pytest_perfgate.measured import HOST_BOUND, Metric
from pytest_perfgate.model import RunSummary
from pytest_perfgate.units import format_fraction

DEVICE_TIME = "device_time"
NAMED = "host-bound on both sides, and gated because a budget names it"
BASELINE_SILENT = (
    "host-bound now, and the baseline does not tell whether it was: device_time is "
    "gated as ever; record it anew to have it told"
)
_OF_LATENCY = "of the latency goes by before the GPU has all its work"

Runs = tuple[RunSummary, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """The share of the latency by which the host was done handing work over.

    None where most runs of a side do not tell: what is not known is no reason to
    gate less.
    """

    before: float | None = None
    now: float | None = None

    @property
    def before_by_host(self) -> bool:
        return self.before is not None and self.before >= HOST_BOUND

    @property
    def now_by_host(self) -> bool:
        return self.now is not None and self.now >= HOST_BOUND

    @property
    def both(self) -> bool:
        return self.before_by_host and self.now_by_host

    @property
    def either(self) -> bool:
        return self.before_by_host or self.now_by_host

    @property
    def text(self) -> str:
        return f"{_shown(self.before)} → {_shown(self.now)} {_OF_LATENCY}"

    @property
    def change(self) -> str | None:
        """Say that the bound changed; None where it did not, or is not known."""
        if self.before is None or self.now is None:
            return None
        if self.before_by_host is self.now_by_host:
            return None
        what = "became host-bound" if self.now_by_host else "is host-bound no longer"
        return f"{what}: {self.text}"

    @property
    def why_not_gated(self) -> str:
        return (
            f"device_time is not gated: host-bound on both sides ({self.text}), it "
            "follows the host, and latency is gated"
        )


def compare_bounds(baseline: Runs, candidate: Runs) -> Bound:
    """Compare what the runs of two sides tell."""
    return Bound(before=_share(baseline), now=_share(candidate))


def follows_host(metric: Metric, bound: Bound, *, named: bool) -> bool:
    """Tell whether a metric can only repeat what the latency says.

    Parameters
    ----------
    named : somebody asked for this very metric, and gets it
    """
    return metric.name == DEVICE_TIME and bound.both and not named


def _share(runs: Runs) -> float | None:
    """Give a share that most runs reach; None where most of them do not tell."""
    told = [run.enqueue_share for run in runs if run.enqueue_share is not None]
    if len(told) * 2 <= len(runs):
        return None
    return median_low([run.enqueue_share or 0.0 for run in runs])


def _shown(share: float | None) -> str:
    return "unknown" if share is None else format_fraction(round(share, 2))
