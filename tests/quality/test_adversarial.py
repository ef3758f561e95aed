"""Inputs that other tools get wrong, each with the right verdict.

The budget is 5 % and lower is better unless a test says otherwise.
"""

import math

import numpy as np
import pytest

from pytest_perfgate.api import compare
from pytest_perfgate.errors import UsageError
from pytest_perfgate.gate.judge import judge_benchmark
from pytest_perfgate.gate.looks import Look
from pytest_perfgate.gate.policy import resolve_policy
from pytest_perfgate.gate.summary import summarise
from pytest_perfgate.gate.update import Recording, update_baseline
from pytest_perfgate.measured import METRICS, Measurement, Metric, Plan, Samples
from pytest_perfgate.model import Baseline, Outcome, Reason, RunStatistic, Session
from pytest_perfgate.units import format_change

LATENCY = METRICS["latency"]


def normal(seed, mean, sd, count):
    return np.random.default_rng(seed).normal(mean, sd, count).tolist()


def measured(values, *, metric=LATENCY):
    return summarise(
        Measurement(
            benchmark="b",
            nodeid="b",
            run=0,
            plan=Plan(iterations=len(values), warmup=0),
            samples=(Samples(metric=metric, values=tuple(map(float, values))),),
        )
    )


def stored(runs, *, metric=LATENCY):
    session = Session(time="", commit=None, environment_digest="", runs=tuple(runs))
    return Baseline(
        plan=Plan(iterations=runs[0].iterations, warmup=0),
        metrics={metric.name: metric},
        sessions=(session,),
        anchor=session,
    )


def judge(base, now, *, metric=LATENCY, specs=()):
    judged = judge_benchmark(
        policy=resolve_policy("b", specs=specs),
        baseline=stored([measured(run, metric=metric) for run in base], metric=metric),
        candidate=[measured(run, metric=metric) for run in now],
        look=Look(index=2, last=True),
    )
    return judged, {one.statistic: one for one in judged.judgements}


def test_one_process_a_side_carries_no_evidence():
    found = compare([normal(1, 100, 1, 60)], [normal(2, 106, 1, 60)])
    assert found.outcome is Outcome.INCONCLUSIVE
    assert found.reason is Reason.TOO_FEW_RUNS


def test_offsets_of_processes_are_no_regression():
    def side(offsets, seed):
        return [
            normal(seed + index, 100 * (1 + offset / 100), 1, 40)
            for index, offset in enumerate(offsets)
        ]

    base, now = side((0, 1.5, -2, 0.5, -1), 10), side((2.5, 0, 2, -0.5, 1.5), 20)
    found = compare(base, now)
    assert found.outcome is Outcome.UNCHANGED
    assert found.comparison.ratio == pytest.approx(1.013, abs=0.004)
    assert found.comparison.high < 1.05


def test_equal_numbers_are_equal():
    found = compare([[10.0] * 20] * 5, [[10.0] * 20] * 5)
    assert found.outcome is Outcome.UNCHANGED
    assert found.comparison.ratio == 1.0
    assert found.comparison.spread == 0.001


def test_another_number_of_values_is_normal():
    base = [normal(seed, 100, 1, 20) for seed in range(5)]
    now = [normal(seed + 50, 100, 1, 21) for seed in range(5)]
    assert compare(base, now).outcome is Outcome.UNCHANGED
    shorter = [normal(seed + 50, 100, 1, 19) for seed in range(4)]
    assert compare(base, shorter).outcome is Outcome.UNCHANGED


def test_one_spike_moves_neither_median_nor_verdict():
    base = [normal(seed, 100, 1, 100) for seed in range(5)]
    now = [normal(seed + 50, 100, 1, 100) for seed in range(5)]
    now[2][40] = 2500.0
    judged, _ = judge(base, now)
    assert judged.verdict.outcome is Outcome.UNCHANGED
    tail = compare(base, now, statistic="p99")
    assert tail.reason is Reason.TOO_FEW_TAIL_SAMPLES


def test_every_thirtieth_iteration_slow_is_a_regression_of_the_tail():
    base = [normal(seed, 100, 1, 600) for seed in range(5)]
    now = [normal(seed + 50, 100, 1, 600) for seed in range(5)]
    for run in now:
        run[::30] = [3 * value for value in run[::30]]
    judged, found = judge(base, now)
    assert found["median"].outcome is Outcome.UNCHANGED
    assert found["p99"].outcome is Outcome.REGRESSED
    assert judged.verdict.outcome is Outcome.REGRESSED


