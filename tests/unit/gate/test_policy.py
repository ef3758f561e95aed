import pytest

from pytest_perfgate.errors import UsageError
from pytest_perfgate.gate.budgets import Limit, is_tail, main_statistic, quantile_of
from pytest_perfgate.gate.policy import (
    BenchmarkPolicy,
    Budget,
    parse_budget,
    parse_limit,
    resolve_policy,
)
from pytest_perfgate.measured import METRICS, Metric

NODE = "benches/slow/bench_llm.py::bench_prefill[fp16-8]"


def gates(policy, metric):
    return {
        gate.statistic: gate.budget.text(metric.unit) for gate in policy.gates(metric)
    }


@pytest.mark.parametrize("name", ["latency", "device_time", "step_time"])
def test_latencies_are_gated_by_median_p99_and_floor(name):
    policy = resolve_policy(NODE)
    assert gates(policy, METRICS[name]) == {
        "median": "5 %",
        "p99": "10 %",
        "floor": "5 %",
    }
    assert [gate.witness for gate in policy.gates(METRICS[name])] == [
        False,
        False,
        True,
    ]


def test_a_stage_is_gated_as_a_latency_and_a_phase_is_only_shown(make):
    policy = resolve_policy(NODE)
    assert list(gates(policy, make.metric("stage:forward"))) == [
        "median",
        "p99",
        "floor",
    ]
    assert gates(policy, make.metric("phase:backward")) == {}


@pytest.mark.parametrize("name", ["data_share", "loader_wait", "loader_rate"])
def test_what_loading_costs_is_shown_and_gated_by_its_mean_where_named(name):
    assert gates(resolve_policy(NODE), METRICS[name]) == {}
    spec = f"{name}=+1%" if name == "data_share" else f"{name}=10%"
    policy = resolve_policy(NODE, specs=[spec])
    assert list(gates(policy, METRICS[name])) == ["mean"]


@pytest.mark.parametrize("name", ["ttft", "tpot", "e2e"])
def test_request_times_have_no_witness(name):
    assert list(gates(resolve_policy(NODE), METRICS[name])) == ["median", "p99"]


def test_a_recorded_time_is_gated_without_a_witness(make):
    assert list(gates(resolve_policy(NODE), make.metric("queue_wait"))) == [
        "median",
        "p99",
    ]


def test_memory_is_gated_by_its_maximum_unless_it_is_that_of_a_process():
    policy = resolve_policy(NODE)
    assert gates(policy, METRICS["peak_memory"]) == {"max": "5 %"}
    process = Metric(name="host_peak_memory", unit="B", definition="process-peak/1")
    assert gates(policy, process) == {}


@pytest.mark.parametrize(
    "name", ["throughput", "cpu_time", "first_call", "kernel_launches"]
)
def test_some_metrics_are_only_shown(make, name):
    assert gates(resolve_policy(NODE), make.metric(name)) == {}


@pytest.mark.parametrize(
    ("spec", "metric", "expected"),
    [
        ("throughput=5%", "throughput", {"mean": "5 %"}),
        ("first_call=20%", "first_call", {"mean": "20 %"}),
        ("kernel_launches=+0", "kernel_launches", {"max": "+0"}),
        (
            "cpu_time=10%",
            "cpu_time",
            {"median": "10 %", "p99": "20 %", "floor": "10 %"},
        ),
        ("phase:backward=3%", "phase:backward", {"median": "3 %", "p99": "6 %"}),
        ("peak_memory=+2MiB", "peak_memory", {"max": "+2.00 MiB"}),
        ("peak_memory.mean=2%", "peak_memory", {"max": "5 %", "mean": "2 %"}),
    ],
)
def test_a_budget_that_names_a_metric_gates_it(make, spec, metric, expected):
    assert gates(resolve_policy(NODE, specs=[spec]), make.metric(metric)) == expected


