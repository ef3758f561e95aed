"""Whether the machine as a whole moved, rather than one benchmark's code.

A shift is told and never subtracted: it may be the code after all.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from statistics import median

from pytest_perfgate.gate.budgets import is_timed, main_statistic
from pytest_perfgate.gate.combining import combined
from pytest_perfgate.gate.judge import BenchmarkJudgement
from pytest_perfgate.model import Judgement, Outcome, Reason, Shift, Verdict
from pytest_perfgate.units import format_change

FEWEST_BENCHMARKS = 10
"""With fewer, a few slow benchmarks look like a slow machine."""

_LEAST = math.log1p(0.005)
_SHARE = 0.6
_ERRORS = 3
_MEDIAN_ERROR = 1.253
"""Standard error of a median, as a multiple of that of a mean (normal)."""
_MAD_TO_SD = 1.4826


def effect_of(judgements: Iterable[Judgement]) -> float | None:
    """Give a benchmark's effect: the log ratio of the first time it is judged by.

    Returns
    -------
    float or None
        Above 0 is worse; None where no time was compared as a ratio.
    """
    told = [one for one in judgements if _tells(one)]
    first = next((one for one in told if one.gated), told[0] if told else None)
    if first is None or first.comparison is None:
        return None
    return math.log(first.comparison.ratio)


def _tells(judgement: Judgement) -> bool:
    comparison = judgement.comparison
    return (
        comparison is not None
        and not comparison.absolute
        and not judgement.anchor
        and is_timed(judgement.metric)
        and judgement.statistic == main_statistic(judgement.metric)
    )


def machine_wide_shift(effects: Sequence[float]) -> Shift | None:
    """Tell whether most benchmarks moved the same way together.

    Parameters
    ----------
    effects : one log ratio a benchmark, above 0 is worse

    Returns
    -------
    Shift or None
        None with fewer than ten benchmarks, where their median is nearer to
        nothing than 0.5 % or three of its standard errors, and where no more
        than 60 % went its way.

    Notes
    -----
    The standard error of a median of J normal numbers is 1.253·s/√J; s is
    1.4826 times the median absolute deviation, which a few benchmarks that
    really changed do not move.
    """
    count = len(effects)
    if count < FEWEST_BENCHMARKS:
        return None
    centre = median(effects)
    spread = _MAD_TO_SD * median(abs(effect - centre) for effect in effects)
    least = max(_LEAST, _ERRORS * _MEDIAN_ERROR * spread / math.sqrt(count))
    share = sum(effect * centre > 0 for effect in effects) / count
    if abs(centre) <= least or share <= _SHARE:
        return None
    return Shift(ratio=math.exp(centre), benchmarks=count, share=share)


def under_shift(judged: BenchmarkJudgement, shift: Shift) -> BenchmarkJudgement:
    """Take back the flags that a stored baseline cannot bear out in a shift.

    Only where the machine became slower: what is slower although the machine is
    not is confirmed as ever. What needs no confirming (a count, a limit) stands.
    """
    if shift.ratio <= 1 or not judged.flagged:
        return judged
    verdict = Verdict(
        outcome=Outcome.INCONCLUSIVE,
        reason=Reason.MACHINE_WIDE_SHIFT,
        detail=f"the median of {shift.benchmarks} benchmarks moved by"
        f" {format_change(shift.ratio)}",
    )
    judgements = tuple(
        replace(one, verdict=verdict) if one.reason is Reason.FLAGGED else one
        for one in judged.judgements
    )
    gated = [one for one in judgements if one.gated]
    return replace(
        judged,
        judgements=judgements,
        verdict=combined(gated, stored=True),
        flagged=False,
    )
