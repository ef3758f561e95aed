"""From what was measured, here or in other jobs, to one verdict and one exit code.

What is not there is never taken for well: a leg without a report, a job that was
skipped, a file that cannot be read each have their own words and code.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from pytest_perfgate.cli.gate import REPORT, find, read
from pytest_perfgate.gate.judging_again import Judged, judge_again
from pytest_perfgate.gate.merging import Broken, Part, merge
from pytest_perfgate.gate.suite import EXIT_INTERNAL, EXIT_NOTHING, EXIT_RED
from pytest_perfgate.github.artifacts import LARGEST_REPORT
from pytest_perfgate.model import BenchmarkResult, Outcome, Report
from pytest_perfgate.reports.words import accepted_exit_code, counts, overall


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What there is to judge, and what should be there and is not."""

    parts: tuple[Part, ...] = ()
    broken: tuple[Broken, ...] = ()
    why_nothing: str = ""
    """Why nothing was measured, where that is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ruling:
    """What the step decided."""

    verdict: str
    """`pass`, `improved`, `accepted`, or the outcome that is red."""
    code: int
    """As pytest --perfgate would end."""
    exit_code: int
    """What of that the input fail-on does not forgive."""
    sentence: str
    report: Report
    measured: bool
    """False where there is no report at all."""

    def count(self, *outcomes: Outcome) -> int:
        found = dict(counts(self.report))
        return sum(found.get(outcome, 0) for outcome in outcomes)


def collect(env: Mapping[str, str]) -> Found:
    """Read what this job measured, or in mode `gate` what other jobs did."""
    folder = Path(env["PERFGATE_REPORT_DIR"])
    if env["PERFGATE_MODE"] == "gate":
        return _of_other_jobs(folder, env.get("PERFGATE_MEASURE_RESULT", ""))
    return _of_this_job(folder / REPORT, env.get("PERFGATE_EXIT_CODE", ""))


# -- this job


def _of_this_job(file: Path, code: str) -> Found:
    if not code.isdecimal():
        return _broken("pytest was not run", EXIT_INTERNAL)
    if not file.exists():
        return _without_report(int(code))
    parts, broken = _read([file])
    told = (
        f"pytest ended with exit code {code} though no benchmark failed: something else "
        "did, see its log"
    )
    failed_otherwise = int(code) != 0
    return Found(
        parts=tuple(
            replace(part, report=replace(part.report, exit_code=EXIT_RED, problem=told))
            if failed_otherwise and part.report.exit_code == 0
            else part
            for part in parts
        ),
        broken=broken,
    )


def _without_report(code: int) -> Found:
    if code == EXIT_NOTHING:
        return Found(why_nothing="pytest found no benchmarks: nothing was measured")
    if code == 0:
        told = "pytest ended with exit code 0 and wrote no report: is the plugin off?"
        return _broken(told, EXIT_INTERNAL)
    told = f"pytest ended with exit code {code} before there was a report: see its log"
    return _broken(told, EXIT_RED if code == EXIT_RED else EXIT_INTERNAL)


def _broken(told: str, code: int) -> Found:
    return Found(broken=(Broken(source="pytest", problem=told, exit_code=code),))


# -- other jobs


def _of_other_jobs(folder: Path, result: str) -> Found:
    files = list(find([folder])) if folder.is_dir() else []
    parts, unreadable = _read(files)
    broken = (*unreadable, *_legs_without_report(folder, files))
    if result == "skipped":
        told = "the job that measures was skipped: nothing was measured"
        extra = () if not parts else (_of_job(told, EXIT_NOTHING),)
        return Found(parts=parts, broken=(*broken, *extra), why_nothing=told)
    if result in {"failure", "cancelled"}:
        told = f"the job that measures ended with {result!r}: see its log"
        broken = (*broken, _of_job(told, EXIT_INTERNAL))
    elif not parts and not broken:
        broken = (_of_job(f"there is no {REPORT} below {folder}", EXIT_INTERNAL),)
    return Found(parts=parts, broken=broken)


def _of_job(told: str, code: int) -> Broken:
    return Broken(source="the job that measures", problem=told, exit_code=code)


def _legs_without_report(folder: Path, files: Iterable[Path]) -> Iterator[Broken]:
    """Tell of artifacts that hold no report: what made them ended too early."""
    there = {file.relative_to(folder).parts[0] for file in files}
    for place in sorted(folder.iterdir()) if folder.is_dir() else ():
        if place.is_dir() and place.name not in there:
            yield Broken(
                source=str(place / REPORT),
                problem=f"{place.name} holds no {REPORT}: see the log of its job",
                exit_code=EXIT_INTERNAL,
            )


def _read(files: Iterable[Path]) -> tuple[tuple[Part, ...], tuple[Broken, ...]]:
    """Read reports of a size that reports have; the others are broken."""
    small, large = [], []
    for file in files:
        size = file.stat().st_size
        if size <= LARGEST_REPORT:
            small.append(file)
        else:
            told = f"{file}: {size:,} bytes, and at most {LARGEST_REPORT:,} are read"
            large.append(
                Broken(source=str(file), problem=told, exit_code=EXIT_INTERNAL)
            )
    parts, broken = read(small)
    return tuple(parts), (*broken, *large)


# -- the decision


def rule(found: Found, *, fail_on: str, accepted: bool) -> Ruling:
    """Decide by the policy that the reports carry.

    Parameters
    ----------
    found : the reports, and what is wrong with them
    fail_on : `policy`, `regressed` or `never`
    accepted : the pull request's regressions are accepted by its label

    Raises
    ------
    UsageError
        Where the reports are of different commits.
    """
    judged = _judge(found.parts, found.broken, fail_on)
    report, deciding = judged.report, judged
    if accepted and any(map(_is_regression, report.results)):
        pardoned = (
            replace(part, report=_pardoned(part.report)) for part in found.parts
        )
        deciding = _judge(pardoned, found.broken, fail_on)
    code = next(iter(deciding.codes), 0)
    return Ruling(
        verdict=_word(report, code, accepted=deciding is not judged),
        code=code,
        exit_code=deciding.exit_code,
        sentence=_sentence(found, report),
        report=report,
        measured=bool(found.parts),
    )


def _judge(parts: Iterable[Part], broken: Iterable[Broken], fail_on: str) -> Judged:
    return judge_again(merge(parts, broken), fail_on=fail_on)


def _is_regression(result: BenchmarkResult) -> bool:
    return result.verdict.outcome is Outcome.REGRESSED


def _pardoned(report: Report) -> Report:
    """Take the regressions out of what can fail; nothing else gets greener."""
    return replace(
        report,
        exit_code=accepted_exit_code(report),
        results=tuple(
            replace(result, absorbed=True) if _is_regression(result) else result
            for result in report.results
        ),
    )


def _word(report: Report, code: int, *, accepted: bool) -> str:
    if not accepted:
        return overall(report)
    if code == 0:
        return "accepted"
    rest = tuple(one for one in report.results if not _is_regression(one))
    return overall(replace(report, results=rest, exit_code=code))


def _sentence(found: Found, report: Report) -> str:
    parts = [report.summary] if found.parts else []
    if not found.parts and not found.broken:
        parts.append(found.why_nothing or report.summary)
    return "; ".join(filter(None, (*parts, report.problem)))
