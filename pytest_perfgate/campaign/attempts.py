"""Earlier attempts on the same commit: counted, and their runs judged with the new.

Whoever runs the gate again until it is green would else win by patience: each
new look at new runs alone is another chance for luck.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pytest_perfgate.campaign import git
from pytest_perfgate.errors import BaselineError, StoreUnreachable
from pytest_perfgate.model import RunSummary
from pytest_perfgate.store.attempts import (
    FILE,
    Evidence,
    keep_attempts,
    load_attempts,
)

Runs = tuple[RunSummary, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Earlier:
    """What earlier attempts have to say of one benchmark."""

    attempts: int = 0
    runs: Runs = ()
    """Made for screening."""
    fresh: Runs = ()
    """Made to confirm a flag, whatever came of it."""

    @property
    def evidence(self) -> Runs:
        """All of them: whatever a run was made for, it is a run of this code."""
        return (*self.runs, *self.fresh)

    def like(self, new: Runs) -> "Earlier":
        """Leave out runs that lack a number which the new ones have."""
        return replace(self, runs=_like(self.runs, new), fresh=_like(self.fresh, new))


def _like(earlier: Runs, new: Sequence[RunSummary]) -> Runs:
    wanted = set.intersection(*map(_columns, new)) if new else set()
    return tuple(run for run in earlier if wanted <= _columns(run))


def _columns(run: RunSummary) -> set[tuple[str, str]]:
    return {
        (metric, statistic)
        for metric, statistics in run.statistics.items()
        for statistic in statistics
    }


class PastAttempts:
    """What is remembered of the commit that is measured."""

    def __init__(self, rootdir: Path, *, hardware: str, counting: bool) -> None:
        """Remember nothing yet.

        Parameters
        ----------
        counting : False where a session proves nothing about its commit: it
            records baselines, or tries the gate out by `--perfgate-slowdown`,
            be it 0 %
        """
        self._rootdir = rootdir
        self._hardware = hardware
        self._counting = counting
        self._commit: str | None = None
        self._known: Mapping[str, Evidence] = {}
        self.problem = ""
        """Why earlier attempts are not counted, where there may have been some."""

    def begin(self) -> None:
        """Look up the commit; a tree that differs from it has no past."""
        if not self._counting:
            return
        self._commit = git.clean_commit(self._rootdir)
        if self._commit is None:
            return
        try:
            known = load_attempts(self._rootdir / FILE)
        except (BaselineError, StoreUnreachable) as error:
            self.problem = f"earlier attempts are not counted: {error}"
        else:
            self._known = known.of(self._commit, self._hardware)

    @property
    def counting(self) -> bool:
        """Whether the commit is known, so that an attempt on it can be counted."""
        return self._commit is not None

    def of(self, benchmark: str, conditions: str) -> Earlier:
        """Return what was measured of a benchmark under the same conditions."""
        found = self._known.get(benchmark)
        if found is None or found.conditions != conditions:
            return Earlier()
        return Earlier(attempts=found.attempts, runs=found.runs, fresh=found.fresh)

    def keep(self, found: Mapping[str, Evidence]) -> None:
        """Remember what this session brought, unless its tree changed meanwhile."""
        if not found or self._commit is None:
            return
        if git.clean_commit(self._rootdir) != self._commit:
            return
        try:
            keep_attempts(
                self._rootdir / FILE,
                commit=self._commit,
                hardware=self._hardware,
                found=found,
            )
        except (BaselineError, StoreUnreachable) as error:
            self.problem = f"this attempt is not remembered: {error}"
