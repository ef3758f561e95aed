"""q-values: Benjamini and Hochberg's, of what was really put to a test."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import false_discovery_control

from pytest_perfgate.gate.family import q_values, with_q_values
from pytest_perfgate.measured import METRICS
from pytest_perfgate.model import (
    BenchmarkResult,
    Comparison,
    Judgement,
    Outcome,
    Reason,
    Verdict,
)


@pytest.mark.parametrize("count", [1, 2, 40])
def test_they_are_those_of_the_textbook(count):
    p_values = np.random.default_rng(count).uniform(0, 1, count) ** 3
    expected = false_discovery_control(p_values)
    assert q_values(p_values.tolist()) == pytest.approx(expected.tolist())


def test_ties_and_none():
    assert q_values([]) == []
    assert q_values([0.02, 0.02]) == [0.02, 0.02]


def judgement(p, *, statistic="median", **others):
    comparison = Comparison(
        baseline=1.0,
        candidate=1.0,
        ratio=1.0,
        low=0.9,
        high=1.1,
        p_identity=p,
        baseline_runs=10,
        candidate_runs=3,
        spread=others.pop("spread", 0.01),
        detectable=None,
    )
    verdict = Verdict(outcome=Outcome.UNCHANGED, reason=Reason.WITHIN_BUDGET)
    return Judgement(
        metric=METRICS["latency"],
        statistic=statistic,
        verdict=verdict,
        comparison=comparison,
        **others,
    )


def result(*judgements):
    verdict = Verdict(outcome=Outcome.UNCHANGED, reason=Reason.WITHIN_BUDGET)
    return BenchmarkResult(
        benchmark="b", nodeid="b", verdict=verdict, judgements=judgements
    )


def q_of(results):
    return [
        one.comparison and one.comparison.q_value
        for found in results
        for one in found.judgements
    ]


def test_the_family_is_the_whole_session():
    found = with_q_values(
        [result(judgement(0.01), judgement(0.5)), result(judgement(0.02))]
    )
    assert q_of(found) == pytest.approx([0.03, 0.5, 0.03])


def test_what_is_no_test_has_none_and_counts_for_none():
    found = with_q_values(
        [
            result(
                judgement(0.04),
                judgement(0.0, spread=0.0),
                judgement(0.01, statistic="floor"),
                judgement(0.01, gated=False),
                replace(judgement(0.01), comparison=None),
                judgement(0.02, gated=False, anchor=True),
            )
        ]
    )
    assert q_of(found) == [pytest.approx(0.04), None, None, None, None, 0.04]


def test_nothing_else_is_touched():
    before = result(judgement(0.2))
    (after,) = with_q_values([before])
    assert (
        replace(
            after,
            judgements=tuple(
                replace(one, comparison=replace(one.comparison, q_value=None))
                for one in after.judgements
            ),
        )
        == before
    )
