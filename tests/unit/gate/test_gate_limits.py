import numpy as np
import pytest

from pytest_perfgate.gate.judge import Look
from pytest_perfgate.gate.policy import resolve_policy
from pytest_perfgate.gate.summary import summarise
from pytest_perfgate.measured import (
    METRICS,
    ROUND_LATENCY,
    Measurement,
    Metric,
    Plan,
    Samples,
)
from pytest_perfgate.model import Outcome, Reason

FIRST = Look(index=0, last=False)


def judge(make, candidate, limit, *, look=None, metrics=None, baseline=None, **kwargs):
    names = metrics or list(candidate[0].statistics)
    judged = make.judge(
        baseline,
        candidate,
        limits=[limit],
        look=look,
        metrics={name: make.metric(name) for name in names},
        **kwargs,
    )
    return judged, judged.judgements[-1]


# means ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("center", "outcome", "reason"),
    [
        (0.9, Outcome.UNCHANGED, Reason.WITHIN_LIMIT),
        (1.1, Outcome.REGRESSED, Reason.OVER_LIMIT),
        (1.0, Outcome.INCONCLUSIVE, Reason.AT_BUDGET),
    ],
)
def test_a_median_against_a_limit(make, center, outcome, reason):
    runs = make.noisy("latency__median", 6, center=center)
    found = judge(make, runs, "median<=1s")[1]
    assert (found.outcome, found.reason) == (outcome, reason)
    assert found.bound == "<= 1.00 s"
    assert "limit <= 1.00 s" in found.verdict.detail
    assert (found.gated, found.budget) == (True, None)


@pytest.mark.parametrize(
    ("center", "outcome"),
    [
        (550.0, Outcome.UNCHANGED),
        (450.0, Outcome.REGRESSED),
        (500.0, Outcome.INCONCLUSIVE),
    ],
)
def test_a_throughput_against_a_limit_from_below(make, center, outcome):
    runs = make.noisy("throughput__mean", 6, center=center)
    assert judge(make, runs, "throughput>=500/s")[1].outcome is outcome


def test_a_limit_alone_makes_no_green_where_nothing_is_stored(make):
    runs = make.noisy("latency__median", 6, center=0.9)
    judged = judge(make, runs, "median<=1s")[0]
    assert judged.verdict.outcome is Outcome.NO_BASELINE
    over = judge(make, make.noisy("latency__median", 6, center=2.0), "median<=1s")[0]
    assert over.verdict.outcome is Outcome.REGRESSED
    assert over.decided
    assert not over.flagged


def test_beside_a_baseline_a_limit_takes_part_in_the_verdict(make):
    baseline = make.baseline(make.noisy("latency__median", 10))
    runs = make.noisy("latency__median", 12, seed=1)
    judged = judge(make, runs, "median<=900ms", baseline=baseline)[0]
    assert judged.verdict.reason is Reason.OVER_LIMIT
    fine = judge(make, runs, "median<=2s", baseline=baseline)[0]
    assert fine.verdict.outcome is Outcome.UNCHANGED


def test_an_open_limit_wants_more_runs(make):
    runs = make.noisy("latency__median", 3, center=0.98, sd=0.03)
    judged = judge(make, runs, "median<=1s", look=FIRST)[0]
    assert not judged.decided


def test_three_runs_or_nothing(make):
    found = judge(make, make.noisy("latency__median", 2), "median<=1ms")[1]
    assert found.reason is Reason.TOO_FEW_RUNS


@pytest.mark.parametrize(
    ("values", "limit", "outcome"),
    [
        ([3.0], "kernel_launches<=3", Outcome.UNCHANGED),
        ([4.0], "kernel_launches<=3", Outcome.REGRESSED),
        ([3.0, 4.0], "kernel_launches<=3", Outcome.INCONCLUSIVE),
    ],
)
def test_a_count_against_a_limit_is_exact(make, values, limit, outcome):
    found = judge(make, make.runs("kernel_launches__max", values), limit)[1]
    assert found.outcome is outcome


def test_a_count_against_a_limit_from_below_is_exact(make):
    runs = make.runs("hits__max", [3.0])
    assert judge(make, runs, "hits>=3")[1].outcome is Outcome.UNCHANGED
    assert judge(make, runs, "hits>=4")[1].outcome is Outcome.REGRESSED


@pytest.mark.parametrize(
    ("values", "outcome"),
    [
        ([0.0, 0.1, 0.0, -0.1], Outcome.UNCHANGED),
        ([9.0, 9.1, 8.9, 9.0], Outcome.REGRESSED),
        ([0.0, 0.0, 0.0, 0.0], Outcome.UNCHANGED),
    ],
)
def test_what_can_be_zero_is_held_against_its_limit_without_logarithms(
    make, values, outcome
):
    runs = make.runs("backlog__median", values)
    assert judge(make, runs, "backlog<=5 jobs")[1].outcome is outcome
    assert judge(make, runs[:3], "backlog<=0 jobs")[1].outcome is not Outcome.UNCHANGED


def test_a_quantile_from_below_is_a_mean_of_runs(make):
    runs = make.noisy("score__p95", 6, center=80.0)
    assert judge(make, runs, "score.p95>=50 points")[1].outcome is Outcome.UNCHANGED


def test_a_statistic_that_some_runs_lack_is_an_error(make):
    runs = (*make.noisy("latency__median", 3), make.run(latency__floor=1.0))
    found = judge(make, runs, "median<=1s")[1]
    assert found.reason is Reason.METRIC_ABSENT
    assert found.verdict.detail == "latency median in 1 of 4 runs"


