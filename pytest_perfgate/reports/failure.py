"""What a pytest test that failed by its verdict says: the story, no traceback."""

from collections.abc import Iterator

from pytest_perfgate.model import BenchmarkResult, Comparison, Judgement, Outcome
from pytest_perfgate.reports import figures
from pytest_perfgate.reports.advice import (
    advice,
    difference_text,
)
from pytest_perfgate.reports.escape import one_line as flat
from pytest_perfgate.reports.escape import visible
from pytest_perfgate.reports.explained import strongest
from pytest_perfgate.reports.words import (
    counted,
    deciding,
    not_used,
    others,
    reason_text,
    statistic_name,
)

_MOST_DIFFERENCES = 8
_STRONGEST = 3


def one_line(result: BenchmarkResult) -> str:
    """Say the verdict for pytest's short summary and for skips.

    `inconclusive: too-noisy (needs 14 runs)`; with a change where there is one:
    `regressed: over-limit, latency·p99 +42.1%`.
    """
    verdict = result.verdict
    text = f"{verdict.outcome}: {flat(reason_text(verdict))}"
    main = deciding(result)
    if verdict.outcome is not Outcome.REGRESSED or main is None or not main.comparison:
        return text
    return f"{text}, {flat(statistic_name(main))} {figures.change_text(main)}"


def failure_text(result: BenchmarkResult) -> str:
    """Tell why a benchmark failed: what, by how much, against what, the way out.

    For an error or a lost run the text of the body or the crash stands in the
    middle as it came, with control characters written out.
    """
    return "\n".join((_headline(result), *(f"  {line}" for line in _story(result))))


def _headline(result: BenchmarkResult) -> str:
    """Begin with the verdict: pytest's short summary shows the id and this line."""
    main = deciding(result)
    if main is None or main.comparison is None:
        return one_line(result)
    outcome, statistic = result.verdict.outcome, flat(statistic_name(main))
    return f"{outcome}: {statistic} {figures.ratio_sentence(main)}"


def _story(result: BenchmarkResult) -> Iterator[str]:
    yield visible(result.benchmark)
    main = deciding(result)
    if main is not None and main.comparison is not None:
        yield from _numbers(result, main, main.comparison)
    for judgement in others(result, main=main, verbose=False):
        yield f"also {_also(judgement)}"
    yield from _differences(result)
    yield from (flat(remark) for remark in _remarks(result, main))
    yield from map(flat, not_used(result.discarded))
    yield from (visible(text.expandtabs()) for text in result.text.splitlines())
    step = advice(result)
    if step:
        yield step
        yield f"read docs/verdicts.md#{result.verdict.reason}"


def _numbers(
    result: BenchmarkResult, main: Judgement, comparison: Comparison
) -> Iterator[str]:
    found = figures.judged(main)
    baseline = counted(comparison.baseline_runs, "run")
    now = counted(comparison.candidate_runs, "run")
    yield (
        f"baseline {found.baseline} ({baseline}), "
        f"now {found.now} ({now}); "
        f"reason: {flat(reason_text(result.verdict))}"
    )
    if comparison.detectable is not None:
        yield (f"the smallest slowdown it would have found: {found.sees}")


def _also(judgement: Judgement) -> str:
    sentence = figures.ratio_sentence(judgement)
    verdict = f"{judgement.outcome}: {flat(reason_text(judgement.verdict))}"
    name = flat(statistic_name(judgement))
    return f"{name} {verdict}, {sentence}" if sentence else f"{name} {verdict}"


def _differences(result: BenchmarkResult) -> Iterator[str]:
    """List what differs; what forbids a comparison is in the advice already."""
    explanation = result.explanation
    if explanation is not None:
        told = strongest(result, _STRONGEST)
        yield from map(flat, told)
        if len(explanation.lines) > len(told):
            yield f"and {len(explanation.lines) - len(told)} more, in the report"
        return
    causes = [one for one in result.differences if not one.forbids]
    for difference in causes[:_MOST_DIFFERENCES]:
        yield f"changed with it: {difference_text(difference)}"
    if len(causes) > _MOST_DIFFERENCES:
        yield f"changed with it: {len(causes) - _MOST_DIFFERENCES} more fields"


def _remarks(result: BenchmarkResult, main: Judgement | None) -> tuple[str, ...]:
    return result.remarks + (main.remarks if main else ())
