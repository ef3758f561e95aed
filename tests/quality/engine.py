"""The decision rule on arrays: thousands of comparisons at once.

The estimators are written down a second time, with numpy, row by row as
`pytest_perfgate.stats.interval` has them; what follows from an estimate is
`pytest_perfgate.gate.bounds` itself. `test_engine.py` holds both against the
judge of the gate, benchmark by benchmark.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import fdtri, stdtr, stdtrit

from pytest_perfgate.gate.bounds import (
    bar_of,
    is_confirmed,
    is_confirmed_alone,
    is_faster,
    is_futile,
    is_over,
    is_suspect,
    is_within,
)
from pytest_perfgate.gate.budgets import Budget
from pytest_perfgate.gate.looks import Look, planned_looks
from pytest_perfgate.gate.shift import machine_wide_shift
from pytest_perfgate.stats.interval import SPREAD_FLOOR, Estimate

BUDGET = 0.05

OPEN, UNCHANGED, IMPROVED, FLAGGED, SUSPECT, FUTILE = range(6)
"""Where screening left a comparison. OPEN: no verdict at the last look."""


def t_at(level, df):
    """Give t quantiles; most rows share their degrees of freedom."""
    values, places = np.unique(df, return_inverse=True)
    return stdtrit(values, level)[places]


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimates(Estimate):
    """An `Estimate` whose delta, se, df and spread are arrays, shape (n,)."""

    def lower(self, alpha):
        return self.delta - t_at(1 - alpha, self.df) * self.se

    def upper(self, alpha):
        return self.delta + t_at(1 - alpha, self.df) * self.se

    @property
    def p_worse(self):
        return stdtr(self.df, -self.delta / self.se)

    @property
    def p_better(self):
        return stdtr(self.df, self.delta / self.se)


def variance(values):
    return values.var(axis=-1, ddof=1)


def session_variance(sessions, spread2):
    """τ² of equally long sessions, shape (n, sessions, runs)."""
    least = spread2 / 16
    count, length = sessions.shape[1:]
    if count < 4:
        return least
    between = variance(sessions.mean(axis=2))
    if length == 1:
        return np.maximum(least, between)
    within = variance(sessions).mean(axis=1)
    return np.maximum(least, between - within / length)


def two_samples(baseline, candidate, *, within=0.0):
    """Compare stored sessions, shape (n, sessions, runs), with runs, shape (n, runs)."""
    runs = baseline.reshape(len(baseline), -1)
    n_base, n_cand = runs.shape[1], candidate.shape[1]
    least = np.maximum(SPREAD_FLOOR**2, within)
    raw_base, raw_cand = variance(runs), variance(candidate)
    df = n_base + n_cand - 2
    pooled = ((n_base - 1) * raw_base + (n_cand - 1) * raw_cand) / df
    spread2 = np.maximum(pooled, least)
    var_base, var_cand = np.maximum(raw_base, least), np.maximum(raw_cand, least)
    changed = (var_cand / var_base > fdtri(n_cand - 1, n_base - 1, 0.999)) | (
        var_base / var_cand > fdtri(n_base - 1, n_cand - 1, 0.999)
    )
    part_base, part_cand = var_base / n_base, var_cand / n_cand
    welch = part_base + part_cand
    welch_df = welch**2 / (part_base**2 / (n_base - 1) + part_cand**2 / (n_cand - 1))
    se2 = np.where(changed, welch, spread2 * (1 / n_base + 1 / n_cand))
    between = session_variance(baseline, spread2) * (1 + 1 / baseline.shape[1])
    return Estimates(
        delta=candidate.mean(axis=1) - runs.mean(axis=1),
        se=np.sqrt(se2 + between),
        df=np.where(changed, welch_df, df),
        spread=np.sqrt(spread2),
        baseline_runs=n_base,
        candidate_runs=n_cand,
        session_variance=between,
        variability_changed=changed,
    )


def pairs(differences, *, within=0.0):
    """Compare pairs, shape (n, pairs)."""
    count = differences.shape[1]
    spread2 = np.maximum(variance(differences), np.maximum(SPREAD_FLOOR**2, within))
    return Estimates(
        delta=differences.mean(axis=1),
        se=np.sqrt(spread2 / count),
        df=np.full(len(differences), count - 1),
        spread=np.sqrt(spread2),
        baseline_runs=count,
        candidate_runs=count,
        paired=True,
    )


@dataclass(frozen=True, kw_only=True)
class Runs:
    """Log statistics of runs, bigger is worse, of n comparisons at once.

    `baseline` has the shape (n, sessions, runs), all others (n, runs). Within
    variances are means over the runs of both sides, shape (n,), or 0.
    """

    baseline: np.ndarray
    candidate: np.ndarray
    fresh_base: np.ndarray
    fresh: np.ndarray
    paired: bool = False
    within: np.ndarray | float = 0.0

    def __len__(self):
        return len(self.candidate)

    def take(self, rows):
        within = self.within if np.isscalar(self.within) else self.within[rows]
        return Runs(
            baseline=self.baseline[rows],
            candidate=self.candidate[rows],
            fresh_base=self.fresh_base[rows],
            fresh=self.fresh[rows],
            paired=self.paired,
            within=within,
        )

    def slower(self, effect):
        """Let the candidate take so much longer, in all its runs."""
        step = np.log1p(effect)
        return Runs(
            baseline=self.baseline,
            candidate=self.candidate + step,
            fresh_base=self.fresh_base,
            fresh=self.fresh + step,
            paired=self.paired,
            within=self.within,
        )

    def estimate(self, count):
        """Estimate from the first runs of the candidate."""
        now = self.candidate[:, :count]
        if self.paired:
            before = self.baseline[:, 0, :count]
            return pairs(now - before, within=2 * self.within)
        return two_samples(self.baseline, now, within=self.within)


@dataclass(frozen=True, kw_only=True)
class Screened:
    """What screening made of n comparisons, and after how many runs or pairs."""

    state: np.ndarray
    runs: np.ndarray
    delta: np.ndarray
    """The estimate when screening stopped."""


def looks_of(runs, *, comparisons, base_code):
    counts = planned_looks(5, 12, paired=True) if runs.paired else planned_looks(3, 12)
    return [
        (
            count,
            Look(
                index=index,
                last=count == counts[-1],
                comparisons=comparisons,
                final_runs=counts[-1],
                base_code=base_code,
                paired=runs.paired,
            ),
        )
        for index, count in enumerate(counts)
    ]


def stand(found, bar, look):
    """Say where one statistic stands at one look."""
    state = np.full(len(found.delta), OPEN)
    within = is_within(found, bar, look)
    state[within] = UNCHANGED
    state[within & is_faster(found, look)] = IMPROVED
    over = is_over(found, bar, look)
    state[over] = FLAGGED
    rest = ~within & ~over
    state[rest & is_suspect(found, bar, look)] = SUSPECT
    if look.index >= 1 and not look.last:
        futile = is_futile(found, bar, look) & (found.delta <= bar.theta)
        state[rest & futile] = FUTILE
    return state


def screen(runs, *, comparisons, base_code, budget=BUDGET):
    """Look as often as planned, and stop each comparison when it may."""
    bar = bar_of(Budget(value=budget))
    state = np.full(len(runs), OPEN)
    used = np.zeros(len(runs), dtype=int)
    delta = np.zeros(len(runs))
    going = np.arange(len(runs))
    for count, look in looks_of(runs, comparisons=comparisons, base_code=base_code):
        found = runs.take(going).estimate(count)
        now = stand(found, bar, look)
        state[going], used[going], delta[going] = now, count, found.delta
        going = going[now == OPEN]
        if not going.size:
            break
    return Screened(state=state, runs=used, delta=delta)


def confirm(runs, screened, *, comparisons, base_code, budget=BUDGET):
    """Hold what was flagged against fresh runs.

    Returns
    -------
    tuple of bool arrays, shape (n,)
        Which are confirmed, and which turned out to be unchanged after all.
    """
    bar = bar_of(Budget(value=budget))
    confirmed = np.zeros(len(runs), dtype=bool)
    stale = confirmed.copy()
    for state in (FLAGGED, SUSPECT) if base_code else (FLAGGED,):
        rows = np.flatnonzero(screened.state == state)
        if not rows.size:
            continue
        some = runs.take(rows)
        suspect = state == SUSPECT
        if base_code:
            held, green = _with_base(some, bar, comparisons, suspect=suspect)
            stale[rows] = green & ~held
        else:
            held = _without_base(some, bar, comparisons)
        confirmed[rows] = held
    return confirmed, stale


def _with_base(runs, bar, comparisons, *, suspect):
    look = Look(comparisons=comparisons, paired=True, base_code=True)
    found = pairs(runs.fresh - runs.fresh_base, within=2 * runs.within)
    held = is_confirmed(found, bar, look, suspect=suspect)
    return held, is_within(found, bar, look)


def _without_base(runs, bar, comparisons):
    look = Look(comparisons=comparisons)
    found = two_samples(runs.baseline, runs.fresh, within=runs.within)
    return is_confirmed_alone(found, bar, look, sessions=runs.baseline.shape[1])


@dataclass(frozen=True, kw_only=True)
class Outcomes:
    """What the gate says in the end, one flag each of n comparisons."""

    flagged: np.ndarray
    """Beyond the budget when screened, before any confirmation."""
    regressed: np.ndarray
    passed: np.ndarray
    """Unchanged or improved."""
    suspect: np.ndarray
    """Looks like a regression, and no fresh pair was there to tell."""
    runs: np.ndarray
    """Candidate runs, or pairs, of the screening."""

    @property
    def inconclusive(self):
        return ~self.regressed & ~self.passed


def heed_shifts(screened, *, suite):
    """Take back the flags of suites in which the whole machine became slower."""
    for start in range(0, len(screened.state) - suite + 1, suite):
        rows = slice(start, start + suite)
        flagged = screened.state[rows] == FLAGGED
        if flagged.any():
            shift = machine_wide_shift(screened.delta[rows].tolist())
            if shift is not None and shift.ratio > 1:
                screened.state[rows][flagged] = OPEN


def judge(runs, *, comparisons, base_code, budget=BUDGET, suite=None):
    """Screen, confirm and conclude.

    Parameters
    ----------
    comparisons : M, metrics that are judged together
    base_code : fresh runs of the base code confirm, and not stored ones
    suite : benchmarks that are measured together and share a machine; None
        where they do not
    """
    settings = {"comparisons": comparisons, "base_code": base_code, "budget": budget}
    screened = screen(runs, **settings)
    if suite and not base_code:
        heed_shifts(screened, suite=suite)
    confirmed, stale = confirm(runs, screened, **settings)
    return Outcomes(
        flagged=screened.state == FLAGGED,
        regressed=confirmed,
        passed=np.isin(screened.state, (UNCHANGED, IMPROVED)) | stale,
        suspect=(screened.state == SUSPECT) & (not base_code),
        runs=screened.runs,
    )
