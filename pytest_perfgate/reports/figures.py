"""A judgement's numbers as text, the same in every rendering."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median

from pytest_perfgate.measured import METRICS, Metric
from pytest_perfgate.model import BenchmarkResult, Judgement
from pytest_perfgate.reports.escape import visible
from pytest_perfgate.reports.words import allowed, change, counted, statistic_name
from pytest_perfgate.units import (
    format_change,
    format_duration,
    format_fraction,
    format_value,
)

NOTHING = "–"
_SELDOM_ASKED_FOR = frozenset(
    {
        "cpu_time",
        "first_call",
        "throughput",
        "peak_memory",
        "data_share",
        "loader_wait",
        "loader_rate",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """One row's numbers as text; what is not known is a dash."""

    metric: str
    baseline: str = NOTHING
    now: str = NOTHING
    change: str = NOTHING
    interval: str = ""
    """With its unit; empty where there is none."""
    budget: str = NOTHING
    sees: str = NOTHING

    @property
    def change_with_interval(self) -> str:
        """Give `+42.1 % [+38.0…+47.2]`."""
        interval = self.interval.removesuffix(" %")
        return f"{self.change} [{interval}]" if interval else self.change


def judged(judgement: Judgement) -> Figures:
    """Write the numbers of a judgement."""
    return Figures(
        metric=visible(statistic_name(judgement)),
        baseline=_side(judgement, "baseline"),
        now=_side(judgement, "candidate"),
        change=change_text(judgement),
        interval=interval_text(judgement),
        budget=budget_text(judgement),
        sees=_detectable(judgement),
    )


def of_result(result: BenchmarkResult, main: Judgement | None) -> Figures | None:
    """Write the numbers of a benchmark's main row.

    Where nothing was judged, for want of a baseline say, what was measured: the
    middle of the runs' medians of the main metric. None where nothing was.
    """
    if main is not None:
        return judged(main)
    names = {name for run in result.runs for name in run.statistics}
    if not names:
        return None
    name = min(names, key=_importance)
    statistics = [run.statistics[name] for run in result.runs if name in run.statistics]
    statistic = "median" if "median" in statistics[0] else next(iter(statistics[0]))
    values = [one[statistic].value for one in statistics if statistic in one]
    metric = METRICS.get(name) or Metric(name=name, unit="")
    label = visible(f"{name}·{statistic}")
    return Figures(metric=label, now=value_text(metric, median(values)))


def _importance(name: str) -> tuple[int, int, str]:
    """Rank what users wait for first, then metrics of their own, then the rest."""
    if name not in METRICS:
        return 1, 0, name
    return 2 if name in _SELDOM_ASKED_FOR else 0, list(METRICS).index(name), name


def value_text(metric: Metric, value: float) -> str:
    """Write a value in its metric's unit."""
    return format_value(value, metric.unit)


def _side(judgement: Judgement, side: str) -> str:
    if judgement.comparison is None:
        return NOTHING
    return value_text(judgement.metric, getattr(judgement.comparison, side))


def change_text(judgement: Judgement) -> str:
    """Write the change alone: `+42.1 %`; of a count or where absolute `+3`."""
    comparison = judgement.comparison
    if comparison is None:
        return NOTHING
    seen = change(judgement.metric, comparison)
    if comparison.absolute:
        return _signed(judgement.metric, seen.ratio)
    if judgement.metric.exact or not math.isfinite(seen.ratio) or seen.ratio <= 0:
        difference = comparison.candidate - comparison.baseline
        return _signed(judgement.metric, difference)
    return format_change(seen.ratio)


def _signed(metric: Metric, difference: float) -> str:
    if not math.isfinite(difference):
        return NOTHING
    sign = "-" if difference < 0 else "+"
    return f"{sign}{value_text(metric, abs(difference))}"


def interval_text(judgement: Judgement) -> str:
    """Write the interval of the change: `+38.0…+47.2 %`, `+1.00 ms…+3.00 ms`.

    Empty where there is none: nothing compared, or an exact count.
    """
    comparison = judgement.comparison
    if comparison is None or judgement.metric.exact:
        return ""
    seen = change(judgement.metric, comparison)
    if not seen.finite:
        return ""
    if comparison.absolute:
        metric = judgement.metric
        return f"{_signed(metric, seen.low)}…{_signed(metric, seen.high)}"
    return f"{_percent(seen.low)}…{_percent(seen.high)} %"


def _percent(ratio: float) -> str:
    percent = (ratio - 1) * 100
    return f"{percent:+.1f}" if abs(percent) < 100 else f"{percent:+,.0f}"


def budget_text(judgement: Judgement) -> str:
    """Write the budget or the limit: `5 %`, `+0`, `<= 150 ms`."""
    if judgement.bound:
        return judgement.bound
    return NOTHING if judgement.budget is None else _fraction(judgement.budget)


def _detectable(judgement: Judgement) -> str:
    """Write the smallest slowdown that would have been seen."""
    comparison = judgement.comparison
    if comparison is None or comparison.detectable is None:
        return NOTHING
    if comparison.absolute:
        return _signed(judgement.metric, comparison.detectable)
    return _fraction(comparison.detectable)


def _fraction(fraction: float) -> str:
    return format_fraction(fraction) if math.isfinite(fraction) else NOTHING


def ratio_text(ratio: float) -> str:
    """Write `1.42×`."""
    return f"{ratio:.3g}×" if ratio >= 10 else f"{ratio:.2f}×"


def ratio_sentence(judgement: Judgement) -> str:
    """Write `1.42× (interval 1.38–1.47), allowed 1.05×`; empty without numbers."""
    comparison = judgement.comparison
    if comparison is None:
        return ""
    seen = change(judgement.metric, comparison)
    if judgement.metric.exact or comparison.absolute or not seen.finite:
        interval = interval_text(judgement)
        text = change_text(judgement) + (f" (interval {interval})" if interval else "")
        return _with_bound(text, budget_text(judgement))
    text = f"{ratio_text(seen.ratio)} (interval {seen.low:.2f}–{seen.high:.2f})"
    if judgement.budget is None:
        return _with_bound(text, budget_text(judgement))
    return _with_bound(text, ratio_text(allowed(judgement.metric, judgement.budget)))


def _with_bound(text: str, bound: str) -> str:
    return text if bound == NOTHING else f"{text}, allowed {bound}"


def cost_text(cost: Mapping[str, float]) -> str:
    """Write `36 runs, 182 s`; `seconds` and names in `_s` are durations, plurals counts."""
    return ", ".join(_cost(name, value) for name, value in cost.items())


def _cost(name: str, value: float) -> str:
    if name == "seconds":
        return format_duration(value)
    if name.endswith("_s"):
        return f"{name.removesuffix('_s').replace('_', ' ')} {format_duration(value)}"
    if name.endswith("s") and value == round(value):
        return counted(round(value), name.removesuffix("s").replace("_", " "))
    return f"{name.replace('_', ' ')} {value:,.6g}"