def test_three_percent_ten_times_slower_fails_the_tail_alone():
    rng = np.random.default_rng(5)
    base = [normal(seed, 10, 0.1, 1000) for seed in range(5)]
    now = [normal(seed + 50, 10, 0.1, 1000) for seed in range(5)]
    for run in now:
        for index in rng.choice(1000, 30, replace=False):
            run[index] *= 10
    _, found = judge(base, now)
    assert found["median"].outcome is Outcome.UNCHANGED
    assert found["p99"].outcome is Outcome.REGRESSED


def test_the_p99_of_fifty_iterations_is_an_anecdote():
    base = [[100.0] * 50] * 5
    now = [[100.0] * 49 + [150.0]] * 5
    found = compare(base, now, statistic="p99")
    assert found.reason is Reason.TOO_FEW_TAIL_SAMPLES
    assert "P99 needs 200 and 1,000" in found.verdict.detail


def test_nine_samples_have_no_tail():
    values = [0.9, 0.91, 0.89, 0.9, 0.92, 0.88, 10.0, 10.1, 9.9]
    for statistic, needed in (("p95", "40 and 200"), ("p99", "200 and 1,000")):
        found = compare([values] * 3, [values] * 3, statistic=statistic)
        assert found.reason is Reason.TOO_FEW_TAIL_SAMPLES
        assert f"needs {needed}" in found.verdict.detail


def test_fewer_tokens_a_second_are_a_regression():
    found = compare(
        [normal(seed, 1000, 5, 20) for seed in range(5)],
        [normal(seed + 50, 900, 5, 20) for seed in range(5)],
        better="higher",
    )
    assert found.outcome is Outcome.REGRESSED
    assert found.comparison.ratio == pytest.approx(1.111, abs=0.005)


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_what_is_not_a_number_breaks_the_build_as_a_broken_measurement(bad):
    good = [[1.0, 1.1]] * 3
    with pytest.raises(ValueError, match="not a finite number"):
        compare(good, [[1.0, bad]] * 3)
    with pytest.raises(ValueError, match="not a finite number"):
        compare([[1.0, bad]] * 3, good)
    with pytest.raises(ValueError, match="RunStatistic"):
        RunStatistic(value=bad)


@pytest.mark.parametrize("bad", [0.0, -1.0])
def test_what_cannot_be_a_time_breaks_the_build_and_is_no_infinity(bad):
    for base, now in (([[1.0]] * 3, [[bad]] * 3), ([[bad]] * 3, [[1.0]] * 3)):
        judged, _ = judge(base, now)
        assert judged.verdict.outcome is Outcome.ERROR
        assert judged.verdict.reason is Reason.NOT_A_NUMBER
        with pytest.raises(ValueError, match="a ratio needs > 0"):
            compare(base, now)


def test_a_metric_that_is_missing_is_an_error():
    base = stored([measured([1.0, 1.1])] * 3)
    other = [measured([1.0, 1.1], metric=METRICS["e2e"])] * 3
    judged = judge_benchmark(
        policy=resolve_policy("b"), baseline=base, candidate=other, look=Look()
    )
    assert judged.verdict.outcome is Outcome.ERROR
    assert judged.verdict.reason is Reason.METRIC_ABSENT


def test_three_of_five_processes_slower_never_pass():
    base = [normal(seed, 100, 1, 40) for seed in range(10)]
    now = [normal(seed + 50, 112 if seed < 3 else 100, 1, 40) for seed in range(5)]
    found = compare(base, now)
    assert found.outcome is Outcome.INCONCLUSIVE
    floor = compare(base, now, statistic="floor")
    assert floor.outcome is Outcome.INCONCLUSIVE


def test_a_history_without_spread_and_a_new_value_half_as_large_again():
    launches = Metric(name="kernel_launches", unit="1", exact=True)
    judged, _ = judge(
        [[100.0]] * 10, [[150.0]], metric=launches, specs=["kernel_launches=+0"]
    )
    assert judged.verdict.outcome is Outcome.REGRESSED
    assert judged.verdict.reason is Reason.COUNT_OVER_BUDGET


def test_single_values_tell_nothing_unless_the_metric_is_exact():
    assert compare([[100.0]], [[100.01]]).outcome is Outcome.INCONCLUSIVE
    size = Metric(name="compiled_size", unit="B", exact=True)
    judged, _ = judge([[100.0]], [[101.0]], metric=size, specs=["compiled_size=+0"])
    assert judged.verdict.outcome is Outcome.REGRESSED


