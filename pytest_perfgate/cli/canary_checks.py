"""What a canary's sessions must have come to: reports in, checks out."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from pytest_perfgate.model import (
    BenchmarkResult,
    Judgement,
    Outcome,
    Reason,
    Report,
)
from pytest_perfgate.reports.words import counted, verdict_text
from pytest_perfgate.units import format_fraction

_OURS_TO_SLOW = frozenset({"s", "1/s"})
_HANDED_OVER = ("recorded/", "external/")
"""Metrics of numbers that we did not measure: no slowdown reaches them."""
_NEVER_ON_SAME_CODE = frozenset({Outcome.REGRESSED, Outcome.ERROR})
_PASSES = frozenset(
    {Outcome.UNCHANGED, Outcome.IMPROVED, Outcome.RECORDED, Outcome.SKIPPED}
)
_TOLD = frozenset({Outcome.UNCHANGED, Outcome.IMPROVED, Outcome.INCONCLUSIVE})


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One line of the answer."""

    name: str
    expected: str
    happened: str
    ok: bool
    blind: bool = False
    """Nothing passed that should not have, but nothing could be seen either."""

    @property
    def verdict(self) -> str:
        if self.ok and self.blind:
            return "blind"
        return "ok" if self.ok else "FAILED"


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """A benchmark that a slowdown reaches, as the session on the same code saw it."""

    benchmark: str
    nodeid: str
    statistic: str
    """Metric and statistic: `latency`, `median`."""
    budget: float
    sees: float | None
    """The smallest slowdown that would have been found, a fraction."""

    @property
    def planted(self) -> float:
        """Twice the budget: what the gate must not let through."""
        return 2 * self.budget


class Response(StrEnum):
    """What became of a benchmark that was slowed down."""

    RED = "red"
    PASSED = "passed"
    BLIND = "blind"
    """The data could not tell, and were known not to."""
    UNDECIDED = "undecided"


@dataclass(frozen=True, slots=True, kw_only=True)
class Slowed:
    """A benchmark under a planted slowdown."""

    watched: Watched
    response: Response
    outcome: str
    """In words, with the reason."""
    effect: tuple[float, float, float] | None
    """Now ÷ before, and its interval; above 1 is worse."""


def broken(name: str, expected: str, words: object) -> Check:
    """Report a session that came to no verdict, by its own words."""
    return Check(name=name, expected=expected, happened=str(words), ok=False)


def recorded(report: Report) -> Check:
    """Require a baseline for every benchmark; nothing else can be tried without."""
    outcomes = {result.verdict.outcome for result in report.results}
    return Check(
        name="baselines",
        expected="recorded for each benchmark",
        happened=_counts(report),
        ok=outcomes <= {Outcome.RECORDED, Outcome.SKIPPED}
        and Outcome.RECORDED in outcomes,
    )


def same_code(report: Report) -> Check:
    """Require that the same code is judged and nothing goes red."""
    outcomes = {result.verdict.outcome for result in report.results}
    return Check(
        name="same code",
        expected="nothing regressed, no error",
        happened=_counts(report),
        ok=not outcomes & _NEVER_ON_SAME_CODE and bool(outcomes & _TOLD),
    )


def watched(report: Report) -> Iterator[Watched]:
    """Yield the benchmarks of a report that a slowdown reaches."""
    for result in report.results:
        timed = list(filter(_is_slowed, result.judgements))
        if timed:
            main = min(timed, key=lambda judgement: judgement.budget or 0.0)
            yield Watched(
                benchmark=result.benchmark,
                nodeid=result.nodeid,
                statistic=f"{main.metric.name}·{main.statistic}",
                budget=main.budget or 0.0,
                sees=main.comparison.detectable if main.comparison else None,
            )


def _is_slowed(judgement: Judgement) -> bool:
    """Whether it is gated by a relative budget and takes longer when time is added."""
    absolute = judgement.comparison is not None and judgement.comparison.absolute
    return (
        judgement.gated
        and bool(judgement.budget)
        and not judgement.anchor
        and not absolute
        and not judgement.metric.exact
        and judgement.metric.unit in _OURS_TO_SLOW
        and not judgement.metric.definition.startswith(_HANDED_OVER)
    )


def by_slowdown(found: Iterable[Watched]) -> Mapping[float, Sequence[Watched]]:
    """Put benchmarks together that are slowed down by the same share."""
    groups: dict[float, list[Watched]] = {}
    for one in found:
        groups.setdefault(one.planted, []).append(one)
    return dict(sorted(groups.items()))


