"""`--perfgate-explain`: for which results, held against what, since which commit."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from pytest_perfgate.campaign import git
from pytest_perfgate.campaign.ledger import Entry
from pytest_perfgate.campaign.reference import Reference
from pytest_perfgate.gate.explain import History, explain
from pytest_perfgate.model import Baseline, BenchmarkResult, Outcome, Reason

_JUDGED = frozenset(
    {
        *(Outcome.REGRESSED, Outcome.UNCHANGED, Outcome.IMPROVED),
        *(Outcome.INCONCLUSIVE, Outcome.RECORDED),
    }
)


class Explaining:
    """Adds explanations to results.

    Parameters
    ----------
    when : `auto`, `always` or `never`
    root : of the tree that is measured
    base_commit : gives the commit of the base tree, where there is one
    """

    def __init__(
        self,
        reference: Reference,
        *,
        when: str,
        root: Path,
        base_commit: Callable[[], str | None],
    ) -> None:
        self._reference = reference
        self._when = when
        self._root = root
        self._base_commit = base_commit
        self._histories: dict[str | None, History] = {}

    def of(self, entry: Entry, result: BenchmarkResult) -> BenchmarkResult:
        """Return a result with its explanation, or as it is where it gets none."""
        if not self._wanted(result):
            return result
        found = self._reference.explaining(entry, result.benchmark)
        if found is None:
            return result
        baseline, differences, is_base = found
        since = self._base_commit() if is_base else baseline.sessions[-1].commit
        if result.verdict.reason is Reason.CREPT and not is_base:
            baseline, since = _as_anchored(baseline), baseline.anchor.commit
        explanation = explain(
            baseline, replace(result, differences=differences), self._history(since)
        )
        return replace(result, explanation=explanation)

    def _wanted(self, result: BenchmarkResult) -> bool:
        outcome = result.verdict.outcome
        if self._when == "always":
            return outcome in _JUDGED and bool(result.judgements)
        return self._when == "auto" and outcome is Outcome.REGRESSED

    def _history(self, since: str | None) -> History:
        if since not in self._histories:
            self._histories[since] = git.history(self._root, since)
        return self._histories[since]


def _as_anchored(baseline: Baseline) -> Baseline:
    """Return the anchor alone; profiles are those of the newest session."""
    return replace(baseline, sessions=(baseline.anchor,), profile=None)
