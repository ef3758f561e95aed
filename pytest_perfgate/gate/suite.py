"""From the results of all benchmarks to one exit code and one sentence."""

from collections import Counter
from collections.abc import Iterable, Sequence

from pytest_perfgate.model import BenchmarkResult, Outcome, Reason

EXIT_GREEN = 0
EXIT_RED = 1
EXIT_INTERRUPTED = 2
EXIT_INTERNAL = 3
EXIT_NOTHING = 5
EXIT_NO_BASELINE = 10
EXIT_INCOMPARABLE = 11
EXIT_INVALID = 12
EXIT_INCONCLUSIVE = 13
EXIT_MISSING = 14

_CODES = {
    Outcome.REGRESSED: EXIT_RED,
    Outcome.ERROR: EXIT_RED,
    Outcome.INVALID: EXIT_INVALID,
    Outcome.INCOMPARABLE: EXIT_INCOMPARABLE,
    Outcome.MISSING: EXIT_MISSING,
    Outcome.NO_BASELINE: EXIT_NO_BASELINE,
    Outcome.INCONCLUSIVE: EXIT_INCONCLUSIVE,
}
PRECEDENCE = (
    EXIT_INTERNAL,
    EXIT_RED,
    EXIT_INTERRUPTED,
    EXIT_INVALID,
    EXIT_INCOMPARABLE,
    EXIT_MISSING,
    EXIT_NO_BASELINE,
    EXIT_INCONCLUSIVE,
    EXIT_NOTHING,
)
"""Which of several exit codes wins."""

SEVERITY = (
    Outcome.REGRESSED,
    Outcome.ERROR,
    Outcome.INVALID,
    Outcome.INCOMPARABLE,
    Outcome.MISSING,
    Outcome.NO_BASELINE,
    Outcome.INCONCLUSIVE,
    Outcome.IMPROVED,
    Outcome.RECORDED,
    Outcome.UNCHANGED,
    Outcome.SKIPPED,
)
"""Worst first."""


def worst_first(results: Iterable[BenchmarkResult]) -> tuple[BenchmarkResult, ...]:
    """Sort results by how bad their outcome is; equals keep their order."""
    return tuple(
        sorted(results, key=lambda result: SEVERITY.index(result.verdict.outcome))
    )


def exit_codes(
    results: Iterable[BenchmarkResult], *, on_missing: str, on_inconclusive: str
) -> tuple[int, ...]:
    """Give every exit code that the results ask for, the winner first.

    What an expected failure absorbed asks for none.
    """
    forgiven = set()
    if on_missing == "warn":
        forgiven.add(EXIT_NO_BASELINE)
    if on_inconclusive == "warn":
        forgiven.add(EXIT_INCONCLUSIVE)
    counting = [result for result in results if not result.absorbed]
    asked = {_CODES.get(result.verdict.outcome, EXIT_GREEN) for result in counting}
    return tuple(code for code in PRECEDENCE if code in asked - forgiven)


def exit_code(
    results: Iterable[BenchmarkResult],
    *,
    on_missing: str,
    on_inconclusive: str,
    anything_measured: bool,
    internal_error: bool = False,
) -> int:
    """Choose the exit code of a session.

    Parameters
    ----------
    on_missing, on_inconclusive : `fail` or `warn`
    anything_measured : False where not one run brought a sample
    internal_error : the gate itself failed, or its store cannot be reached

    Returns
    -------
    int
        The first of 3, 1, 12, 11, 14, 10, 13 that any result asks for; 5 where
        none does and nothing was measured; else 0.
    """
    if internal_error:
        return EXIT_INTERNAL
    codes = exit_codes(results, on_missing=on_missing, on_inconclusive=on_inconclusive)
    if codes:
        return codes[0]
    return EXIT_GREEN if anything_measured else EXIT_NOTHING


def summary_sentence(
    results: Sequence[BenchmarkResult],
    *,
    anything_measured: bool = True,
    interrupted: bool = False,
    failed: bool = False,
) -> str:
    """Say the outcome of a session in one line of words, worst first.

    Parameters
    ----------
    failed : something failed that is no benchmark's verdict
    """
    text = _sentence(results, anything_measured=anything_measured)
    text = f"interrupted; so far {text}" if interrupted else text
    return f"{text}; and something else failed" if failed else text


def _sentence(results: Sequence[BenchmarkResult], *, anything_measured: bool) -> str:
    if not results or not anything_measured:
        counted = f" ({_counted(results)})" if results else ""
        return f"nothing was measured{counted}: this says nothing about performance"
    return f"{_total(len(results))}: {_counted(results)}"


def _total(count: int) -> str:
    return f"{count} benchmark" if count == 1 else f"{count} benchmarks"


_WORDS = {
    Outcome.NO_BASELINE: "without a baseline",
    Outcome.ERROR: "failed with an error",
    Outcome.INVALID: "not validly measured",
}


def _counted(results: Sequence[BenchmarkResult]) -> str:
    counts = Counter(result.verdict.outcome for result in results)
    parts = [
        f"{counts[outcome]} {_WORDS.get(outcome, outcome.value)}"
        for outcome in SEVERITY
        if counts[outcome]
    ]
    flagged = sum(result.verdict.reason is Reason.FLAGGED for result in results)
    if flagged:
        parts.append(f"{flagged} of them not yet confirmed")
    absorbed = sum(result.absorbed for result in results)
    if absorbed:
        parts.append(f"{absorbed} of them expected to fail (xfail)")
    return ", ".join(parts)
