"""The reports of several machines or matrix legs as one."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from pytest_perfgate.errors import UsageError
from pytest_perfgate.gate.bounds import fresh_level
from pytest_perfgate.gate.comparability import compare_environments
from pytest_perfgate.gate.consistency import (
    contradictions,
)
from pytest_perfgate.gate.family import tests_of, with_q_values
from pytest_perfgate.gate.legs import Broken, Part, latest, machine_of
from pytest_perfgate.gate.strictness import SWITCHES, fails_on, merged_policy
from pytest_perfgate.gate.suite import (
    EXIT_NOTHING,
    EXIT_RED,
    PRECEDENCE,
    SEVERITY,
    exit_codes,
)
from pytest_perfgate.model import (
    BenchmarkResult,
    Environment,
    Reason,
    Report,
)
from pytest_perfgate.units import format_change

_DIRTY = "+dirty"

__all__ = ["Broken", "Merged", "Part", "merge"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Merged:
    """Reports as one, not yet judged again."""

    report: Report
    """All results, with the stricter of the policies; of its parts' exit codes
    and summaries it has nothing yet."""
    parts: tuple[Part, ...] = ()
    """The reports that count."""
    broken: tuple[Broken, ...] = ()
    """Those that cannot be used, for which no later attempt stands."""


# merging ----------------------------------------------------------------------


def merge(parts: Iterable[Part], broken: Iterable[Broken] = ()) -> Merged:
    """Merge reports: each benchmark once for each kind of hardware, the worst counts.

    Parameters
    ----------
    parts : what was read; a report that contradicts itself becomes a broken one
    broken : what could not be read

    Raises
    ------
    UsageError
        Where the reports are of different commits.
    """
    sound, unsound = _checked(parts)
    kept, left, notes = latest(sound, (*broken, *unsound))
    if not kept:
        return Merged(report=_empty(notes), broken=left)
    _refuse_other_commits(kept)
    if len(kept) == 1 and not notes:
        return Merged(report=kept[0].report, parts=kept, broken=left)
    return Merged(report=_joined(kept, notes), parts=kept, broken=left)


def _checked(parts: Iterable[Part]) -> tuple[list[Part], list[Broken]]:
    sound, unsound = [], []
    for part in parts:
        problem = next(contradictions(part.report), None)
        if problem is None:
            sound.append(part)
        else:
            text = f"{part.source} contradicts itself: {problem}; measure again"
            unsound.append(Broken(source=part.source, problem=text, exit_code=EXIT_RED))
    return sound, unsound


def _empty(notes: tuple[str, ...]) -> Report:
    return Report(
        created="",
        commit=None,
        environment=None,
        results=(),
        exit_code=EXIT_NOTHING,
        summary="",
        notes=notes,
    )


def _refuse_other_commits(parts: Sequence[Part]) -> None:
    of = {part.report.commit: part.source for part in parts if part.report.commit}
    heads = {commit.removesuffix(_DIRTY) for commit in of}
    if len(heads) > 1:
        shown = ", ".join(f"{commit} ({source})" for commit, source in of.items())
        raise UsageError(
            f"these reports are of different commits: {shown}; name those of one"
        )


def _joined(parts: Sequence[Part], notes: Sequence[str]) -> Report:
    reports = [part.report for part in parts]
    policy = merged_policy(reports)
    environment = _common([report.environment for report in reports])
    results = _worst(parts, fails_on(reports), apart=environment is None)
    told = [*_told(parts), *_family(parts, results)]
    if len(parts) > 1:
        level = fresh_level(max(1, _count_tests(results)))
        results = with_q_values([_weighed(one, level) for one in results])
    return Report(
        created=max(report.created for report in reports),
        # the longest is the dirty one
        commit=max((r.commit for r in reports if r.commit), key=len, default=None),
        environment=environment,
        results=results,
        exit_code=EXIT_NOTHING,
        summary="",
        policy=policy,
        cost=_sum(reports),
        interrupted=any(report.interrupted for report in reports),
        shift=reports[0].shift if len(reports) == 1 else None,
        base=reports[0].base if len({_base_of(r) for r in reports}) == 1 else None,
        problem="; ".join(dict.fromkeys(r.problem for r in reports if r.problem)),
        notes=(*notes, *told),
    )


def _base_of(report: Report) -> str:
    return report.base.commit if report.base else ""


def _common(environments: Sequence[Environment | None]) -> Environment | None:
    """Return the environment that all have; None where they differ."""
    first = environments[0]
    for other in environments[1:]:
        if first is None or other is None or compare_environments(first, other):
            return None
    return first


def _sum(reports: Sequence[Report]) -> dict[str, float]:
    total: dict[str, float] = {}
    for report in reports:
        for name, number in report.cost.items():
            total[name] = total.get(name, 0.0) + number
    return total


def _worst(
    parts: Sequence[Part], strict: Mapping[str, str], *, apart: bool
) -> tuple[BenchmarkResult, ...]:
    """Take each benchmark once for each kind of hardware: the worst of its results."""
    found: dict[tuple[str, str], list[tuple[str, BenchmarkResult]]] = {}
    for part in parts:
        for result in part.report.results:
            key = machine_of(result, part.report), result.benchmark
            environment = result.environment or part.report.environment
            own = replace(result, environment=environment if apart else None)
            found.setdefault(key, []).append((part.source, own))
    return tuple(_worst_of(several, strict) for several in found.values())


def _worst_of(
    several: Sequence[tuple[str, BenchmarkResult]], strict: Mapping[str, str]
) -> BenchmarkResult:
    ranked = sorted(several, key=lambda one: _rank(one[1], strict))
    (_, worst), *others = ranked
    remarks = [
        f"in {source} as well: {other.verdict.outcome}, {other.verdict.reason};"
        " the worse counts"
        for source, other in others
    ]
    return replace(worst, remarks=(*worst.remarks, *remarks))


def _rank(result: BenchmarkResult, strict: Mapping[str, str]) -> tuple[int, bool, int]:
    """Rank by what a result asks for, then by how bad it is."""
    asked = exit_codes([result], **strict)
    place = PRECEDENCE.index(asked[0]) if asked else len(PRECEDENCE)
    return place, result.absorbed, SEVERITY.index(result.verdict.outcome)


def _told(parts: Sequence[Part]) -> Iterator[str]:
    """Yield what is a report's own and has no other place in the merged one."""
    for part in parts:
        report = part.report
        prefix = f"{part.source}: " if len(parts) > 1 else ""
        yield from (f"{prefix}{note}" for note in report.notes)
        if report.shift is not None and len(parts) > 1:
            yield (
                f"{prefix}the machine as a whole moved by"
                f" {format_change(report.shift.ratio)}: the median of"
                f" {report.shift.benchmarks} benchmarks"
            )
    bases = {part.source: _base_of(part.report) for part in parts}
    if len(set(bases.values())) > 1:
        told = ", ".join(
            f"{of or 'nothing'} ({source})" for source, of in bases.items()
        )
        yield f"the reports were measured beside different base code: {told}"
    for name, judge in SWITCHES.items():
        if len({judge(part.report) for part in parts}) > 1:
            yield f"the reports differ in {name}: the stricter, fail, holds for all"