@pytest.mark.parametrize(
    ("specs", "expected"),
    [
        (["3%"], {"median": "3 %", "p99": "6 %", "floor": "3 %"}),
        (["0.03"], {"median": "3 %", "p99": "6 %", "floor": "3 %"}),
        (["median=3%"], {"median": "3 %", "p99": "6 %", "floor": "3 %"}),
        (["p99=20%"], {"median": "5 %", "p99": "20 %", "floor": "5 %"}),
        (["latency=3%"], {"median": "3 %", "p99": "6 %", "floor": "3 %"}),
        (["latency.p99=8%"], {"median": "5 %", "p99": "8 %", "floor": "5 %"}),
        (["p90=7%"], {"median": "5 %", "p99": "10 %", "p90": "7 %", "floor": "5 %"}),
        (["latency=+1ms"], {"median": "+1.00 ms", "p99": "10 %", "floor": "+1.00 ms"}),
        (["p99=20%", "3%"], {"median": "3 %", "p99": "6 %", "floor": "3 %"}),
        (["3%", "p99=20%"], {"median": "3 %", "p99": "20 %", "floor": "3 %"}),
        (
            ["benches/slow/*:median=9%"],
            {"median": "9 %", "p99": "18 %", "floor": "9 %"},
        ),
        (["benches/slow/*:9%"], {"median": "9 %", "p99": "18 %", "floor": "9 %"}),
        (
            ["benches/fast/*:median=9%"],
            {"median": "5 %", "p99": "10 %", "floor": "5 %"},
        ),
        (
            ["*prefill[fp16-?]:median=9%"],
            {"median": "9 %", "p99": "18 %", "floor": "9 %"},
        ),
        (["*[f]*:median=9%"], {"median": "5 %", "p99": "10 %", "floor": "5 %"}),
        ([NODE + ":median=9%"], {"median": "9 %", "p99": "18 %", "floor": "9 %"}),
        (["device_time=3%"], {"median": "5 %", "p99": "10 %", "floor": "5 %"}),
        (["peak_memory=3%"], {"median": "5 %", "p99": "10 %", "floor": "5 %"}),
        (["max=3%"], {"median": "5 %", "p99": "10 %", "max": "3 %", "floor": "5 %"}),
    ],
)
def test_what_a_budget_means_for_latency(specs, expected):
    assert gates(resolve_policy(NODE, specs=specs), METRICS["latency"]) == expected


def test_a_bare_percentage_leaves_memory_its_own_budget():
    policy = resolve_policy(NODE, specs=["20%"])
    assert gates(policy, METRICS["peak_memory"]) == {"max": "5 %"}
    maximum = resolve_policy(NODE, specs=["max=20%"])
    assert gates(maximum, METRICS["peak_memory"]) == {"max": "20 %"}


def test_the_marker_wins_over_the_command_line():
    policy = resolve_policy(NODE, specs=["20%"], marker_budget={"median": "3%"})
    assert gates(policy, METRICS["latency"])["median"] == "3 %"


@pytest.mark.parametrize("marker", ["3%", {"latency": "3%"}, {"median": 0.03}])
def test_a_marker_may_be_text_or_a_mapping(marker):
    policy = resolve_policy(NODE, marker_budget=marker)
    assert gates(policy, METRICS["latency"])["median"] == "3 %"


def test_a_stage_may_be_named_with_and_without_a_glob(make):
    stage = make.metric("stage:forward")
    assert (
        gates(resolve_policy(NODE, specs=["stage:forward.p99=9%"]), stage)["p99"]
        == "9 %"
    )
    glob = resolve_policy(NODE, specs=["benches/*:stage:forward=3%"])
    assert gates(glob, stage)["median"] == "3 %"
    assert gates(glob, METRICS["latency"])["median"] == "5 %"


def test_what_a_budget_names_is_explicit():
    def explicit(*specs):
        policy = resolve_policy(NODE, specs=specs)
        return {g.statistic for g in policy.gates(METRICS["latency"]) if g.explicit}

    assert explicit() == set()
    assert explicit("5%") == set()
    assert explicit("p99=5%") == {"p99"}
    assert explicit("latency=5%") == {"median"}
    assert explicit("device_time.p99=5%", "5%") == set()


def test_metrics_restricts_and_gate_false_silences():
    only = resolve_policy(NODE, metrics=("device_time",))
    assert gates(only, METRICS["latency"]) == {}
    assert "median" in gates(only, METRICS["device_time"])
    assert gates(resolve_policy(NODE, gate=False), METRICS["latency"]) == {}


