"""What a notebook or a script may import: the gate's judgement of any numbers."""

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeGuard, cast

from pytest_perfgate.errors import UsageError
from pytest_perfgate.gate.budgets import Budget, BudgetRule, is_statistic, is_tail
from pytest_perfgate.gate.judge import FreshPairs, judge_benchmark
from pytest_perfgate.gate.looks import Look
from pytest_perfgate.gate.policy import BenchmarkPolicy
from pytest_perfgate.gate.summary import statistics_of
from pytest_perfgate.measured import Metric, Plan
from pytest_perfgate.model import (
    Baseline,
    Better,
    Judgement,
    Report,
    RunSummary,
    Session,
)
from pytest_perfgate.stats.samples import drift
from pytest_perfgate.units import parse_fraction

__all__ = ["compare", "load_report"]

Runs = Sequence[Sequence[float]]
"""One sequence of samples for each process, all in one unit."""

_NAME = "value"
_MOST_LOOKS = 3


def load_report(path: str | Path) -> Report:
    """Read a `report.json`.

    Raises
    ------
    BaselineError
        The file is not a report, is damaged, or was written by a newer version.
    """
    from pytest_perfgate.store import load_report as load

    return load(Path(path))


def compare(  # noqa: PLR0913 (the public face of the rule: each is one word of a sentence)
    baseline_runs: Runs,
    candidate_runs: Runs,
    *,
    statistic: str = "median",
    budget: str | float = 0.05,
    better: str = "lower",
    paired: bool = False,
    comparisons: int = 1,
    confirmation: Runs | tuple[Runs, Runs] | None = None,
) -> Judgement:
    """Compare two sets of runs as the gate does at its last look.

    Parameters
    ----------
    baseline_runs, candidate_runs : one sequence of samples for each process,
        in the order they were measured and all in one unit; three processes a
        side for a verdict, five where `paired`
    statistic : `median`, `floor`, `mean`, `max` or a quantile such as `p99`
    budget : how much worse the candidate may be: 0.05 or `5%`
    better : `lower` for times, `higher` for rates
    paired : run i of both sides was measured in alternation
    comparisons : how many such comparisons are made together
    confirmation : fresh candidate runs, or a tuple of fresh baseline and fresh
        candidate runs made in alternation; five or more

    Returns
    -------
    Judgement
        `.outcome` and `.reason` say what holds, `.comparison` has the numbers.
        Without a confirmation a regression has the reason `flagged`: the gate
        itself never reports one before fresh runs have confirmed it. The floor
        on its own is `inconclusive: suspect` then, unless `paired`.

    Raises
    ------
    ValueError
        A sample is not a finite number, a statistic is not positive, a side is
        empty, pairs do not match, or an argument cannot mean anything; the
        message names the run and the value.
    """
    metric = Metric(name=_NAME, unit="", better=_direction(better))
    rule = BudgetRule(
        metric=_NAME, statistic=_statistic(statistic), budget=_budget(budget)
    )
    policy = BenchmarkPolicy(nodeid="", rules=(rule,), defaults=False)
    named = {"baseline_runs": baseline_runs, "candidate_runs": candidate_runs}
    named |= _confirmation_sides(confirmation)
    checked = {name: _checked(runs, name) for name, runs in named.items()}
    shortest = min(len(run) for runs in checked.values() for run in runs)
    sides = {
        name: _summaries(runs, statistic, name=name, shortest=shortest)
        for name, runs in checked.items()
    }
    if paired and len(baseline_runs) != len(candidate_runs):
        raise ValueError(
            f"paired=True needs as many baseline as candidate runs, got"
            f" {len(baseline_runs)} and {len(candidate_runs)}"
        )
    look = Look(
        index=_MOST_LOOKS - 1,
        comparisons=comparisons,
        final_runs=len(candidate_runs),
        base_code=_FRESH_BASE in sides,
        paired=paired,
    )
    judged = judge_benchmark(
        policy=policy,
        baseline=_baseline(metric, sides["baseline_runs"]),
        candidate=sides["candidate_runs"],
        look=look,
        confirmation=_fresh(sides),
    )
    return judged.judgements[0]


