"""Several attempts of one matrix leg: the latest counts, and the rest is named."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import PurePath

from pytest_perfgate.model import BenchmarkResult, Report

_ARTIFACT = re.compile(r"perfgate-(?P<leg>.+)-(?P<attempt>\d{1,9})")
"""How an artifact is named that tells its leg and the attempt of the run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One report that was read."""

    source: str
    """Its path, as it is shown."""
    report: Report


@dataclass(frozen=True, slots=True, kw_only=True)
class Broken:
    """One report that cannot be used, and the exit code that this asks for."""

    source: str
    problem: str
    exit_code: int


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class _Attempt:
    number: int
    created: str = ""

    def text(self, other: "_Attempt") -> str:
        """Tell this attempt from another one of its leg."""
        alike = self.number == other.number
        made = f" made {self.created}" if alike else ""
        return f"attempt {self.number}{made}"


def machine_of(result: BenchmarkResult, report: Report) -> str:
    """Return the kind of hardware of a result; empty where it is not known."""
    environment = result.environment or report.environment
    return environment.key if environment else ""


def latest(
    parts: Iterable[Part], broken: Iterable[Broken] = ()
) -> tuple[tuple[Part, ...], tuple[Broken, ...], tuple[str, ...]]:
    """Leave out what a later attempt of the same leg measured again.

    A folder called `perfgate-LEG-ATTEMPT` tells both; of two with the same
    attempt the newer report counts. A report in any other folder is a leg of
    its own. An attempt that holds a benchmark which the latest one lacks is
    kept: it may be no attempt of the same leg after all.

    Returns
    -------
    tuple
        The parts and the broken ones that count, and what was done, in words.
    """
    ordered = sorted(parts, key=lambda part: part.source)
    best: dict[str, Part] = {}
    for part in ordered:
        leg = _leg(part.source)
        if leg and (leg not in best or _attempt(best[leg]) < _attempt(part)):
            best[leg] = part
    notes: list[str] = []
    kept = [part for part in ordered if _counts(part, best, notes)]
    left = [one for one in broken if _is_last(one, best, notes)]
    return tuple(kept), tuple(left), tuple(notes)


def _counts(part: Part, best: dict[str, Part], notes: list[str]) -> bool:
    leg = _leg(part.source)
    winner = best.get(leg, part)
    if winner is part:
        return True
    own, later = _attempt(part), _attempt(winner)
    alone = _benchmarks(part) - _benchmarks(winner)
    what = f"{part.source} ({own.text(later)} of {leg})"
    if alone:
        notes.append(
            f"{what} counts beside {winner.source}, which lacks {len(alone)} of its"
            " benchmarks"
        )
        return True
    notes.append(f"{what} is left out: {later.text(own)} counts, {winner.source}")
    return False


def _is_last(one: Broken, best: dict[str, Part], notes: list[str]) -> bool:
    """Tell whether no later attempt stands for a report that cannot be used."""
    winner = best.get(_leg(one.source))
    if winner is None or _number(winner.source) <= _number(one.source):
        return True
    notes.append(
        f"{one.source} cannot be used ({one.problem}), and is left out:"
        f" attempt {_number(winner.source)} counts, {winner.source}"
    )
    return False


def _artifact(source: str) -> "re.Match[str] | None":
    folders: Sequence[str] = PurePath(source).parts[:-1]
    found = (_ARTIFACT.fullmatch(name) for name in reversed(folders))
    return next((one for one in found if one), None)


def _leg(source: str) -> str:
    found = _artifact(source)
    return found["leg"] if found else ""


def _number(source: str) -> int:
    found = _artifact(source)
    return int(found["attempt"]) if found else 0


def _attempt(part: Part) -> _Attempt:
    return _Attempt(number=_number(part.source), created=part.report.created)


def _benchmarks(part: Part) -> set[tuple[str, str]]:
    return {
        (machine_of(result, part.report), result.benchmark)
        for result in part.report.results
    }
