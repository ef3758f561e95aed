"""Deterministic numbers: counts and sizes, compared as they are."""

from statistics import median_low

from pytest_perfgate.gate.budgets import Budget, is_timed
from pytest_perfgate.gate.evidence import Numbers, Sides, collect
from pytest_perfgate.gate.policy import Gate
from pytest_perfgate.gate.readings import (
    Reading,
    inconclusive,
    plain_reading,
)
from pytest_perfgate.measured import Metric
from pytest_perfgate.model import Better, Comparison, Outcome, Reason, Verdict
from pytest_perfgate.units import format_value

_ENOUGH_ALIKE = 3


def deterministic(numbers: Numbers) -> bool:
    """Tell whether a number is the same in every run, by promise or by look.

    A count or a size that was equal in three stored runs or more, and is equal
    in as many new ones, is taken for what it seems to be; a time never is.
    """
    if numbers.metric.exact:
        return True
    sides = (numbers.base_values, numbers.values)
    return _may_be_exact(numbers.metric) and all(
        len(side) >= _ENOUGH_ALIKE and len(set(side)) == 1 for side in sides
    )


def read_exact(metric: Metric, gate: Gate, sides: Sides) -> Reading | None:
    """Judge a deterministic number; None where it is not one.

    One run a side is enough, and nothing needs confirming.
    """
    if not _may_be_exact(metric):
        return None
    numbers = collect(sides, metric, gate.statistic)
    if not deterministic(numbers):
        return None
    if not numbers.baseline or len(numbers.values) < len(sides.candidate):
        return plain_reading(metric, gate, _absent(numbers, gate, sides))
    shown = exact_comparison(numbers)
    return plain_reading(metric, gate, _verdict(numbers, gate), comparison=shown)


def _may_be_exact(metric: Metric) -> bool:
    return metric.exact or not is_timed(metric)


def _absent(numbers: Numbers, gate: Gate, sides: Sides) -> Verdict:
    name = f"{numbers.metric.name} {gate.statistic}"
    if not numbers.baseline:
        return Verdict(
            outcome=Outcome.NO_BASELINE,
            reason=Reason.NOTHING_STORED,
            detail=f"the baseline has no {name}",
        )
    missing = len(sides.candidate) - len(numbers.values)
    detail = f"{name} in {missing} of {len(sides.candidate)} runs"
    return Verdict(outcome=Outcome.ERROR, reason=Reason.METRIC_ABSENT, detail=detail)


def _reference(numbers: Numbers) -> float:
    return median_low(numbers.base_values)


def _worst(numbers: Numbers) -> float:
    lower = numbers.metric.better is Better.LOWER
    return max(numbers.values) if lower else min(numbers.values)


def _bound(reference: float, budget: Budget, better: Better) -> float:
    """Give the worst value that is still within the budget."""
    if budget.absolute:
        step = budget.value
        return reference + step if better is Better.LOWER else reference - step
    factor = 1 + budget.value
    return reference * factor if better is Better.LOWER else reference / factor


def _verdict(numbers: Numbers, gate: Gate) -> Verdict:
    metric = numbers.metric
    reference = _reference(numbers)
    bound = _bound(reference, gate.budget, metric.better)
    lower = metric.better is Better.LOWER
    over = [now > bound if lower else now < bound for now in numbers.values]
    detail = _change(numbers, reference)
    if all(over):
        return Verdict(
            outcome=Outcome.REGRESSED, reason=Reason.COUNT_OVER_BUDGET, detail=detail
        )
    if any(over):
        return inconclusive(Reason.TOO_NOISY, f"differs between runs: {detail}")
    return Verdict(outcome=Outcome.UNCHANGED, reason=Reason.COUNT_EQUAL, detail=detail)


def _change(numbers: Numbers, reference: float) -> str:
    unit = numbers.metric.unit
    now = sorted(set(numbers.values))
    shown = " and ".join(
        format_value(value, unit) for value in (now[0], now[-1])[: len(now)]
    )
    return f"{format_value(reference, unit)} → {shown}"


def exact_comparison(numbers: Numbers) -> Comparison:
    """Put a deterministic number's change into the words of the domain."""
    reference, worst = _reference(numbers), _worst(numbers)
    lower = numbers.metric.better is Better.LOWER
    absolute = reference <= 0 or worst <= 0
    if absolute:
        ratio = worst - reference if lower else reference - worst
    else:
        ratio = worst / reference if lower else reference / worst
    return Comparison(
        baseline=reference,
        candidate=worst,
        ratio=ratio,
        low=ratio,
        high=ratio,
        p_identity=1.0 if worst == reference else 0.0,
        baseline_runs=len(numbers.base_values),
        candidate_runs=len(numbers.values),
        spread=0.0,
        detectable=None,
        absolute=absolute,
    )