def test_metrics_that_the_marker_names_are_missed():
    policy = resolve_policy(
        NODE,
        specs=["ttft=5%"],
        marker_budget={"e2e": "5%"},
        metrics=("latency", "tpot"),
    )
    assert policy.unknown_metrics(["latency"]) == ("e2e", "tpot")
    assert resolve_policy(NODE).unknown_metrics([]) == ()


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("5 percent", "neither a fraction nor a percentage; write 5% or 0.05"),
        ("0%", "noise alone would exceed it; write a percentage, or \\+0 for a count"),
        ("0.0", "noise alone would exceed it"),
        ("p99=0", "noise alone would exceed it"),
        ("median=+0", "\\+0 is for counts"),
        ("+0", "\\+0 is for counts"),
        ("latency=+0", "\\+0 is for counts"),
        ("stage:x=+0", "\\+0 is for counts"),
        ("latency=+3", "latency is measured in s; write \\+150ms"),
        ("cpu_time=+2MiB", "cpu_time is measured in s"),
        ("hits=+-1", "is negative"),
        ("data_share=5%", "is a share itself and may be 0.*write \\+0.05, which"),
        ("data_share.mean=0.1", "write \\+0.1, which is what may be added to it"),
        ("data_share=+0", "\\+0 is for counts"),
        ("data_share=+1ms", "data_share is measured in 1; write \\+5%"),
        ("loader_wait=+1", "loader_wait is measured in s"),
        ("median=-5%", "is negative"),
        ("median=5", "--perfgate-budget median='5' would mean 500 %"),
        ("latency.p9x=5%", "names the statistic 'p9x'"),
        (".median=5%", "names the statistic 'median'"),
        ("medain=5%", "names 'medain'; write median, or METRIC.median"),
        ("p999=5%", "names 'p999'; write p99"),
        ("p0=5%", "names 'p0'; write p99"),
        ("floor=5%", "the floor has no budget of its own"),
        ("latency.floor=5%", "the floor has no budget of its own"),
        ("=5%", "names nothing to budget"),
        ("benches/*:=5%", "names nothing to budget"),
        ("hits=+much", "is not a quantity"),
    ],
)
def test_a_budget_that_cannot_mean_anything_is_refused(spec, message):
    with pytest.raises(UsageError, match=message):
        resolve_policy(NODE, specs=[spec])


def test_a_wrong_budget_is_refused_even_where_it_matches_nothing():
    with pytest.raises(UsageError, match="5 percent"):
        resolve_policy(NODE, specs=["elsewhere/*:5 percent"])


def test_a_wrong_marker_is_named_as_a_marker():
    with pytest.raises(UsageError, match=r"@pytest.mark.perfgate budget='floor=5%'"):
        resolve_policy(NODE, marker_budget={"floor": "5%"})
    with pytest.raises(
        UsageError, match=r"@pytest.mark.perfgate limit='p99<=fast'|limit p99="
    ):
        resolve_policy(NODE, marker_limit={"p99": "<=fast"})


def test_the_source_of_a_budget_is_kept():
    glob, rule = parse_budget("a/*:p99=10%")
    assert (glob, rule.source, rule.marker) == ("a/*", "a/*:p99=10%", False)
    assert resolve_policy(NODE, marker_budget={"p99": "10%"}).rules[0].marker


@pytest.mark.parametrize("value", [-0.1, float("nan"), float("inf")])
def test_no_budget_is_negative_or_not_a_number(value):
    with pytest.raises(ValueError, match=r"Budget\.value"):
        Budget(value=value)


