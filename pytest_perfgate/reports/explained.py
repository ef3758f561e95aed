"""Explanations and slow iterations in words, for every rendering alike."""

from collections.abc import Iterator

from pytest_perfgate.gate.explain import clue_text
from pytest_perfgate.measured import SlowIteration, SlowIterations
from pytest_perfgate.model import BenchmarkResult, Clue, ClueKind
from pytest_perfgate.reports.advice import difference_text
from pytest_perfgate.reports.words import counted
from pytest_perfgate.units import format_duration


def strongest(result: BenchmarkResult, most: int) -> tuple[str, ...]:
    """Give the few lines that say most, each a sentence of its own."""
    if result.explanation is None:
        return ()
    return tuple(map(_sentence, result.explanation.strongest(most)))


def _sentence(clue: Clue) -> str:
    text = clue_text(clue)
    return text if clue.kind is ClueKind.NOTE else f"changed with it: {text}"


def all_lines(result: BenchmarkResult) -> tuple[str, ...]:
    """Give every line; empty where nobody explained it."""
    explanation = result.explanation
    return tuple(map(clue_text, explanation.lines)) if explanation else ()


def what_differs(result: BenchmarkResult) -> tuple[str, ...]:
    """Give what differs from the baseline: explained, or the fields alone."""
    differences = tuple(difference_text(one) for one in result.differences)
    return all_lines(result) or differences


def slow_lines(result: BenchmarkResult) -> Iterator[str]:
    """Tell of the iterations that took far longer than the others of their run."""
    for slow in result.slow:
        yield f"{_headline(slow)}: {'; '.join(map(_iteration, slow.worst))}"


def _headline(slow: SlowIterations) -> str:
    iterations = counted(slow.count, "slow iteration")
    shown = ", the worst" if slow.count > len(slow.worst) else ""
    bound = f"{slow.rule} = {format_duration(slow.beyond_s)}"
    return f"run {slow.run}: {iterations} beyond {bound}{shown}"


def _iteration(one: SlowIteration) -> str:
    known = f" ({', '.join(one.known)})" if one.known else ""
    at = format_duration(one.at_s) if one.at_s else "0 s"
    return f"{format_duration(one.value_s)} at {at}, iteration {one.index:,}{known}"