def test_one_new_value_is_no_change_point():
    history = [[value] for value in normal(3, 100, 1, 20)]
    found = compare(history, [[120.0]])
    assert found.outcome is Outcome.INCONCLUSIVE
    assert found.reason is Reason.TOO_FEW_RUNS
    # and neither is it one of three
    found = compare(history, [[120.0], [100.5], [99.5]])
    assert found.outcome is Outcome.INCONCLUSIVE
    # fresh runs confirm what is there, and nothing else
    again = [[value] for value in normal(4, 120, 1, 5)]
    found = compare(history, again, confirmation=again)
    assert found.outcome is Outcome.REGRESSED
    found = compare(history, again, confirmation=history[:5])
    assert found.reason is Reason.UNCONFIRMED


def test_a_shorter_run_does_not_bias_the_tail():
    rng = np.random.default_rng(11)
    base = (100 + rng.pareto(2.5, (10, 2000))).tolist()
    now = (100 + rng.pareto(2.5, (3, 200))).tolist()
    found = compare(base, now, statistic="p99", budget=0.1)
    assert found.outcome is not Outcome.REGRESSED
    longer = (100 + rng.pareto(2.5, (3, 400))).tolist()
    found = compare(base, longer, statistic="p99", budget=0.1)
    assert found.outcome is not Outcome.REGRESSED
    # a whole baseline against a part of a run would not even compare the same number
    equal = compare([run[:400] for run in base], longer, statistic="p99", budget=0.1)
    assert found.comparison == equal.comparison


@pytest.mark.parametrize("spec", ["0", "0.0", "0%", "latency=0%", "p99=0.0"])
def test_a_budget_of_nothing_is_refused(spec):
    with pytest.raises(UsageError, match="noise alone would exceed it"):
        resolve_policy("b", specs=[spec])


def test_groups_of_tight_samples_from_the_same_code_do_not_fail():
    rng = np.random.default_rng(12)
    for _ in range(20):
        offsets = rng.normal(0, 0.03, 12)
        groups = [
            (100 * np.exp(offset + rng.normal(0, 0.001, 50))).tolist()
            for offset in offsets
        ]
        found = compare(groups[:6], groups[6:])
        assert found.outcome is not Outcome.REGRESSED
        # the spread between processes is what counts, not the one within
        assert 0.01 < found.comparison.spread < 0.06


def test_updating_after_each_run_does_not_ratchet_to_the_luckiest():
    rng = np.random.default_rng(32)
    kept, levels = None, []
    for _ in range(20):
        # the same code on a machine whose sessions differ by half a percent
        level = 100 * np.exp(rng.normal(0, 0.005))
        values = (level * np.exp(rng.normal(0, 0.01, 10))).tolist()
        levels.append(float(np.log(values).mean()))
        runs = [measured([value]) for value in values]
        session = stored(runs).sessions[0]
        judged = judge_benchmark(
            policy=resolve_policy("b"),
            baseline=kept,
            candidate=runs,
            look=Look(index=2, comparisons=300),
        )
        assert judged.verdict.outcome in {Outcome.NO_BASELINE, Outcome.UNCHANGED}
        recording = Recording(
            plan=Plan(iterations=1, warmup=0),
            metrics={LATENCY.name: LATENCY},
            session=session,
        )
        kept = update_baseline(kept, recording, verdict=judged.verdict).baseline
    logs = [math.log(run.get("latency", "median").value) for run in kept.runs]
    assert len(kept.sessions) == 10
    assert np.mean(logs) == pytest.approx(np.mean(levels[-10:]))
    assert np.mean(logs) > min(levels) + 0.003


def test_what_no_budget_asks_for_is_not_judged():
    base, now = [measured([1.0, 1.1])] * 3, [measured([2.0, 2.2])] * 3
    silent = resolve_policy("b", metrics=("e2e",))
    judged = judge_benchmark(
        policy=silent, baseline=stored(base), candidate=now, look=Look()
    )
    assert not any(one.gated for one in judged.judgements if one.metric == LATENCY)
    assert judged.verdict.outcome is not Outcome.REGRESSED


def test_more_than_twofold_is_told_both_ways():
    base = [[100.0 + 0.1 * seed] * 5 for seed in range(5)]
    now = [[230.0 + 0.1 * seed] * 5 for seed in range(5)]
    found = compare(base, now)
    assert found.outcome is Outcome.REGRESSED
    assert format_change(found.comparison.ratio) == "+130 % (2.30×)"
    assert found.budget == 0.05