# limits -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("p99<=150ms", (None, None, "p99", "<=", 0.15, "s")),
        ("latency.p99<=0.15s", (None, "latency", "p99", "<=", 0.15, "s")),
        ("throughput>=500/s", (None, "throughput", None, ">=", 500.0, "1/s")),
        ("a/*:ttft.median <= 40 ms", ("a/*", "ttft", "median", "<=", 0.04, "s")),
        ("peak_memory<=2GiB", (None, "peak_memory", None, "<=", 2.0**31, "B")),
        ("stage:forward<=1ms", (None, "stage:forward", None, "<=", 0.001, "s")),
        ("hits>=3", (None, "hits", None, ">=", 3.0, "")),
        ("data_share<=10%", (None, "data_share", None, "<=", 0.1, "1")),
        ("data_share<=0.1", (None, "data_share", None, "<=", 0.1, "")),
        ("loader_rate>=9/s", (None, "loader_rate", None, ">=", 9.0, "1/s")),
        ("p90>=3/s", (None, None, "p90", ">=", 3.0, "1/s")),
        ("p90<=70 points", (None, None, "p90", "<=", 70.0, "points")),
    ],
)
def test_limit(spec, expected):
    glob, limit = parse_limit(spec)
    assert (glob, limit.metric, limit.statistic, limit.operator) == expected[:4]
    assert (limit.value, limit.unit) == pytest.approx(expected[4:])


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("p99=150ms", "is not a limit; write p99<=150ms"),
        ("p99<150ms", "is not a limit"),
        ("<=150ms", "names nothing before <="),
        ("p99<=150", "has no unit; write 150ms, or name the metric"),
        ("latency<=150", "latency is measured in s; write 150ms"),
        ("latency<=2GiB", "latency is measured in s"),
        ("throughput<=500/s", "of throughput higher is better; write >="),
        ("p99>=150ms", "of latency lower is better; write <="),
        ("latency.foo<=1ms", "names the statistic 'foo'"),
        ("p99<=soon", "is not a quantity"),
        ("p99<=150xs", "'xs' is no unit, is 's' meant"),
        ("b.py:p99<=150msec", "'msec' is no unit, is 'ms' meant"),
        ("max<=3gib", "'gib' is no unit, is 'GiB' meant"),
        ("data_share<=1ms", "data_share is measured in 1; write 5%"),
        ("data_share>=5%", "of data_share lower is better; write <="),
    ],
)
def test_a_limit_that_cannot_mean_anything_is_refused(spec, message):
    with pytest.raises(UsageError, match=message):
        resolve_policy(NODE, limits=[spec])


def test_the_later_limit_wins_and_the_marker_over_all():
    policy = resolve_policy(
        NODE,
        limits=["p99<=1s", "p99<=2s", "median<=1s", "x/*:p99<=9s"],
        marker_limit={"median": "<=3s"},
    )
    assert [(limit.statistic, limit.value) for limit in policy.limits] == [
        ("p99", 2.0),
        ("median", 3.0),
    ]


def test_a_marker_limit_may_be_text():
    assert resolve_policy(NODE, marker_limit="p99<=3s").limits[0].value == 3.0


def test_a_limit_without_a_metric_is_about_what_a_user_waits_for(make):
    policy = BenchmarkPolicy(nodeid=NODE)
    limit = parse_limit("p99<=1s")[1]

    def found(*names):
        metric = policy.limited(limit, {name: make.metric(name) for name in names})
        return metric and metric.name

    assert found("device_time", "latency") == "latency"
    assert found("ttft", "e2e") == "e2e"
    assert found("queue_wait") == "queue_wait"
    assert found("queue_wait", "ttft") is None
    named = parse_limit("ttft<=1s")[1]
    assert policy.limited(named, {"ttft": make.metric("ttft")}).name == "ttft"
    assert policy.limited(named, {}) is None


def test_extra_statistics_are_what_rules_and_limits_name():
    policy = resolve_policy(
        NODE, specs=["5%", "p90=5%", "ttft.p95=5%"], limits=["p99<=1s", "e2e<=3s"]
    )
    named = [extra for extra in policy.extra_statistics if not isinstance(extra, Limit)]
    assert named == [(None, "p90"), ("ttft", "p95"), (None, "p99")]
    assert policy.extra_statistics[3:] == policy.limits


# names ------------------------------------------------------------------------


def test_quantiles_by_name():
    assert quantile_of("p99") == pytest.approx(0.99)
    assert quantile_of("p99.9") == pytest.approx(0.999)
    assert quantile_of("p0") is None
    assert quantile_of("median") is None
    assert [is_tail(name) for name in ("p50", "p89", "p90", "p99", "max")] == [
        False,
        False,
        True,
        True,
        False,
    ]


def test_the_statistic_that_stands_for_a_metric(make):
    names = ("latency", "throughput", "peak_memory", "kernel_launches", "queue_wait")
    assert [main_statistic(make.metric(name)) for name in names] == [
        "median",
        "mean",
        "max",
        "max",
        "median",
    ]


def test_limits_say_what_they_are():
    assert parse_limit("p99<=150ms")[1].text() == "<= 150 ms"
    assert parse_limit("throughput>=500/s")[1].text("tokens/s") == ">= 500 tokens/s"
