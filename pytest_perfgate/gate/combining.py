"""From the gated statistics of a benchmark to its one verdict."""

from collections.abc import Sequence
from dataclasses import replace

from pytest_perfgate.model import Judgement, Outcome, Reason, Verdict

_ORDER = (
    Outcome.REGRESSED,
    Outcome.ERROR,
    Outcome.INCOMPARABLE,
    Outcome.NO_BASELINE,
    Outcome.INCONCLUSIVE,
)


def combined(gated: Sequence[Judgement], *, stored: bool) -> Verdict:
    """Read a benchmark's verdict from its gated judgements.

    Parameters
    ----------
    gated : the main statistic of each metric before its others
    stored : whether there is a baseline at all
    """
    outcomes = [one.outcome for one in gated]
    red = Outcome.REGRESSED in outcomes or Outcome.ERROR in outcomes
    if not stored and not red:
        return Verdict(outcome=Outcome.NO_BASELINE, reason=Reason.NOTHING_STORED)
    for outcome in _ORDER:
        if outcome in outcomes:
            alike = [one.verdict for one in gated if one.outcome is outcome]
            suspects = [one for one in alike if one.reason is Reason.SUSPECT]
            return (suspects or alike)[0]
    if not gated:
        return Verdict(outcome=Outcome.SKIPPED, reason=Reason.NOT_GATED)
    improved = [one for one in gated if one.outcome is Outcome.IMPROVED]
    medians = [one for one in improved if one.statistic == "median"]
    # improved by the median; faster elsewhere alone is no more than unchanged
    if medians:
        return medians[0].verdict
    unchanged = [one for one in gated if one.outcome is Outcome.UNCHANGED]
    if unchanged:
        return unchanged[0].verdict
    return Verdict(outcome=Outcome.UNCHANGED, reason=Reason.WITHIN_BUDGET)


def not_earned(judgement: Judgement) -> Judgement:
    """Call the gain of one statistic what it is where other work was done."""
    if judgement.outcome is not Outcome.IMPROVED:
        return judgement
    verdict = replace(judgement.verdict, reason=Reason.CHANGED_WORK)
    return replace(judgement, verdict=verdict)


def earned(verdict: Verdict, other: str | None) -> Verdict:
    """Call a gain what it is where other work was done, as `other` says."""
    if other is None or verdict.outcome is not Outcome.IMPROVED:
        return verdict
    return replace(verdict, reason=Reason.CHANGED_WORK, detail=other)
