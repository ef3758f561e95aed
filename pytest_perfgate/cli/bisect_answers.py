"""From a session's report to what it says of a commit, and that in words."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pytest_perfgate.cli.bisection import Answer, Commit, Effect, Found, State, Step
from pytest_perfgate.model import BenchmarkResult, Judgement, Outcome, Report
from pytest_perfgate.reports.escape import one_line, visible
from pytest_perfgate.reports.words import (
    counted,
    deciding,
    statistic_name,
    verdict_text,
    worst_first,
)

NONE_BETWEEN, INVALID, INCONCLUSIVE = 1, 12, 13
_GREEN = frozenset({Outcome.UNCHANGED, Outcome.IMPROVED})


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A statistic that is worse at bad than at good."""

    benchmark: str
    nodeid: str
    statistic: str
    """Metric and statistic."""
    low: float
    """How much worse bad is at least: the interval's lower end, a ratio."""


def regressed(report: Report) -> tuple[Target, ...]:
    """Return what is looked for: every gated statistic that regressed."""
    return tuple(
        Target(
            benchmark=result.benchmark,
            nodeid=result.nodeid,
            statistic=statistic_name(judgement),
            low=_effect(result, judgement).low,
        )
        for result in report.results
        if result.verdict.outcome is Outcome.REGRESSED
        for judgement in result.judgements
        if judgement.gated and judgement.outcome is Outcome.REGRESSED
    )


def not_regressed(report: Report) -> tuple[int, str]:
    """Say what it means where nothing regressed; returns the exit code too."""
    outcomes = {result.verdict.outcome for result in report.results}
    outcomes.discard(Outcome.SKIPPED)
    if outcomes and outcomes <= _GREEN:
        return NONE_BETWEEN, "BAD is not slower than GOOD: there is nothing to find"
    if outcomes <= {*_GREEN, Outcome.INCONCLUSIVE} and outcomes:
        return INCONCLUSIVE, (
            "whether BAD is slower than GOOD cannot be told on this machine; more runs "
            "may: `-- --perfgate-runs=6:24`"
        )
    return INVALID, "BAD could not be measured against GOOD"


def numbers(report: Report) -> Iterator[str]:
    """Yield a line for each benchmark."""
    for result in worst_first(report.results):
        main = deciding(result)
        told = f": {in_percent(_effect(result, main))}" if main else ""
        text = f": {one_line(result.text)}" if result.text else ""
        name = visible(result.benchmark)
        yield f"{name}{told}: {verdict_text(result.verdict)}{text}"


def answer(report: Report, targets: Sequence[Target]) -> Answer:
    """Say whether what is looked for is there at the commit that was measured."""
    results = {result.benchmark: result for result in report.results}
    effects: list[Effect] = []
    told: dict[State, list[str]] = {state: [] for state in State}
    for target in targets:
        result = results.get(target.benchmark)
        judgement = _judgement(result, target)
        if result is None or judgement is None:
            told[State.SKIPPED].append(_doubt(target, result))
            continue
        effects.append(_effect(result, judgement))
        state, text = _state(judgement, target)
        told[state].append(f"{target.benchmark}: {text}" if text else "")
    for state in (State.BAD, State.SKIPPED, State.GOOD):
        if told[state]:
            text = "; ".join(filter(None, told[state]))
            return Answer(state=state, effects=tuple(effects), text=text)
    return Answer(state=State.SKIPPED, text="nothing was looked for")


def _state(judgement: Judgement, target: Target) -> tuple[State, str]:
    """Read one statistic; where the gate is in doubt, what is sought may still be clear.

    The gate asks whether a commit is within the budget of good. Here the question is
    a coarser one: is it like good, or like bad? An interval that holds one of them
    and leaves the other out answers it.
    """
    verdict, found = verdict_text(judgement.verdict), judgement.comparison
    if judgement.outcome is Outcome.REGRESSED:
        return State.BAD, ""
    if judgement.outcome in _GREEN:
        return State.GOOD, ""
    if judgement.outcome is Outcome.INCONCLUSIVE and found and not found.absolute:
        like_good, like_bad = found.low <= 1, found.high >= target.low
        if like_good and not like_bad:
            return State.GOOD, f"{verdict}, but like GOOD, and not like BAD"
        if like_bad and not like_good:
            return State.BAD, f"{verdict}, but like BAD, and not like GOOD"
    return State.SKIPPED, verdict


