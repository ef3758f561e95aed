"""What every rendering says alike: order, marks, which judgement decided."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from pytest_perfgate.gate.budgets import is_tail
from pytest_perfgate.gate.suite import exit_codes
from pytest_perfgate.measured import Metric
from pytest_perfgate.model import (
    BenchmarkResult,
    Better,
    Comparison,
    Judgement,
    Outcome,
    Report,
    Verdict,
)
from pytest_perfgate.reports.escape import one_line, visible
from pytest_perfgate.units import format_fraction

QUIET = frozenset({Outcome.UNCHANGED, Outcome.SKIPPED, Outcome.RECORDED})
"""Outcomes whose rows may be folded into a count."""

_FEW_RUNS = 3
_SHORT_COMMIT = 12
_ABSORBED = "expected to fail (xfail), so it does not fail the session"

GREEN = QUIET | {Outcome.IMPROVED}
"""Outcomes that ask nothing of anybody."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """How an outcome is marked; the glyphs differ, so colour is never needed."""

    glyph: str
    styles: tuple[str, ...]


LOOKS: dict[Outcome, Look] = {
    Outcome.REGRESSED: Look(glyph="✗", styles=("red", "bold")),
    Outcome.ERROR: Look(glyph="!", styles=("red", "bold")),
    Outcome.INVALID: Look(glyph="⊘", styles=("red",)),
    Outcome.INCOMPARABLE: Look(glyph="≠", styles=("yellow", "bold")),
    Outcome.MISSING: Look(glyph="∅", styles=("yellow", "bold")),
    Outcome.NO_BASELINE: Look(glyph="○", styles=("yellow",)),
    Outcome.INCONCLUSIVE: Look(glyph="?", styles=("yellow",)),
    Outcome.IMPROVED: Look(glyph="✓", styles=("green", "bold")),
    Outcome.RECORDED: Look(glyph="+", styles=("green",)),
    Outcome.UNCHANGED: Look(glyph="=", styles=("green",)),
    Outcome.SKIPPED: Look(glyph="·", styles=("light",)),
}
"""Worst first: the order of every table."""

_SEVERITY = {outcome: rank for rank, outcome in enumerate(LOOKS)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """Now ÷ baseline as the values show it: 0.8 for a throughput that fell by 20 %.

    A `Comparison` turns ratios so that above 1 is worse; readers see both values
    beside the change, so the change must agree with them. Of an absolute
    comparison these are now − baseline, in the metric's unit.
    """

    ratio: float
    low: float
    high: float

    @property
    def finite(self) -> bool:
        return all(map(math.isfinite, (self.ratio, self.low, self.high)))


def change(metric: Metric, comparison: Comparison) -> Change:
    """Turn a comparison into now ÷ baseline, or now − baseline where absolute."""
    bounds = (comparison.ratio, comparison.low, comparison.high)
    if metric.better is Better.LOWER:
        ratio, low, high = bounds
    else:
        ratio, high, low = map(_negative if comparison.absolute else _inverse, bounds)
    return Change(ratio=ratio, low=low, high=high)


def _negative(difference: float) -> float:
    return -difference


def _inverse(ratio: float) -> float:
    return 1 / ratio if ratio else math.inf


def allowed(metric: Metric, budget: float) -> float:
    """Give now ÷ baseline exactly at the budget."""
    return 1 + budget if metric.better is Better.LOWER else 1 / (1 + budget)


def label(metric: Metric, statistic: str) -> str:
    """Name metric and statistic; a tail of rounds is called one."""
    name = f"{metric.name}·{statistic}"
    return f"{name} of rounds" if metric.of_rounds and is_tail(statistic) else name


def statistic_name(judgement: Judgement) -> str:
    """Name metric and statistic: `latency·median`, `latency·median vs anchor`."""
    name = label(judgement.metric, judgement.statistic)
    return f"{name} vs anchor" if judgement.anchor else name


def reason_text(verdict: Verdict) -> str:
    """Reason code and detail: `too-noisy (needs 14 runs)`."""
    return f"{verdict.reason} ({verdict.detail})" if verdict.detail else verdict.reason


def verdict_text(verdict: Verdict) -> str:
    """Outcome and reason code, without the detail: `inconclusive: too-noisy`."""
    if verdict.reason.value == verdict.outcome.value:
        return verdict.outcome
    return f"{verdict.outcome}: {verdict.reason}"


def deciding(result: BenchmarkResult) -> Judgement | None:
    """Find the judgement that a benchmark's outcome was taken from.

    The one that says the same as the benchmark, the worst of several; where
    nothing changed, the first, which is a median or a maximum. Failing that the
    first gated one, then the first that is only shown.
    """
    gated = [judgement for judgement in result.judgements if judgement.gated]
    for alike in (
        [one for one in gated if one.verdict == result.verdict],
        [one for one in gated if one.outcome is result.verdict.outcome],
    ):
        if alike and result.verdict.outcome is Outcome.UNCHANGED:
            return alike[0]
        if alike:
            return max(alike, key=_distance)
    return next(iter((*gated, *result.judgements)), None)


def effect(judgement: Judgement) -> float:
    """Give how much worse, as a ratio, so that all judgements can be ranked.

    Above 1 is worse. An absolute difference is set against the baseline's size,
    and is infinite against a baseline of zero. Minus infinity where nothing was
    compared.
    """
    comparison = judgement.comparison
    if comparison is None:
        return -math.inf
    if not comparison.absolute:
        return comparison.ratio
    if comparison.ratio and not comparison.baseline:
        return math.copysign(math.inf, comparison.ratio)
    return 1 + comparison.ratio / (abs(comparison.baseline) or 1)


def _distance(judgement: Judgement) -> float:
    if judgement.outcome is Outcome.IMPROVED and judgement.comparison is not None:
        return -effect(judgement)
    return effect(judgement)


def others(
    result: BenchmarkResult, *, main: Judgement | None, verbose: bool
) -> tuple[Judgement, ...]:
    """List what is shown below a benchmark's main row.

    Gated statistics whose outcome is not `unchanged`; with `verbose` every one,
    those that are only shown included.
    """
    return tuple(
        judgement
        for judgement in result.judgements
        if judgement is not main
        and (
            verbose or (judgement.gated and judgement.outcome is not Outcome.UNCHANGED)
        )
    )


def worst_first(results: Iterable[BenchmarkResult]) -> tuple[BenchmarkResult, ...]:
    """Sort by severity, then by the size of the effect as a number, then by name."""
    return tuple(sorted(results, key=_rank))


def _rank(result: BenchmarkResult) -> tuple[int, float, str]:
    main = deciding(result)
    effect = -math.inf if main is None else _distance(main)
    return _SEVERITY[result.verdict.outcome], -effect, result.benchmark


def counts(report: Report) -> tuple[tuple[Outcome, int], ...]:
    """Count results by outcome, worst first, without the outcomes that are absent."""
    found = Counter(result.verdict.outcome for result in report.results)
    return tuple((outcome, found[outcome]) for outcome in LOOKS if found[outcome])


_EXITS = {
    0: "pass",
    5: Outcome.INVALID.value,
    10: Outcome.NO_BASELINE.value,
    11: Outcome.INCOMPARABLE.value,
    12: Outcome.INVALID.value,
    13: Outcome.INCONCLUSIVE.value,
    14: Outcome.MISSING.value,
}


def overall(report: Report, *, accepted: bool = False) -> str:
    """Say in one word what became of a session.

    Follows the exit code, which the session's own policy chose: `pass`,
    `improved`, or the outcome that is red. With `accepted` the regressions no
    longer count: the word is that of what else is red, or `accepted`. Where
    nothing is red and nothing was found well either, for want of any baseline
    say, it is the outcome that there is: that is no pass.
    """
    found = {one.verdict.outcome for one in report.results}
    code = report.exit_code
    if accepted and code == 1 and Outcome.REGRESSED in found:
        code = accepted_exit_code(report)
        return _EXITS.get(code, Outcome.ERROR.value) if code else "accepted"
    if code == 0:
        return _word_of_green(found)
    if code == 1 and Outcome.REGRESSED in found:
        return Outcome.REGRESSED.value
    return _EXITS.get(code, Outcome.ERROR.value)


def _word_of_green(found: AbstractSet[Outcome]) -> str:
    if Outcome.IMPROVED in found:
        return Outcome.IMPROVED.value
    if found & {Outcome.UNCHANGED, Outcome.RECORDED}:
        return "pass"
    return next((one.value for one in LOOKS if one in found), Outcome.INVALID.value)


def accepted_exit_code(report: Report) -> int:
    """Give the exit code that a session has once its regressions are accepted.

    What failed there besides the benchmarks, or was never reached, is not
    accepted with them.
    """
    if report.exit_code != 1 or report.problem or report.interrupted:
        return report.exit_code
    rest = [
        one for one in report.results if one.verdict.outcome is not Outcome.REGRESSED
    ]
    codes = exit_codes(
        rest,
        on_missing=report.policy.get("--perfgate-on-missing", "fail"),
        on_inconclusive=report.policy.get("--perfgate-on-inconclusive", "warn"),
    )
    return codes[0] if codes else 0


def directions(report: Report) -> str:
    """Say how many estimates went either way, whatever the verdicts.

    Empty where nothing was compared. A suite that leans to one side by far tells
    of a machine rather than of code, so both sides are always counted.
    """
    mains = [main for main in map(deciding, report.results) if main is not None]
    compared = [main for main in mains if main.comparison is not None]
    if not compared:
        return ""
    timed = all(main.metric.unit in {"s", "1/s"} for main in compared)
    worse, better = ("slower", "faster") if timed else ("worse", "better")
    up = sum(effect(main) > 1 for main in compared)
    down = sum(effect(main) < 1 for main in compared)
    equal = len(compared) - up - down
    text = f"{len(compared):,} compared, by estimate: {up:,} {worse}, {down:,} {better}"
    return f"{text}, {equal:,} equal" if equal else text


def shift_text(report: Report) -> str:
    """Say how far the machine as a whole moved, and which way; empty if it did not."""
    shift = report.shift
    if shift is None:
        return ""
    slower = shift.ratio > 1
    way = "slower" if slower else "faster"
    meaning = (
        "stored baselines cannot tell that from code that slows everything down"
        if slower
        else "against these baselines a slowdown of that size would not show"
    )
    return (
        f"the machine as a whole is {format_fraction(abs(shift.ratio - 1))} {way} than"
        f" the baselines: the median of {shift.benchmarks:,} benchmarks,"
        f" {shift.share:.0%} of them {way}; {meaning}"
    )


def base_text(report: Report) -> str:
    """Say which code of the past was measured beside it; empty where none was."""
    base = report.base
    if base is None:
        return ""
    return (
        f"measured beside it on this machine: {one_line(base.ref)}, at the merge base "
        f"{base.commit[:_SHORT_COMMIT]}"
    )


def attempts_text(report: Report) -> str:
    """Say that this commit was judged before, and on what; empty the first time."""
    again = [result for result in report.results if result.attempt > 1]
    if not again:
        return ""
    attempt = max(result.attempt for result in again)
    runs = sum(result.earlier_runs for result in again)
    pooled = (
        f": {counted(runs, 'run')} of earlier attempts at"
        f" {counted(len(again), 'benchmark')} were judged with the new ones"
    )
    return f"attempt {attempt} on this commit{pooled if runs else ''}"


def title(result: BenchmarkResult) -> str:
    """Name a benchmark, and its machine where a report is about several."""
    name = visible(result.benchmark)
    where = result.environment
    return name if where is None else f"{name} @ {one_line(where.key)}"


def remarks_of(result: BenchmarkResult) -> tuple[str, ...]:
    """List what is to be said of a benchmark beside its verdict."""
    return (*((_ABSORBED,) if result.absorbed else ()), *result.remarks)


def machines(report: Report) -> tuple[str, ...]:
    """List the kinds of hardware that a report is about."""
    known = [report.environment, *(result.environment for result in report.results)]
    return tuple(dict.fromkeys(one_line(one.key) for one in known if one is not None))


def counted(number: int, noun: str) -> str:
    """Write a number with its noun: `1 run`, `1,200 runs`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def not_used(discarded: Sequence[str]) -> Iterator[str]:
    """List runs that were not used, or not whole: a few in full, the rest as a number."""
    yield from discarded[:_FEW_RUNS]
    if len(discarded) > _FEW_RUNS:
        more = counted(len(discarded) - _FEW_RUNS, "more run")
        yield f"{more} not used, not whole or disturbed: listed in report.json"
