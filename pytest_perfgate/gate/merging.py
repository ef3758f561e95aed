"""From the reports of several machines or matrix legs to one verdict.

Everything is judged again from what each report carries: its exit code and its
summary are never trusted to make anything greener.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

from pytest_perfgate.errors import UsageError
from pytest_perfgate.gate.bounds import fresh_level
from pytest_perfgate.gate.comparability import compare_environments
from pytest_perfgate.gate.consistency import (
    ON_INCONCLUSIVE,
    ON_MISSING,
    contradictions,
    records,
)
from pytest_perfgate.gate.family import tests_of, with_q_values
from pytest_perfgate.gate.legs import Broken, Part, latest, machine_of
from pytest_perfgate.gate.suite import (
    EXIT_INTERNAL,
    EXIT_INTERRUPTED,
    EXIT_NOTHING,
    EXIT_RED,
    PRECEDENCE,
    SEVERITY,
    exit_codes,
    summary_sentence,
)
from pytest_perfgate.model import (
    BenchmarkResult,
    Environment,
    Outcome,
    Reason,
    Report,
)
from pytest_perfgate.units import format_change

FAIL_ON = ("policy", "regressed", "never")
"""What fails a build: every exit code, only a regression or an error, nothing."""

_DIRTY = "+dirty"

__all__ = ["FAIL_ON", "Broken", "Judged", "Merged", "Part", "judge_again", "merge"]


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """What the reports say together."""

    report: Report
    """The merged report, with the exit code of the policy and its summary."""
    codes: tuple[int, ...]
    """All exit codes that are asked for, the winner first."""
    exit_code: int
    """The first that is not forgiven; 0 where all are."""


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
    policy = _stricter(reports)
    environment = _common([report.environment for report in reports])
    results = _worst(parts, _strict(reports), apart=environment is None)
    told = [*_told(parts), *_family(parts, results)]
    if len(parts) > 1:
        results = with_q_values([_weighed(one, results) for one in results])
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


def _stricter(reports: Sequence[Report]) -> dict[str, str]:
    """Merge policies: of what to fail on the stricter, of the rest all values."""
    names = dict.fromkeys(name for report in reports for name in report.policy)
    policy = {
        name: " | ".join(
            dict.fromkeys(r.policy[name] for r in reports if name in r.policy)
        )
        for name in names
    }
    strict = _strict(reports)
    for name, judge in _JUDGES.items():
        if name in policy or len(set(map(judge, reports))) > 1:
            policy[name] = strict[_KEYWORDS[name]]
    return policy


def _strict(reports: Sequence[Report]) -> dict[str, str]:
    """Return what to fail on, for `exit_codes`: the stricter of all reports."""
    return {
        keyword: "fail" if "fail" in map(_JUDGES[name], reports) else "warn"
        for name, keyword in _KEYWORDS.items()
    }


def _on_missing(report: Report) -> str:
    return report.policy.get(ON_MISSING, "fail")


def _on_inconclusive(report: Report) -> str:
    if records(report):
        return "fail"
    return report.policy.get(ON_INCONCLUSIVE, "warn")


_JUDGES = {ON_MISSING: _on_missing, ON_INCONCLUSIVE: _on_inconclusive}
_KEYWORDS = {ON_MISSING: "on_missing", ON_INCONCLUSIVE: "on_inconclusive"}


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
    for name, judge in _JUDGES.items():
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


def _weighed(
    result: BenchmarkResult, results: Sequence[BenchmarkResult]
) -> BenchmarkResult:
    """Remark where a confirmed statistic would need more proof in the union."""
    level = fresh_level(max(1, _count_tests(results)))
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


# judging again ----------------------------------------------------------------


def judge_again(merged: Merged, *, fail_on: str = "policy") -> Judged:
    """Recompute exit code and summary from the results.

    Parameters
    ----------
    fail_on : `policy` forgives nothing; `regressed` forgives every verdict but
        a regression or an error; `never` forgives all that was judged, too.
        What could not be read fails in any case, and except for `never` so
        does what was interrupted or measured nothing

    Raises
    ------
    UsageError
        For another `fail_on`.
    """
    if fail_on not in FAIL_ON:
        raise UsageError(f"--fail-on={fail_on!r} is not one of {', '.join(FAIL_ON)}")
    notes: list[str] = []
    unfit = {one.exit_code for one in merged.broken}
    nothing = set() if merged.parts or unfit else {EXIT_NOTHING}
    asked = (
        nothing
        | unfit
        | {code for part in merged.parts for code in _besides(part, notes)}
    )
    asked |= set(exit_codes(merged.report.results, **_strict([merged.report])))
    codes = tuple(code for code in PRECEDENCE if code in asked)
    problems = (merged.report.problem, *(one.problem for one in merged.broken))
    report = replace(
        merged.report,
        exit_code=codes[0] if codes else 0,
        summary=_summary(merged),
        problem="; ".join(filter(None, problems)),
        notes=(*merged.report.notes, *notes),
    )
    return Judged(
        report=report,
        codes=codes,
        exit_code=next(iter(_not_forgiven(codes, unfit, fail_on)), 0),
    )


def _besides(part: Part, notes: list[str]) -> Iterator[int]:
    """Yield the exit codes that a report asks for beside those of its results."""
    report, source = part.report, part.source
    own = set(exit_codes(report.results, **_strict([report])))
    extra = set()
    if report.interrupted:
        extra.add(EXIT_INTERRUPTED)
    if not own and not _measured(report):
        what = "nothing was measured" if report.results else "there is no benchmark"
        notes.append(f"in {source} {what}: this says nothing about performance")
        extra.add(EXIT_NOTHING)
    stored = report.exit_code if report.exit_code in PRECEDENCE else EXIT_RED
    if report.problem:
        extra.add(EXIT_INTERNAL if stored == EXIT_INTERNAL else EXIT_RED)
    if report.exit_code == 0 and own | extra:
        notes.append(f"{source} has exit code 0, and its results do not bear that out")
    elif report.exit_code and stored not in own | extra:
        notes.append(
            f"{source} has exit code {report.exit_code}, which no result of it"
            " explains: what else failed there?"
        )
        extra.add(stored)
    yield from extra


def _measured(report: Report) -> bool:
    """Tell whether any process measured anything, or failed in trying."""
    return any(
        result.runs or result.confirmation or result.verdict.outcome is Outcome.ERROR
        for result in report.results
    )


def _summary(merged: Merged) -> str:
    report, unusable = merged.report, len(merged.broken)
    if not merged.parts and not unusable:
        return "no report was found: this says nothing about performance"
    if not merged.parts:
        return f"none of {unusable} reports can be used: nothing was judged"
    text = summary_sentence(
        report.results,
        anything_measured=any(_measured(part.report) for part in merged.parts),
        interrupted=report.interrupted,
        failed=bool(report.problem),
    )
    total = unusable + len(merged.parts)
    return f"{text}; {unusable} of {total} reports cannot be used" if unusable else text


def _not_forgiven(
    codes: Sequence[int], unfit: AbstractSet[int], fail_on: str
) -> Iterator[int]:
    always = unfit | {EXIT_INTERNAL}
    if fail_on == "regressed":
        always = always | {EXIT_RED, EXIT_INTERRUPTED, EXIT_NOTHING}
    yield from (code for code in codes if fail_on == "policy" or code in always)