def test_a_limit_on_nothing_there_is_an_error(make):
    runs = make.noisy("latency__median", 3)
    found = judge(make, runs, "ttft.median<=1s")[1]
    assert (found.outcome, found.reason) == (Outcome.ERROR, Reason.METRIC_ABSENT)
    assert "ttft.median<=1s names no metric" in found.verdict.detail
    # and no missing baseline hides it
    judged = judge(make, runs, "ttft.median<=1s")[0]
    assert judged.verdict.outcome is Outcome.ERROR
    two = tuple(make.run(queue_wait__median=1.0, backlog__median=1.0) for _ in range(3))
    assert judge(make, two, "median<=1s")[1].reason is Reason.METRIC_ABSENT


def test_a_limit_in_another_unit_is_an_error(make):
    runs = make.noisy("queue_wait__median", 3)
    found = judge(make, runs, "queue_wait<=3 jobs")[1]
    assert (found.outcome, found.reason) == (Outcome.ERROR, Reason.UNIT_DIFFERS)
    assert found.verdict.detail == (
        "the limit queue_wait<=3 jobs is in jobs, and queue_wait is measured in s"
    )
    unitless = Metric(name="queue_wait", unit="")
    judged = make.judge(
        None, runs, limits=["queue_wait<=3ms"], metrics={"queue_wait": unitless}
    )
    detail = judged.judgements[-1].verdict.detail
    assert detail.endswith("is in s, and queue_wait is measured in no unit")


# tails ------------------------------------------------------------------------


def measured(
    count,
    samples,
    *,
    slow_share=0.0,
    seed=0,
    limit="p99<=150ms",
    inner_loop=1,
    metric=METRICS["latency"],
):
    policy = resolve_policy("b", limits=[limit])
    rng = np.random.default_rng(seed)
    runs = []
    for index in range(count):
        values = rng.lognormal(np.log(0.1), 0.05, samples)
        values[rng.random(samples) < slow_share] = 0.5
        runs.append(
            summarise(
                Measurement(
                    benchmark="b",
                    nodeid="b",
                    run=index,
                    plan=Plan(iterations=samples, warmup=0, inner_loop=inner_loop),
                    samples=(Samples(metric=metric, values=tuple(map(float, values))),),
                ),
                extra_statistics=policy.extra_statistics,
            )
        )
    return tuple(runs)


def test_enough_calls_without_a_miss_are_within(make):
    found = judge(make, measured(12, 200), "p99<=150ms", metrics=["latency"])[1]
    assert found.reason is Reason.WITHIN_LIMIT
    assert "0.00% of calls over it" in found.verdict.detail


def test_many_misses_are_over(make):
    runs = measured(6, 400, slow_share=0.05)
    judged, found = judge(make, runs, "p99<=150ms", metrics=["latency"])
    assert found.reason is Reason.OVER_LIMIT
    assert judged.verdict.outcome is Outcome.REGRESSED


def test_a_tail_at_its_limit_cannot_be_told(make):
    runs = measured(6, 400, slow_share=0.013, seed=3)
    found = judge(make, runs, "p99<=150ms", metrics=["latency"])[1]
    assert (found.outcome, found.reason) == (Outcome.INCONCLUSIVE, Reason.AT_BUDGET)


def test_few_calls_say_how_many_are_needed(make):
    found = judge(make, measured(3, 100), "p99<=150ms", metrics=["latency"])[1]
    assert found.reason is Reason.TOO_FEW_TAIL_SAMPLES
    assert (
        "have 300 samples with 0 over, needs 418 independent ones"
        in found.verdict.detail
    )


def test_two_runs_tell_nothing_of_a_tail(make):
    found = judge(make, measured(2, 1000), "p99<=150ms", metrics=["latency"])[1]
    assert found.reason is Reason.TOO_FEW_RUNS


def test_an_inner_loop_has_no_single_calls(make):
    runs = measured(5, 400, inner_loop=4)
    found = judge(make, runs, "p99<=150ms", metrics=["latency"])[1]
    assert found.reason is Reason.TOO_FEW_TAIL_SAMPLES
    assert "inner loops" in found.verdict.detail


def test_rounds_have_a_tail_and_it_is_called_theirs(make):
    runs = measured(12, 400, inner_loop=4, metric=ROUND_LATENCY)
    judged = make.judge(
        None, runs, limits=["p99<=150ms"], metrics={"latency": ROUND_LATENCY}
    )
    found = judged.judgements[-1]
    assert found.reason is Reason.WITHIN_LIMIT
    assert "of rounds over it" in found.verdict.detail
    assert found.remarks == (
        "a quantile of rounds, each the mean of its calls, not of calls",
    )


def test_a_run_without_the_metric_is_an_error(make):
    runs = (*measured(3, 400), make.run(device_time__median=1.0))
    found = judge(make, runs, "p99<=150ms", metrics=["latency"])[1]
    assert found.reason is Reason.METRIC_ABSENT


def test_a_tail_that_reaches_zero_is_held_without_logarithms(make):
    def run(value):
        return make.run(
            iterations=1000,
            **{
                "backlog__p99/8": value,
                "backlog__median": 0.0,
                "backlog<=5.0__share-beyond": 0.0,
            },
        )

    runs = tuple(run(value) for value in (0.0, 0.1, 0.0, 0.1, 0.0, 0.1, 0.0, 0.1))
    found = judge(make, runs, "backlog.p99<=5 jobs", metrics=["backlog"])[1]
    assert found.outcome is Outcome.UNCHANGED


def test_a_rate_without_what_it_counts_suits_any_rate(make):
    tokens = Metric(name="throughput", unit="tokens/s", better="higher")
    judged = make.judge(
        None,
        make.noisy("throughput__mean", 6, center=900.0),
        limits=["throughput>=500/s"],
        metrics={"throughput": tokens},
    )
    assert judged.judgements[-1].outcome is Outcome.UNCHANGED
