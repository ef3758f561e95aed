"""A machine that moved as a whole is told from code that did."""

import math

import numpy as np
import pytest

from pytest_perfgate.gate.judge import BenchmarkJudgement
from pytest_perfgate.gate.shift import effect_of, machine_wide_shift, under_shift
from pytest_perfgate.measured import METRICS, Metric
from pytest_perfgate.model import Comparison, Judgement, Outcome, Reason, Shift, Verdict

FLAG = Verdict(outcome=Outcome.REGRESSED, reason=Reason.FLAGGED)
WITHIN = Verdict(outcome=Outcome.UNCHANGED, reason=Reason.WITHIN_BUDGET)
LIMIT = Verdict(outcome=Outcome.REGRESSED, reason=Reason.OVER_LIMIT)
SLOWER = Shift(ratio=1.06, benchmarks=60, share=1.0)


def effects(count, *, center=0.0, sd=0.005, seed=0):
    return np.random.default_rng(seed).normal(center, sd, count).tolist()


def compared(ratio, *, absolute=False):
    return Comparison(
        baseline=1.0,
        candidate=ratio,
        ratio=ratio,
        low=ratio,
        high=ratio,
        p_identity=0.5,
        baseline_runs=10,
        candidate_runs=3,
        spread=0.01,
        detectable=None,
        absolute=absolute,
    )


def judgement(ratio=None, *, metric="latency", statistic="median", **others):
    known = METRICS[metric] if isinstance(metric, str) else metric
    comparison = others.pop("comparison", None)
    if ratio is not None:
        comparison = compared(ratio)
    others.setdefault("verdict", WITHIN)
    return Judgement(metric=known, statistic=statistic, comparison=comparison, **others)


def test_sixty_benchmarks_six_percent_slower_are_one_slow_machine():
    shift = machine_wide_shift(effects(60, center=math.log(1.06)))
    assert shift.ratio == pytest.approx(1.06, abs=0.002)
    assert (shift.benchmarks, shift.share) == (60, 1.0)


def test_a_shift_in_the_good_direction_is_one_too():
    shift = machine_wide_shift(effects(12, center=math.log(0.97)))
    assert shift.ratio == pytest.approx(0.97, abs=0.005)


@pytest.mark.parametrize(
    "found",
    [
        effects(9, center=0.06),  # too few to be a crowd
        effects(60),  # nothing happened
        [0.004] * 60,  # less than 0.5 %
        [0.0] * 60,
        effects(60, center=0.01, sd=0.05),  # within what chance does to a median
        [0.1] * 17 + [0.0] * 43,  # a third of them really slower
        [0.05] * 7 + [-0.0001] * 5,  # 58 % one way
    ],
    ids=["nine", "none", "small", "still", "noise", "third", "both-ways"],
)
def test_what_is_no_shift(found):
    assert machine_wide_shift(found) is None


def test_identical_code_seldom_looks_like_a_shift():
    rng = np.random.default_rng(5)
    found = [machine_wide_shift(rng.normal(0, 0.02, 30).tolist()) for _ in range(2000)]
    assert sum(shift is not None for shift in found) <= 0.01 * 2000


def test_a_benchmark_speaks_by_the_first_time_it_is_judged_by():
    shown = judgement(1.5, metric="cpu_time", gated=False)
    assert effect_of([shown, judgement(1.02)]) == pytest.approx(math.log(1.02))
    assert effect_of([shown]) == pytest.approx(math.log(1.5))
    rate = judgement(1.1, metric="throughput", statistic="mean")
    assert effect_of([rate]) == pytest.approx(math.log(1.1))


@pytest.mark.parametrize(
    "told",
    [
        judgement(),
        judgement(1.1, metric="peak_memory", statistic="max"),
        judgement(1.1, metric=Metric(name="syncs", unit="1", exact=True)),
        judgement(1.1, statistic="p99"),
        judgement(1.1, anchor=True),
        judgement(comparison=compared(0.2, absolute=True)),
    ],
    ids=["nothing", "memory", "count", "tail", "anchor", "difference"],
)
def test_what_says_nothing_of_a_machine(told):
    assert effect_of([told]) is None


def judged(*judgements, flagged=True):
    return BenchmarkJudgement(
        judgements=judgements,
        verdict=judgements[0].verdict,
        decided=True,
        flagged=flagged,
    )


def test_a_flag_in_a_shift_becomes_doubt_and_keeps_its_numbers():
    found = under_shift(judged(judgement(1.5, verdict=FLAG)), SLOWER)
    assert not found.flagged
    assert found.decided
    assert found.verdict.outcome is Outcome.INCONCLUSIVE
    assert found.verdict.reason is Reason.MACHINE_WIDE_SHIFT
    assert "60 benchmarks" in found.verdict.detail
    assert "+6.0 %" in found.verdict.detail
    assert found.judgements[0].comparison.ratio == 1.5  # nothing is subtracted


def test_what_needs_no_confirming_stays_red_in_a_shift():
    found = under_shift(
        judged(judgement(1.1, verdict=FLAG), judgement(verdict=LIMIT)), SLOWER
    )
    assert found.verdict == LIMIT
    assert [one.reason for one in found.judgements] == [
        Reason.MACHINE_WIDE_SHIFT,
        Reason.OVER_LIMIT,
    ]


def test_what_is_not_flagged_is_left_alone():
    unchanged = judged(judgement(1.0), flagged=False)
    assert under_shift(unchanged, SLOWER) is unchanged


def test_slower_on_a_machine_that_became_faster_is_confirmed_as_ever():
    flagged = judged(judgement(1.1, verdict=FLAG))
    faster = Shift(ratio=0.95, benchmarks=60, share=1.0)
    assert under_shift(flagged, faster) is flagged
