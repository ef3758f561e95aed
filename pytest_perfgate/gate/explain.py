"""What changed together with a benchmark: possible causes, the strongest first.

Another output comes before all else. Counts that changed come before times, for a
count has no noise; then whether the host or the GPU decides, kernels and operators,
the GPU's clock, versions and settings, and the commits in between. It judges nothing,
and is honest where nothing that was recorded differs.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from statistics import median_low

from pytest_perfgate.gate.clocks import Clocks, compare_clocks
from pytest_perfgate.gate.host_bound import Bound, compare_bounds
from pytest_perfgate.gate.outputs import other_work
from pytest_perfgate.gate.profiles import Listing, profile_clues
from pytest_perfgate.measured import UNSTABLE, Metric, Profile
from pytest_perfgate.model import (
    Baseline,
    BenchmarkResult,
    Better,
    Clue,
    ClueKind,
    Explanation,
    Outcome,
    RunSummary,
)
from pytest_perfgate.units import format_fraction, format_value

OTHER_CLOCK = 0.01
"""A clock that differs by less is the same."""
OTHER_SIZE = 0.01
"""A peak of memory that differs by less is the same; counts are exact."""
_LEAST_SHARE = 0.005
"""A smaller share would be written as none."""
_SIZES = frozenset(
    {
        *("peak_memory", "working_memory", "reserved_memory", "inactive_split_memory"),
        *("device_allocations", "allocator_retries", "allocator_ooms"),
    }
)
_ORDER = (
    *("recompiles", "graph_breaks", "compiled_graphs", "syncs", "copies_pageable"),
    *("copies_d2h", "copies_h2d", "bytes_d2h", "bytes_h2d", "kernel_launches"),
    *("graph_launches", "kernels", "ops", "ops_eager", "flops", "peak_memory"),
    *("working_memory", "reserved_memory", "inactive_split_memory"),
    *("allocation_retries", "allocator_retries", "allocator_ooms"),
    *("device_allocations", "allocations"),
)
"""Counts, those first that say most about a cause."""
_OF_ONE_CALL = ("latency", "step_time", "e2e")

Runs = tuple[RunSummary, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """One commit that the candidate has and the baseline had not."""

    name: str
    subject: str


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """What git knows of the way from the baseline to the candidate."""

    since: str = ""
    """The baseline's commit."""
    commits: tuple[Commit, ...] = ()
    """The newest of them first."""
    count: int = 0
    dirty: bool = False
    """Whether the candidate has changes that are not committed."""
    problem: str = ""
    """Why there is nothing to list, where that is no good news."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Slowdown:
    """By how much one call became slower; None where it did not, or is not known."""

    host_s: float | None = None
    device_s: float | None = None
    log_ratio: float | None = None
    """Of the device's time, or of the host's where that is all there is."""


def explain(
    baseline: Baseline, result: BenchmarkResult, history: History
) -> Explanation:
    """Say what differs between a benchmark and what it was judged against.

    Parameters
    ----------
    baseline : stored, or the base halves of pairs; with their profile
    result : the benchmark, with the candidate's profile and its judgements
    history : the commits in between

    Returns
    -------
    Explanation
        At least one line: where nothing differs, that says so, and names what
        was compared.
    """
    slowdown = _slowdown(result)
    now = (*result.runs, *result.confirmation)
    clocks = compare_clocks(baseline.runs, now)
    bound = compare_bounds(baseline.runs, now)
    found = (
        *_output(baseline, now),
        *_counts(baseline, result.metrics, now),
        *_bound(bound),
        *_profiles(baseline.profile, result.profile, slowdown),
        *_clocks(clocks, slowdown, waits=bound.either),
        *_environment(result),
        *_commits(history),
    )
    notes = tuple(_notes(baseline, result, history))
    if not found:
        notes = (_nothing(baseline, result, clocks, history), *notes)
    return Explanation(lines=(*found, *notes))


def clue_text(clue: Clue) -> str:
    """Write a clue with its share of the slowdown, where there is one."""
    if clue.share is None or abs(clue.share) < _LEAST_SHARE:
        return clue.text
    if clue.share >= 1:
        return f"{clue.text}: as much as the whole slowdown"
    return f"{clue.text}: {format_fraction(round(clue.share, 2))} of the slowdown"


# -- what came out


def _output(baseline: Baseline, now: Runs) -> Iterator[Clue]:
    other = other_work(baseline.runs, now)
    if other:
        yield Clue(kind=ClueKind.OUTPUT, text=f"other work: {other}")


# -- how much slower


def _slowdown(result: BenchmarkResult) -> _Slowdown:
    grown = {
        judgement.metric.name: (comparison.baseline, comparison.candidate)
        for judgement in result.judgements
        if (comparison := judgement.comparison) is not None
        and judgement.statistic == "median"
        and judgement.metric.unit == "s"
        and judgement.outcome is Outcome.REGRESSED
        and not judgement.anchor
        and comparison.candidate > comparison.baseline > 0
    }
    host = next((grown[name] for name in _OF_ONE_CALL if name in grown), None)
    device = grown.get("device_time")
    main = device or host
    return _Slowdown(
        host_s=host[1] - host[0] if host else None,
        device_s=device[1] - device[0] if device else None,
        log_ratio=math.log(main[1] / main[0]) if main else None,
    )


# -- counts


def _counts(baseline: Baseline, metrics: Mapping[str, Metric], now: Runs) -> list[Clue]:
    """Name the counts that changed, those that became worse first."""
    found: list[tuple[bool, int, Clue]] = []
    for name in _counted(baseline, metrics):
        metric = metrics[name]
        old, new = _value(baseline.runs, metric), _value(now, metric)
        if old is None or new is None or not _differs(metric, old, new):
            continue
        worse = (new > old) is (metric.better is Better.LOWER)
        rank = _ORDER.index(name) if name in _ORDER else len(_ORDER)
        found.append(
            (not worse, rank, _count(baseline.metrics[name], metric, old, new))
        )
    return [clue for _, _, clue in sorted(found, key=lambda one: one[:2])]


def _counted(baseline: Baseline, metrics: Mapping[str, Metric]) -> list[str]:
    """List the counts that both sides have, made in the same way."""
    return [
        name
        for name, metric in sorted(metrics.items())
        if (metric.exact or name in _SIZES)
        and (before := baseline.metrics.get(name)) is not None
        and before.made == metric.made
        and UNSTABLE not in {before.holds_for, metric.holds_for}
    ]


def _value(runs: Runs, metric: Metric) -> float | None:
    values = [one.value for run in runs if (one := run.get(metric.name, "max"))]
    return median_low(values) if values else None


def _differs(metric: Metric, old: float, new: float) -> bool:
    return new != old if metric.exact else abs(new - old) > OTHER_SIZE * old


def _count(before: Metric, metric: Metric, old: float, new: float) -> Clue:
    sides = format_value(old, metric.unit), format_value(new, metric.unit)
    text = f"{metric.name}: {sides[0]} → {sides[1]}"
    if before.holds_for != metric.holds_for:
        text += f" (with {before.holds_for}, now with {metric.holds_for})"
    return Clue(kind=ClueKind.COUNT, text=text, old=sides[0], new=sides[1])


# -- operators and kernels


def _profiles(
    old: Profile | None, new: Profile | None, slowdown: _Slowdown
) -> tuple[Clue, ...]:
    if old is None or new is None:
        return ()
    on_gpu = bool(new.kernels)
    return (
        *profile_clues(
            ClueKind.KERNEL,
            Listing(uses=old.kernels, total_s=old.kernels_s),
            Listing(uses=new.kernels, total_s=new.kernels_s),
            slowdown_s=slowdown.device_s or slowdown.host_s,
            told=True,
        ),
        *profile_clues(
            ClueKind.OPERATOR,
            Listing(uses=old.operators, total_s=old.operators_s),
            Listing(uses=new.operators, total_s=new.operators_s),
            slowdown_s=slowdown.host_s,
            # the host goes on while kernels run: their times do not add up
            told=not on_gpu,
        ),
    )


# -- the machine


def _bound(bound: Bound) -> Iterator[Clue]:
    if bound.change:
        yield Clue(kind=ClueKind.BOUND, text=bound.change)


def _clocks(clocks: Clocks, slowdown: _Slowdown, *, waits: bool) -> Iterator[Clue]:
    """Name what differs of the GPU.

    Parameters
    ----------
    waits : for the host, so that its clock has no part in how long a call takes
    """
    shift = clocks.shift
    if shift is not None and abs(shift) > OTHER_CLOCK:
        lower = slowdown.log_ratio is not None and shift < 0 and not waits
        yield Clue(
            kind=ClueKind.CLOCK,
            text=f"median SM clock: {clocks.text}",
            old=f"{clocks.before_mhz:.0f} MHz",
            new=f"{clocks.now_mhz:.0f} MHz",
            share=-shift / slowdown.log_ratio if lower and slowdown.log_ratio else None,
        )
    for text in clocks.odd:
        yield Clue(kind=ClueKind.CLOCK, text=text)


def _environment(result: BenchmarkResult) -> Iterator[Clue]:
    differences = [one for one in result.differences if not one.forbids]
    if len(differences) > 1:
        names = ", ".join(one.field for one in differences)
        yield Clue(
            kind=ClueKind.ENVIRONMENT,
            text=f"{len(differences)} versions and settings differ ({names}): "
            "which of them is a cause cannot be told apart",
        )
    for one in differences:
        yield Clue(
            kind=ClueKind.ENVIRONMENT,
            text=f"{one.field}: {one.baseline} → {one.candidate}",
            old=one.baseline,
            new=one.candidate,
        )


# -- commits


def _commits(history: History) -> Iterator[Clue]:
    if history.dirty:
        yield Clue(kind=ClueKind.COMMIT, text="there are uncommitted changes")
    if history.count > 1:
        yield Clue(
            kind=ClueKind.COMMIT,
            text=f"{history.count:,} commits since the baseline's {history.since}",
            old=history.since,
        )
    for commit in history.commits:
        yield Clue(
            kind=ClueKind.COMMIT,
            text=f"commit {commit.name}: {commit.subject}",
            new=commit.name,
        )
    left_out = history.count - len(history.commits)
    if history.commits and left_out:
        text = f"… and {left_out:,} earlier commits"
        yield Clue(kind=ClueKind.COMMIT, text=text)


# -- what could not be compared


def _notes(
    baseline: Baseline, result: BenchmarkResult, history: History
) -> Iterator[Clue]:
    lacking = _lacking(baseline, result)
    if lacking:
        yield _note(f"operators were not compared: there is no profile of {lacking}")
    if history.since.endswith("+dirty"):
        yield _note("the baseline has changes in it that were never committed")
    if history.problem:
        yield _note(f"commits were not compared: {history.problem}")


def _lacking(baseline: Baseline, result: BenchmarkResult) -> str:
    """Say which side has no profile where the other has one."""
    if result.profile and not baseline.profile:
        return "what it was held against"
    return "the candidate" if baseline.profile and not result.profile else ""


def _nothing(
    baseline: Baseline, result: BenchmarkResult, clocks: Clocks, history: History
) -> Clue:
    compared = ", ".join(_compared(baseline, result, clocks, history))
    return _note(f"nothing that was recorded differs; compared: {compared}")


def _compared(
    baseline: Baseline, result: BenchmarkResult, clocks: Clocks, history: History
) -> Iterable[str]:
    counts = len(_counted(baseline, result.metrics))
    if counts:
        yield f"{counts} count{'' if counts == 1 else 's'}"
    if baseline.profile and result.profile:
        yield "operators"
    if clocks.shift is not None:
        yield "the GPU's clock"
    yield "versions and settings"
    if not history.problem:
        yield "commits"


def _note(text: str) -> Clue:
    return Clue(kind=ClueKind.NOTE, text=text)
