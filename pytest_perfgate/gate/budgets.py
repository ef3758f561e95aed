"""Budgets and limits as values, and which statistics stand for a metric."""

import math
import re
from dataclasses import dataclass
from functools import lru_cache

from pytest_perfgate.measured import METRICS, Metric
from pytest_perfgate.units import format_fraction, format_value

DEFAULT_BUDGET = 0.05
"""Of a median, a mean or a maximum; a tail quantile is allowed twice as much."""

STATISTICS = ("median", "floor", "mean", "max")
"""The statistics with a name; `p50` to `p99.9` are quantiles."""

TYPE_8 = "/8"
"""Marks a quantile of type 8 (median-unbiased), which limits are read from."""

SHARE = "share-beyond"
"""The statistic "share of the samples beyond a limit"."""

TAIL_IN_RUN = 2
TAIL_ON_SIDE = 10
"""Samples beyond a quantile without which it is an anecdote: in every run, and
on each side over all its runs."""

_QUANTILE = re.compile(r"p(\d{1,2}(?:\.\d+)?)")
_TAIL_FROM = 0.9
_ALLOCATOR = frozenset(
    {
        "memory_fragmentation",
        "allocator_retries",
        "allocator_ooms",
        "device_allocations",
    }
)
"""What a GPU's allocator tells that is no size; one value a run, as sizes have."""
_SHOWN_ONLY = _ALLOCATOR | frozenset(
    {
        "throughput",
        "mfu",
        "cpu_time",
        "first_call",
        "device_period",
        "base_memory",
        "working_memory",
        "reserved_memory",
        "inactive_split_memory",
        "outside_memory",
        "host_peak_memory",
        "data_share",
        "loader_wait",
        "loader_rate",
    }
)
_MEANS = frozenset(
    {"throughput", "mfu", "first_call", "data_share", "loader_wait", "loader_rate"}
)
"""One value a run."""
_WITHOUT_WITNESS = frozenset({"ttft", "tpot", "e2e", "loader_wait"})
_SHARES_OF_TIME = frozenset({"data_share"})


@lru_cache(maxsize=256)
def quantile_of(statistic: str) -> float | None:
    """Give the share that a quantile's name stands for: `p99` is 0.99."""
    found = _QUANTILE.fullmatch(statistic)
    share = float(found[1]) / 100 if found else 0.0
    return share if share > 0 else None


def is_statistic(name: str) -> bool:
    """Tell the name of a statistic from that of a metric."""
    return name in STATISTICS or quantile_of(name) is not None


@lru_cache(maxsize=256)
def is_tail(statistic: str) -> bool:
    """Tell whether few samples decide: a quantile from P90 on."""
    share = quantile_of(statistic)
    return share is not None and share >= _TAIL_FROM


@lru_cache(maxsize=1024)
def tail_samples(statistic: str, samples: int) -> float:
    """Give how many of so many samples lie beyond a quantile; all, for others."""
    share = quantile_of(statistic) if is_tail(statistic) else 0.0
    # 1 − .99 is not quite .01
    return round(samples * (1 - (share or 0.0)), 6)


def samples_for(statistic: str, tail: int) -> int:
    """Give how many samples have so many beyond a quantile: 200 have 2 of P99."""
    return math.ceil(round(tail / tail_samples(statistic, 1), 3))


def is_timed(metric: Metric) -> bool:
    """Tell whether a disturbed machine moves a metric: all but counts and sizes."""
    return metric.unit not in {"1", "B"} or is_share_of_time(metric)


def is_share_of_time(metric: Metric) -> bool:
    """Tell a share of the time from what else is a bare number, such as a count.

    It may well be 0, so that another one is no multiple of it.
    """
    return metric.name in _SHARES_OF_TIME


def fits_unit(written: str, unit: str) -> bool:
    """Tell whether a quantity as written is in the unit of a metric."""
    if written == unit:
        return True
    if written == "1/s":
        return unit.endswith("/s")
    # a bare number suits what is counted; of a time it could be ms or s
    return not written and unit not in {"s", "B"}


def main_statistic(metric: Metric) -> str:
    """Give the statistic that stands for a metric where none is named."""
    at_most = metric.name.endswith("_memory") or metric.name in _ALLOCATOR
    if metric.exact or at_most:
        return "max"
    return "mean" if metric.name in _MEANS else "median"


def gated_by_default(metric: Metric) -> bool:
    """Tell whether a metric is gated though no budget names it."""
    shown = metric.exact or metric.name in _SHOWN_ONLY
    return not shown and not metric.name.startswith("phase:")


def has_witness(metric: Metric) -> bool:
    """Tell whether the floor of a metric is a witness: latencies of one call."""
    known = metric.name in METRICS and metric.name not in _WITHOUT_WITNESS
    return metric.unit == "s" and (known or metric.name.startswith("stage:"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """How much worse a statistic may get, as a fraction or in its own unit."""

    value: float
    absolute: bool = False
    unit: str = ""

    def __post_init__(self) -> None:
        if not math.isfinite(self.value) or self.value < 0:
            raise ValueError(f"Budget.value={self.value!r} is not allowed")

    def text(self, unit: str = "") -> str:
        if self.absolute:
            return f"+{format_value(self.value, unit)}"
        return format_fraction(self.value)


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetRule:
    """One budget as written: the parts it does not name are None."""

    budget: Budget
    metric: str | None = None
    statistic: str | None = None
    source: str = ""
    marker: bool = False

    def speaks_of(self, metric: Metric, statistic: str) -> Budget | None:
        """Give what this rule allows a statistic, or None if it is silent.

        A rule without a statistic speaks of the main one with its budget and
        of the tail with twice that. A rule without a metric speaks of what is
        gated anyway: `5%` of times alone, since memory has a budget of its own.
        """
        if not self._is_about(metric):
            return None
        if self.statistic is not None:
            return self.budget if self.statistic == statistic else None
        main = main_statistic(metric)
        if statistic == main:
            return self.budget
        if main == "median" and is_tail(statistic) and not self.budget.absolute:
            return Budget(value=2 * self.budget.value)
        return None

    def _is_about(self, metric: Metric) -> bool:
        if self.metric is not None:
            return self.metric == metric.name
        suits = main_statistic(metric) in {"median", self.statistic}
        return suits and gated_by_default(metric)

    def names(self, metric: Metric, statistic: str) -> bool:
        """Tell whether the rule names just this statistic, not all at once."""
        named = self.statistic is not None or (
            self.metric is not None and statistic == main_statistic(metric)
        )
        return named and self.speaks_of(metric, statistic) is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """An absolute bound: `latency.p99<=150ms`."""

    operator: str
    value: float
    unit: str
    metric: str | None = None
    statistic: str | None = None
    source: str = ""

    def text(self, unit: str = "") -> str:
        return f"{self.operator} {format_value(self.value, unit or self.unit)}"

    def share_of(self, metric: str) -> str:
        """Name the row under which a run keeps its share of samples beyond.

        A name of its own, since a share is not in the unit of the metric.
        """
        return f"{metric}{self.operator}{self.value!r}"


Extra = tuple[str | None, str] | Limit
"""What a run must keep besides the usual: a statistic of a metric (or of all
times), or all that a limit is read from."""
