"""What JUnit XML carries of a benchmark: a few properties, not the report."""

import re

from pytest_perfgate.model import BenchmarkResult, Comparison, Judgement
from pytest_perfgate.reports.escape import one_line
from pytest_perfgate.reports.words import change

_NOT_IN_A_NAME = re.compile(r"[^0-9A-Za-z]+")


def properties(result: BenchmarkResult) -> tuple[tuple[str, str], ...]:
    """List the properties of one test case.

    `perfgate_outcome` and `perfgate_reason` always, `perfgate_detail` where the
    verdict has one, and for each gated statistic that was compared
    `perfgate_ratio_METRIC_STATISTIC`: now ÷ baseline as the values are, 1.05 for
    a latency that grew by 5 %, 0.95 for a throughput that fell by 5 %. Where the
    budget is absolute `perfgate_difference_METRIC_STATISTIC`: now − baseline, in
    seconds, bytes or the metric's own unit. What is held against the anchor
    session ends in `_anchor`.
    """
    verdict = result.verdict
    detail = (("perfgate_detail", one_line(verdict.detail)),) if verdict.detail else ()
    return (
        ("perfgate_outcome", verdict.outcome.value),
        ("perfgate_reason", verdict.reason.value),
        *detail,
        *_ratios(result),
    )


def _ratios(result: BenchmarkResult) -> tuple[tuple[str, str], ...]:
    return tuple(
        _number(one, one.comparison)
        for one in result.judgements
        if one.gated and one.comparison is not None
    )


def _number(judgement: Judgement, comparison: Comparison) -> tuple[str, str]:
    kind = "difference" if comparison.absolute else "ratio"
    name = f"{_word(judgement.metric.name)}_{_word(judgement.statistic)}"
    name += "_anchor" if judgement.anchor else ""
    value = change(judgement.metric, comparison).ratio
    return f"perfgate_{kind}_{name}", f"{value:.4g}"


def _word(name: str) -> str:
    return _NOT_IN_A_NAME.sub("_", name).strip("_")