def slowed(report: Report, group: Sequence[Watched]) -> Iterator[Slowed]:
    """Yield what became of each benchmark of a group."""
    results = {result.benchmark: result for result in report.results}
    for one in group:
        result = results.get(one.benchmark)
        if result is None:
            yield Slowed(
                watched=one,
                response=Response.UNDECIDED,
                outcome="not in the report",
                effect=None,
            )
        else:
            yield Slowed(
                watched=one,
                response=_response(result, one),
                outcome=verdict_text(result.verdict),
                effect=_effect(result, one),
            )


def _response(result: BenchmarkResult, one: Watched) -> Response:
    outcome, judgement = result.verdict.outcome, _again(result, one)
    if outcome is Outcome.REGRESSED:
        return Response.RED
    # of several statistics another may be in doubt: this one was slowed
    if outcome in _PASSES or (judgement and judgement.outcome in _PASSES):
        return Response.PASSED
    blind = one.sees is not None and one.sees > one.planted
    if outcome is Outcome.INCONCLUSIVE and blind:
        return Response.BLIND
    return Response.UNDECIDED


def _again(result: BenchmarkResult, one: Watched) -> Judgement | None:
    """Find the statistic that was watched."""
    for judgement in result.judgements:
        name = f"{judgement.metric.name}·{judgement.statistic}"
        if name == one.statistic and not judgement.anchor:
            return judgement
    return None


def _effect(result: BenchmarkResult, one: Watched) -> tuple[float, float, float] | None:
    judgement = _again(result, one)
    found = judgement.comparison if judgement else None
    return (found.ratio, found.low, found.high) if found else None


def goes_red(planted: float, found: Sequence[Slowed], *, code: int) -> Check:
    """Require that a slowdown passes nowhere, and that red ends with exit 1."""
    seen = Counter(one.response for one in found)
    told = ", ".join(f"{seen[kind]} {kind}" for kind in Response if seen[kind])
    red = bool(seen[Response.RED])
    return Check(
        name=f"{format_fraction(planted)} slower",
        expected="regressed, exit 1",
        happened=f"{told}; exit {code}",
        ok=not seen[Response.PASSED] and (code == 1 or not red),
        blind=not red,
    )


def must_be(
    name: str,
    report: Report,
    *,
    code: int,
    reason: Reason,
    wanted: tuple[Outcome, int],
    lenient: bool = False,
) -> Check:
    """Require one outcome and exit code of all results.

    Parameters
    ----------
    wanted : the outcome and its exit code
    lenient : the project's own options let this outcome end with exit 0
    """
    outcome, expected = wanted
    allowed = {expected, 0} if lenient else {expected}
    fits = bool(report.results) and all(
        result.verdict.outcome is outcome and result.verdict.reason is reason
        for result in report.results
    )
    verdicts = Counter(verdict_text(result.verdict) for result in report.results)
    said = ", ".join(verdicts) or "nothing"
    kind = f"{outcome}: {reason}, exit {expected}"
    return Check(
        name=name,
        expected=f"{kind} (0 by your options)" if lenient else kind,
        happened=f"{said}; exit {code}",
        ok=fits and code in allowed,
    )


def _counts(report: Report) -> str:
    found = Counter(verdict_text(result.verdict) for result in report.results)
    return ", ".join(f"{number} {text}" for text, number in found.items()) or "nothing"


def spread(ids: Sequence[str], number: int | None) -> tuple[str, ...]:
    """Take so many, from all over the list, and always the same ones."""
    if number is None or number >= len(ids):
        return tuple(ids)
    return tuple(ids[at * len(ids) // number] for at in range(number))


def alive(made: Sequence[Check], found: Sequence[Slowed]) -> bool:
    """Tell whether every check held, and something was seen to go red."""
    red = any(one.response is Response.RED for one in found)
    return red and all(check.ok for check in made)


def conclusion(made: Sequence[Check], found: Sequence[Slowed]) -> str:
    """Say it in one sentence."""
    failed = [check.name for check in made if not check.ok]
    red = sum(one.response is Response.RED for one in found)
    if failed:
        return f"the gate is not alive: {', '.join(failed)} FAILED"
    if not red:
        return (
            "the gate is not shown to be alive: nothing passed that should not have, "
            "and nothing went red either; the data could not tell a slowdown of twice "
            "the budget (the table says how much each benchmark sees)"
        )
    return (
        f"the gate is alive: {red} of {counted(len(found), 'benchmark')} went red when "
        "slowed by twice the budget, and none passed"
    )