# the family -------------------------------------------------------------------


def _count_tests(results: Iterable[BenchmarkResult]) -> int:
    return sum(1 for result in results for _ in tests_of(result))


def _family(parts: Sequence[Part], results: Sequence[BenchmarkResult]) -> Iterator[str]:
    """Say that no session knew of the others when it chose its levels.

    A red verdict stays red: whoever splits a suite over machines must not lose
    what one of them has proven. What the union cannot bear out is told.
    """
    testing = [part for part in parts if _count_tests(part.report.results)]
    if len(testing) > 1:
        yield (
            f"{_count_tests(results)} comparisons in {len(testing)} reports, each"
            " judged in its own family: identical code turns at most 1 % of such"
            f" reports red, and so up to {len(testing)} % of such unions"
        )


def _weighed(result: BenchmarkResult, level: float) -> BenchmarkResult:
    """Remark where a confirmed statistic would need more proof in the union."""
    weak = [
        f"{one.metric.name} {one.statistic}: p = {one.comparison.p_identity:.2g} is"
        f" enough in its own report; among all comparisons of these reports it would"
        f" have to be below {level:.2g}"
        for one in result.judgements
        if one.reason is Reason.CONFIRMED
        and one.comparison is not None
        and one.comparison.p_identity >= level
    ]
    return replace(result, remarks=(*result.remarks, *weak))
