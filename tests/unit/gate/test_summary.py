import numpy as np
import pytest

from pytest_perfgate.gate.budgets import SHARE
from pytest_perfgate.gate.policy import resolve_policy
from pytest_perfgate.gate.summary import summarise
from pytest_perfgate.measured import (
    METRICS,
    ROUND_LATENCY,
    Health,
    Measurement,
    Plan,
    Samples,
)


def measurement(*series, iterations=None, inner_loop=1, **others):
    samples = tuple(
        Samples(metric=metric, values=tuple(values)) for metric, values in series
    )
    return Measurement(
        benchmark="b",
        nodeid="b",
        run=0,
        plan=Plan(
            iterations=iterations or len(samples[0].values),
            warmup=0,
            inner_loop=inner_loop,
        ),
        samples=samples,
        **others,
    )


def times(count, seed=0):
    return [float(x) for x in np.random.default_rng(seed).lognormal(-5, 0.05, count)]


LATENCY = METRICS["latency"]


@pytest.mark.parametrize(
    ("count", "names"),
    [
        (1, {"median"}),
        (39, {"median", "floor"}),
        (40, {"median", "floor", "p95"}),
        (199, {"median", "floor", "p95"}),
        (200, {"median", "floor", "p99"}),
    ],
)
def test_the_tail_that_the_samples_carry(count, names):
    summary = summarise(measurement((LATENCY, times(count))))
    assert set(summary.statistics["latency"]) == names


def test_an_inner_loop_has_no_tail():
    summary = summarise(measurement((LATENCY, times(500)), inner_loop=10))
    assert set(summary.statistics["latency"]) == {"median", "floor"}


def test_rounds_have_a_tail_whatever_they_are_made_of():
    summary = summarise(
        measurement(
            (ROUND_LATENCY, times(500)),
            (METRICS["cpu_time"], times(500)),
            inner_loop=10,
        )
    )
    assert set(summary.statistics["latency"]) == {"median", "floor", "p99"}
    assert "p99" not in summary.statistics["cpu_time"]


def test_a_limit_on_a_tail_of_rounds_is_kept():
    policy = resolve_policy("b", limits=["p99<=7ms"])
    summary = summarise(
        measurement((ROUND_LATENCY, times(300)), inner_loop=5),
        extra_statistics=policy.extra_statistics,
    )
    assert summary.get(policy.limits[0].share_of("latency"), SHARE) is not None


def test_the_numbers_are_numpys():
    values = times(500)
    found = summarise(measurement((LATENCY, values))).statistics["latency"]
    assert found["median"].value == pytest.approx(np.median(values))
    assert found["floor"].value == min(values)
    assert found["p99"].value == pytest.approx(np.quantile(values, 0.99))
    assert all(0 < one.se < one.value for one in found.values())


def test_each_metric_has_its_own_main_statistic(make):
    summary = summarise(
        measurement(
            (METRICS["throughput"], [500.0]),
            (METRICS["peak_memory"], [10.0, 30.0, 20.0]),
            (make.metric("kernel_launches"), [7.0]),
            iterations=100,
        )
    )
    assert {
        name: {key: one.value for key, one in row.items()}
        for name, row in summary.statistics.items()
    } == {
        "throughput": {"mean": 500.0},
        "peak_memory": {"max": 30.0},
        "kernel_launches": {"max": 7.0},
    }


def test_extra_statistics_are_added_where_they_belong():
    policy = resolve_policy(
        "b", specs=["p90=5%", "ttft.mean=5%", "throughput.median=5%"]
    )
    summary = summarise(
        measurement(
            (LATENCY, times(100)),
            (METRICS["ttft"], times(10)),
            (METRICS["throughput"], [3.0]),
        ),
        extra_statistics=policy.extra_statistics,
    )
    assert set(summary.statistics["latency"]) == {"median", "floor", "p95", "p90"}
    assert set(summary.statistics["ttft"]) == {"median", "floor", "mean"}
    assert set(summary.statistics["throughput"]) == {"mean", "median"}


def test_an_extra_tail_with_too_few_samples_is_left_out():
    policy = resolve_policy("b", specs=["p99=5%"])
    summary = summarise(
        measurement((LATENCY, times(100))), extra_statistics=policy.extra_statistics
    )
    assert "p99" not in summary.statistics["latency"]


def test_a_limit_on_a_tail_keeps_what_it_is_read_from():
    policy = resolve_policy("b", limits=["p99<=7ms", "throughput>=1/s", "mean<=1s"])
    values = times(300)
    summary = summarise(
        measurement((LATENCY, values), (METRICS["throughput"], [3.0])),
        extra_statistics=policy.extra_statistics,
    )
    limit = policy.limits[0]
    share = summary.get(limit.share_of("latency"), SHARE)
    assert share.value == pytest.approx(np.mean(np.array(values) > 7e-3))
    eighth = np.quantile(values, 0.99, method="median_unbiased")
    assert summary.get("latency", "p99/8").value == pytest.approx(eighth)
    assert limit.share_of("throughput") not in summary.statistics


def test_a_limit_from_below_counts_what_is_under_it(make):
    policy = resolve_policy("b", limits=["score.p90>=2 points"])
    summary = summarise(
        measurement((make.metric("score"), [1.0, 2.0, 3.0, 4.0])),
        extra_statistics=policy.extra_statistics,
    )
    assert summary.get(policy.limits[0].share_of("score"), SHARE).value == 0.25


def test_a_limit_needs_single_calls():
    policy = resolve_policy("b", limits=["p99<=7ms"])
    summary = summarise(
        measurement((LATENCY, times(300)), inner_loop=5),
        extra_statistics=policy.extra_statistics,
    )
    assert set(summary.statistics) == {"latency"}


def test_a_trend_is_kept_for_times_only():
    ramp = [1.0 + 0.001 * i for i in range(300)]
    summary = summarise(measurement((LATENCY, ramp), (METRICS["peak_memory"], ramp)))
    assert set(summary.drift) == {"latency"}
    assert summarise(measurement((LATENCY, times(300)))).drift == {}


def test_health_and_counts_travel_along():
    summary = summarise(
        measurement(
            (METRICS["ttft"], times(8)),
            (LATENCY, times(100)),
            iterations=100,
            health=Health(disturbed=True, steady=False),
            clock_tick_s=1e-9,
            alone=True,
        )
    )
    assert summary.samples == {"ttft": 8}
    assert (summary.disturbed, summary.steady, summary.alone) == (True, False, True)
    assert (summary.iterations, summary.clock_tick_s) == (100, 1e-9)