def _judgement(result: BenchmarkResult | None, target: Target) -> Judgement | None:
    for judgement in result.judgements if result else ():
        if judgement.gated and statistic_name(judgement) == target.statistic:
            return judgement
    return None


def _doubt(target: Target, result: BenchmarkResult | None) -> str:
    if result is None:
        return f"{target.benchmark}: not measured"
    last = result.text.strip().splitlines()[-1:]
    told = ": ".join([verdict_text(result.verdict), *last])
    return f"{target.benchmark}: {told}"


def _effect(result: BenchmarkResult, judgement: Judgement) -> Effect:
    found = judgement.comparison
    ratio, low, high = (
        (found.ratio, found.low, found.high) if found else (math.nan,) * 3
    )
    return Effect(
        benchmark=result.benchmark,
        statistic=statistic_name(judgement),
        ratio=ratio,
        low=low,
        high=high,
        verdict=verdict_text(judgement.verdict),
    )


def in_percent(effect: Effect) -> str:
    """Write `+30.1 % [+29.0…+31.2]`."""
    if not math.isfinite(effect.ratio):
        return "no numbers"
    ratio, low, high = (
        (value - 1) * 100 for value in (effect.ratio, effect.low, effect.high)
    )
    return f"{ratio:+.1f} % [{low:+.1f}…{high:+.1f}]"


# -- the end


def conclusion(found: Found, targets: Sequence[Target]) -> tuple[int, tuple[str, ...]]:
    """Name the commit, or those that are left; returns the exit code too."""
    if len(found.suspects) > 1:
        return INCONCLUSIVE, tuple(_several(found))
    (culprit,) = found.suspects
    return 0, tuple(_one(found, culprit, targets))


def _one(found: Found, culprit: Commit, targets: Sequence[Target]) -> Iterator[str]:
    yield f"first bad commit: {described(culprit)}"
    answer = found.answer_of(culprit.sha)
    effects = answer.effects if answer else ()
    for effect in effects:
        yield (
            f"  {visible(effect.benchmark)}: {effect.statistic} {in_percent(effect)} "
            f"against GOOD: {effect.verdict}"
        )
    before = [found.answer_of(parent) for parent in culprit.parents]
    for told in before:
        if told is not None and told.worst is not None:
            yield f"  its parent: {in_percent(told.worst)}"
    there = {(effect.benchmark, effect.statistic): effect for effect in effects}
    later = [
        target.benchmark
        for target in targets
        if (seen := there.get((target.benchmark, target.statistic))) is None
        or seen.high < target.low
    ]
    if later:
        yield (
            f"another commit slowed {', '.join(dict.fromkeys(later))}: bisect again "
            f"with GOOD={culprit.short} and those alone"
        )


def _several(found: Found) -> Iterator[str]:
    skipped = sum(step.answer.state is State.SKIPPED for step in found.steps)
    yield (
        f"the first bad commit is one of these {len(found.suspects)}; "
        f"{counted(skipped, 'commit')} could not be told:"
    )
    for commit in found.suspects:
        told = found.answer_of(commit.sha)
        state = told.state if told else "not measured"
        yield f"  {described(commit)} ({state})"


def described(commit: Commit) -> str:
    """Commit, subject, author and date on one line."""
    subject = visible(one_line(commit.subject))
    return f"{commit.short} {subject} ({visible(commit.author)}, {commit.date})"


# -- as JSON


def commit_tree(commit: Commit) -> dict[str, Any]:
    return {
        "commit": commit.sha,
        "subject": commit.subject,
        "author": commit.author,
        "date": commit.date,
    }


def target_tree(target: Target) -> dict[str, str]:
    return {
        "benchmark": target.benchmark,
        "nodeid": target.nodeid,
        "statistic": target.statistic,
    }


def step_tree(step: Step) -> dict[str, Any]:
    return {
        **commit_tree(step.commit),
        "state": step.answer.state,
        "text": step.answer.text,
        "effects": [
            {
                "benchmark": one.benchmark,
                "statistic": one.statistic,
                "ratio": _number(one.ratio),
                "low": _number(one.low),
                "high": _number(one.high),
                "verdict": one.verdict,
            }
            for one in step.answer.effects
        ],
    }


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None
