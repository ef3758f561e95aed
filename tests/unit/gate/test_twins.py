"""Pairs compared turn by turn."""

import math
from dataclasses import replace

import pytest

from pytest_perfgate.gate.confirm import FreshPairs
from pytest_perfgate.gate.evidence import Sides, collect, estimate, scale_of
from pytest_perfgate.gate.looks import Look
from pytest_perfgate.gate.policy import resolve_policy
from pytest_perfgate.gate.summary import summarise
from pytest_perfgate.gate.twins import disturbed_unequally, with_twin
from pytest_perfgate.measured import METRICS, Health, Measurement, Metric, Plan, Samples

LATENCY = METRICS["latency"]
PLAN = Plan(iterations=6, warmup=0)


def measured(values, *, metric=LATENCY, turns=(2, 2, 2), plan=PLAN):
    return Measurement(
        benchmark="b",
        nodeid="b",
        run=1,
        plan=plan,
        samples=(Samples(metric=metric, values=tuple(values)),),
        turns=turns,
    )


def twin_of(candidate, base, metric="latency"):
    summary = with_twin(summarise(candidate), candidate, base)
    return summary.get(metric, "median").twin


def test_a_load_in_the_middle_does_not_move_what_turns_say():
    # both sides become three times as slow in the last turn but one
    base = measured([1, 1, 1, 1, 3, 3, 1, 1], turns=(2, 2, 2, 2))
    slower = measured([1.1, 1.1, 1.1, 1.1, 3.3, 3.3, 1.1, 1.1], turns=(2, 2, 2, 2))
    assert twin_of(slower, base).log_ratio == pytest.approx(math.log(1.1))
    assert twin_of(slower, base).se == pytest.approx(0.0, abs=1e-12)


def test_it_is_the_median_over_turns():
    base = measured([1, 1, 1, 1, 1, 1])
    candidate = measured([1, 1, 2, 2, 4, 4])
    assert twin_of(candidate, base).log_ratio == pytest.approx(math.log(2))
    assert twin_of(candidate, base).se > 0


@pytest.mark.parametrize(
    "base",
    [
        measured([1.0] * 6, turns=()),  # whole runs alternated
        measured([1.0] * 6, turns=(3, 3)),  # other turns
        measured([1.0] * 5),  # samples that belong to no turn
        measured([0.0] + [1.0] * 5, turns=(1, 1, 1, 1, 1, 1)),
        measured([1.0] * 6, metric=Metric(name="other", unit="s")),
    ],
)
def test_turns_that_do_not_match_say_nothing(base):
    assert twin_of(measured([1.0] * 6), base) is None


def test_a_median_of_nothing_has_no_ratio():
    nothing = measured([0.0, 0.0, 1.0, 1.0, 1.0, 1.0])
    assert twin_of(measured([1.0] * 6), nothing) is None


def shaken(disturbed, *, turns=(2, 2, 2), whole=False):
    health = Health(blocks=10, disturbed_blocks=disturbed, disturbed=whole)
    return replace(measured([1.0] * 6, turns=turns), health=health)


@pytest.mark.parametrize(
    ("candidate", "base", "unequal"),
    [
        (shaken(9, whole=True), shaken(9, whole=True), False),  # a neighbour of both
        (shaken(9, whole=True), shaken(5, whole=True), True),
        (shaken(0), shaken(3), False),
        (shaken(0), shaken(4), True),
        # whole runs that alternate are minutes apart
        (shaken(9, turns=(), whole=True), shaken(9, turns=(), whole=True), True),
        (shaken(2, turns=()), shaken(2, turns=()), False),
    ],
)
def test_only_unequal_disturbance_spoils_a_pair(candidate, base, unequal):
    assert disturbed_unequally(candidate, base) is unequal


def test_one_value_a_turn_and_several_an_iteration():
    cpu = METRICS["cpu_time"]
    one = measured([2.0, 2.0, 2.0], metric=cpu)
    other = measured([1.0, 1.0, 1.0], metric=cpu)
    assert twin_of(one, other, "cpu_time").log_ratio == pytest.approx(math.log(2))
    twice = measured([2.0] * 12)
    assert twin_of(twice, measured([1.0] * 12)).log_ratio == pytest.approx(math.log(2))


def test_a_metric_without_a_median_has_no_twin():
    memory = METRICS["peak_memory"]
    one = measured([2.0], metric=memory)
    summary = with_twin(summarise(one), one, measured([1.0], metric=memory))
    assert summary == summarise(one)


def estimated(base, candidate, *, metric=LATENCY, spec="5%", paired=True):
    policy = resolve_policy("b", specs=[f"{metric.name}={spec}"])
    budget = next(g.budget for g in policy.gates(metric) if g.statistic == "median")
    sides = Sides(baseline=(base,), candidate=candidate)
    numbers = collect(sides, metric, "median")
    return estimate(numbers, scale_of(metric, budget), Look(paired=paired))


def halves(ratios, *, metric=LATENCY):
    """Pairs whose medians say nothing (a load hit one side) and whose turns do."""
    base, candidate = [], []
    for ratio in ratios:
        one = measured([1.0] * 4 + [5.0] * 2, metric=metric)
        other = measured([ratio] * 4 + [5.0 * ratio] * 2, metric=metric)
        base.append(summarise(one))
        summary = with_twin(summarise(other), other, one)
        # as if the whole run of the candidate had been hit
        median = summary.get(metric.name, "median")
        statistics = {metric.name: {"median": replace(median, value=9.0)}}
        candidate.append(replace(summary, statistics=statistics))
    return FreshPairs(baseline=tuple(base), candidate=tuple(candidate))


def test_a_pair_is_judged_by_its_turns():
    pairs = halves([1.1, 1.1, 1.1, 1.1, 1.1])
    found = estimated(pairs.baseline, pairs.candidate)
    assert found.delta == pytest.approx(math.log(1.1))


def test_the_direction_of_a_metric_counts_for_turns_too():
    rate = Metric(name="rate", unit="s", better="higher")
    pairs = halves([1.1] * 5, metric=rate)
    found = estimated(pairs.baseline, pairs.candidate, metric=rate)
    assert found.delta == pytest.approx(-math.log(1.1))


def test_where_one_pair_has_no_turns_the_medians_speak(make):
    pairs = halves([1.1] * 5)
    bare = (*pairs.candidate[:4], make.run(latency__median=9.0))
    found = estimated(pairs.baseline, bare)
    assert found.delta == pytest.approx(math.log(9.0), rel=1e-3)


def test_unpaired_looks_ignore_turns():
    pairs = halves([1.1] * 5)
    found = estimated(pairs.baseline, pairs.candidate, paired=False)
    assert found.delta == pytest.approx(math.log(9.0), rel=1e-3)
