"""What JUnit XML carries of a benchmark: a few properties, not the report."""

import re

from pytest_perfgate.model import BenchmarkResult
from pytest_perfgate.reports.escape import one_line
from pytest_perfgate.reports.words import change

_NOT_IN_A_NAME = re.compile(r"[^0-9A-Za-z]+")


def properties(result: BenchmarkResult) -> tuple[tuple[str, str], ...]:
    """List the properties of one test case.

    `perfgate_outcome` and `perfgate_reason` always, `perfgate_detail` where the
    verdict has one, and for each gated statistic that was compared
    `perfgate_ratio_METRIC_STATISTIC`: now ÷ baseline as the values are, 1.05 for
    a latency that grew by 5 %, 0.95 for a throughput that fell by 5 %.
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
        (
            f"perfgate_ratio_{_word(one.metric.name)}_{_word(one.statistic)}",
            f"{change(one.metric, one.comparison).ratio:.4g}",
        )
        for one in result.judgements
        if one.gated and one.comparison is not None
    )


def _word(name: str) -> str:
    return _NOT_IN_A_NAME.sub("_", name).strip("_")