def _direction(better: str) -> Better:
    try:
        return Better(better)
    except ValueError:
        raise ValueError(f"better={better!r} is neither 'lower' nor 'higher'") from None


def _statistic(statistic: str) -> str:
    if not is_statistic(statistic):
        raise ValueError(
            f"statistic={statistic!r} is none of median, floor, mean, max or a"
            " quantile like p99"
        )
    return statistic


def _budget(budget: str | float) -> Budget:
    try:
        fraction = parse_fraction(budget, name="budget")
    except UsageError as error:
        raise ValueError(str(error)) from None
    if fraction == 0:
        raise ValueError(f"budget={budget!r} allows nothing; write 5% or 0.05")
    return Budget(value=fraction)


_FRESH_BASE = "fresh baseline runs"
_FRESH = "fresh candidate runs"


def _confirmation_sides(
    confirmation: Runs | tuple[Runs, Runs] | None,
) -> dict[str, Runs]:
    if confirmation is None:
        return {}
    if not _is_pair(confirmation):
        return {_FRESH: cast("Runs", confirmation)}
    base, candidate = confirmation
    if len(base) != len(candidate):
        raise ValueError(
            f"confirmation has {len(base)} baseline and {len(candidate)} candidate"
            " runs; made in alternation they are as many"
        )
    return {_FRESH_BASE: base, _FRESH: candidate}


def _is_pair(
    confirmation: Runs | tuple[Runs, Runs],
) -> TypeGuard[tuple[Runs, Runs]]:
    """Tell a tuple of two sides from one side: its parts hold runs, not samples."""
    return (
        isinstance(confirmation, tuple)
        and len(confirmation) == 2
        and all(len(side) and hasattr(side[0], "__len__") for side in confirmation)
    )


def _checked(runs: Runs, name: str) -> list[tuple[float, ...]]:
    checked = [_checked_run(run, f"{name}[{index}]") for index, run in enumerate(runs)]
    if not checked:
        raise ValueError(f"{name} is empty")
    return checked


def _checked_run(run: Iterable[float], place: str) -> tuple[float, ...]:
    values = tuple(map(float, run))
    if not values:
        raise ValueError(f"{place} has no sample")
    for index, value in enumerate(values):
        if not math.isfinite(value):
            raise ValueError(f"{place}[{index}] is {value!r}, not a finite number")
    return values


def _summaries(
    runs: Iterable[tuple[float, ...]], statistic: str, *, name: str, shortest: int
) -> tuple[RunSummary, ...]:
    """Reduce runs; where length moves the statistic, all count as the shortest."""
    cut = shortest if is_tail(statistic) or statistic in {"floor", "max"} else None
    return tuple(
        _summary(run[:cut], statistic, f"{name}[{index}]")
        for index, run in enumerate(runs)
    )


def _summary(run: tuple[float, ...], statistic: str, place: str) -> RunSummary:
    found = statistics_of(run, [statistic])
    value = found[statistic].value
    if value <= 0:
        raise ValueError(f"the {statistic} of {place} is {value:g}; a ratio needs > 0")
    trend = drift(run)
    return RunSummary(
        iterations=len(run),
        statistics={_NAME: found},
        drift={} if trend is None else {_NAME: trend},
    )


def _baseline(metric: Metric, runs: tuple[RunSummary, ...]) -> Baseline:
    session = Session(time="", commit=None, environment_digest="", runs=runs)
    return Baseline(
        plan=Plan(iterations=runs[0].iterations, warmup=0),
        metrics={_NAME: metric},
        sessions=(session,),
        anchor=session,
    )


def _fresh(
    sides: Mapping[str, tuple[RunSummary, ...]],
) -> FreshPairs | tuple[RunSummary, ...] | None:
    if _FRESH_BASE in sides:
        return FreshPairs(baseline=sides[_FRESH_BASE], candidate=sides[_FRESH])
    return sides.get(_FRESH)
