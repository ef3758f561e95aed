"""How many comparisons a benchmark puts to a test."""

from pytest_perfgate.gate.anchor import has_anchor
from pytest_perfgate.gate.evidence import Sides
from pytest_perfgate.gate.looks import Look
from pytest_perfgate.gate.policy import BenchmarkPolicy, Gate
from pytest_perfgate.gate.shown import tail_or_why_not
from pytest_perfgate.measured import Metric
from pytest_perfgate.model import Baseline


def count_comparisons(
    policy: BenchmarkPolicy, baseline: Baseline, look: Look | None = None
) -> int:
    """Count the pairs of metric and statistic that a benchmark puts to a test.

    Summed over a session this is M, which the levels of the identity tests are
    divided by. Exact metrics and absolute limits are no tests, and neither is a
    tail that is shown and not gated. What is held against an anchor is one.

    Parameters
    ----------
    look : tells how many runs there can be; None stands for the usual number
    """
    sides = Sides(
        baseline=tuple(session.runs for session in baseline.sessions), candidate=()
    )
    noisy = [metric for metric in baseline.metrics.values() if not metric.exact]
    anchored = policy.anchor_gates if has_anchor(baseline) else _no_gates
    return sum(
        len(anchored(metric))
        + sum(
            not gate.default_tail
            or tail_or_why_not(metric, gate, sides, look or Look()) is None
            for gate in policy.gates(metric)
        )
        for metric in noisy
    )


def _no_gates(_: Metric) -> tuple[Gate, ...]:
    return ()
