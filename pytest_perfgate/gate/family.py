"""The p-values of a session seen together: information, never a verdict."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from pytest_perfgate.model import BenchmarkResult, Comparison, Judgement


def q_values(p_values: Sequence[float]) -> list[float]:
    """Adjust p-values for their number, by the rule of Benjamini and Hochberg.

    Parameters
    ----------
    p_values : in [0, 1], any order

    Returns
    -------
    list of float
        In the same order: the share of false alarms if this one and all smaller
        ones were called.

    References
    ----------
    Benjamini and Hochberg (1995), Controlling the false discovery rate.
    """
    count = len(p_values)
    order = sorted(range(count), key=p_values.__getitem__, reverse=True)
    found = [1.0] * count
    least = 1.0
    for place, index in enumerate(order):
        least = min(least, p_values[index] * count / (count - place))
        found[index] = least
    return found


def with_q_values(results: Sequence[BenchmarkResult]) -> tuple[BenchmarkResult, ...]:
    """Fill in the q-value of every statistic that was put to a test.

    The family is what a session tests: gated statistics and those held against
    an anchor. Counts are no tests. The floor is none either: it is only heard
    where the median is in doubt, which would fill the family with the worst.
    """
    tested = [one.p_identity for result in results for one in tests_of(result)]
    found = iter(q_values(tested))
    return tuple(_filled(result, found) for result in results)


def tests_of(result: BenchmarkResult) -> Iterator[Comparison]:
    """Yield what was put to a test of a benchmark."""
    for judgement in result.judgements:
        if judgement.comparison is not None and _is_test(judgement):
            yield judgement.comparison


def _is_test(judgement: Judgement) -> bool:
    comparison = judgement.comparison
    asked = judgement.gated or judgement.anchor
    return (
        asked
        and comparison is not None
        and comparison.spread > 0  # a count has none
        and judgement.statistic != "floor"
    )


def _filled(result: BenchmarkResult, found: Iterator[float]) -> BenchmarkResult:
    judgements = []
    for judgement in result.judgements:
        comparison = judgement.comparison
        if comparison is not None and _is_test(judgement):
            seen = replace(comparison, q_value=next(found))
            judgements.append(replace(judgement, comparison=seen))
        else:
            judgements.append(judgement)
    return replace(result, judgements=tuple(judgements))
