import dataclasses
import json
import math

import pytest

from pytest_perfgate.errors import BaselineCorrupt
from pytest_perfgate.measured import METRICS, Metric, Samples
from pytest_perfgate.model import Outcome, Reason, RunStatistic
from pytest_perfgate.store import (
    decode_environment,
    decode_measurement,
    decode_plan,
    encode_environment,
    encode_measurement,
    encode_plan,
    environment_digest,
)
from pytest_perfgate.store.codec_baseline import BASELINE
from pytest_perfgate.store.codec_report import REPORT


def through_json(value):
    return json.loads(json.dumps(value))


def test_a_measurement_travels_without_loss(make):
    for measurement in (
        make.a_measurement(),
        make.a_measurement(output={}, profile=None),
        make.a_measurement(enqueue_share=0.875),
    ):
        travelled = through_json(encode_measurement(measurement))
        assert decode_measurement(travelled) == measurement


def test_samples_may_be_zero_or_negative_so_that_the_gate_can_say_so(make, spoil):
    text = json.dumps(encode_measurement(make.a_measurement()))
    text = spoil(text, ["samples", 0, "values", 1], -1.0)
    assert decode_measurement(json.loads(text)).samples[0].values[1] == -1.0


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (["samples", 0, "values"], [], ".samples[0].values: expected at least one"),
        (["samples", 0, "values", 1], None, ".samples[0].values[1]: expected a number"),
        (["samples", 0, "metric", "name"], "", ".samples[0].metric.name: expected a n"),
        (
            ["samples", 0, "metric", "unit"],
            "ms",
            ".samples[0].metric.unit: expected 's'",
        ),
        (
            ["plan", "iterations"],
            0,
            ".plan.iterations: expected an integer of at least",
        ),
        (["health", "blocks"], -1, ".health.blocks: expected an integer of at least 0"),
        (
            ["health", "cpu_share"],
            None,
            ".health.cpu_share: expected a number, got None",
        ),
        (["clock_tick_s"], -1, ".clock_tick_s: expected a number of at least 0"),
        (["run"], "3", ".run: expected an integer, got '3'"),
        (["alone"], ..., ": the key 'alone' is missing"),
        (["mood"], 1, ": unknown key 'mood'"),
    ],
)
def test_a_wrong_measurement_is_refused_by_path(make, spoil, path, value, message):
    text = spoil(json.dumps(encode_measurement(make.a_measurement())), path, value)
    with pytest.raises(BaselineCorrupt) as caught:
        decode_measurement(json.loads(text))
    assert str(caught.value).startswith("measurement" + message)


def test_plan_and_environment_travel_without_loss(make):
    bare = make.a_plan(batch_size=None, threads=3)
    for plan in (make.a_plan(), bare, make.a_plan(cache="flush")):
        assert decode_plan(through_json(encode_plan(plan))) == plan
    environment = make.an_environment(fake=True)
    travelled = through_json(encode_environment(environment))
    assert decode_environment(travelled) == environment


def test_a_plan_that_says_nothing_of_a_cache_was_measured_hot(make):
    assert "cache" not in encode_plan(make.a_plan())
    assert decode_plan({**encode_plan(make.a_plan()), "cache": "hot"}).cache == "hot"


def test_whoever_decodes_says_where_the_value_came_from(make):
    plan = {**encode_plan(make.a_plan()), "threads": None}
    with pytest.raises(BaselineCorrupt, match=r"^plans\.x\.threads: expected an integ"):
        decode_plan(plan, "plans.x")


def test_the_digest_tells_environments_apart_and_outlives_storage(make):
    environment = make.an_environment(
        hardware={"clock_mhz": 1980.123456789, "memory": 80.0}
    )
    file = dataclasses.replace(make.a_file(), environment=environment)
    stored = BASELINE.read(BASELINE.text(file), source="x").environment
    digest = environment_digest(environment)
    assert len(digest) == 12
    assert environment_digest(stored) == digest
    others = (
        make.an_environment(),
        dataclasses.replace(environment, key="other"),
        dataclasses.replace(environment, fake=True),
        dataclasses.replace(environment, software={}),
    )
    assert len({digest, *map(environment_digest, others)}) == 5


@pytest.mark.parametrize("name", ["a_file", "a_full_file"])
def test_a_baseline_file_comes_back_and_is_written_the_same_again(make, name):
    file = getattr(make, name)()
    text = BASELINE.text(file)
    again = BASELINE.read(text, source="x")
    assert BASELINE.text(again) == text
    assert again.environment == file.environment
    for benchmark, baseline in file.benchmarks.items():
        assert again.benchmarks[benchmark].metrics == baseline.metrics
        assert again.benchmarks[benchmark].counts == baseline.counts
        assert again.benchmarks[benchmark].plan == baseline.plan


def test_counts_and_bytes_are_stored_whole_and_times_in_six_digits(make):
    text = BASELINE.text(make.a_file())
    assert '"max": [[1234567, 0], [1234567, 0], [1234567, 0]]' in text
    assert '"max": [[85899345920, 0], [85899345920, 0], [85899345920, 0]]' in text
    assert "[0.00185185, 1.2e-06]" in text  # 0.00185185|5


def test_the_anchor_is_written_once_it_has_left_the_sessions(make):
    assert '"anchor"' not in BASELINE.text(make.a_file())
    full = BASELINE.read(BASELINE.text(make.a_full_file()), source="x")
    (moved,) = (b for b in full.benchmarks.values() if b.environment is not None)
    assert moved.anchor.commit is None
    assert moved.anchor != moved.sessions[0]


def test_runs_may_lack_a_statistic(make):
    bare = make.a_run(
        statistics={"latency": {"p95": make.a_run().get("latency", "p99")}}
    )
    session = make.a_session(runs=(make.a_run(), bare))
    baseline = make.a_baseline(sessions=(session,), anchor=session)
    text = BASELINE.text(make.a_file(x=baseline))
    assert '"p95": [[], [0.0015, 3e-05]]' in text
    assert '"p99": [[0.0015, 3e-05], []]' in text
    assert BASELINE.read(text, source="x").benchmarks["x"].sessions == (session,)


def test_runs_may_tell_or_not_how_long_the_host_handed_work_over(make):
    session = make.a_session(runs=(make.a_run(enqueue_share=0.875), make.a_run()))
    baseline = make.a_baseline(sessions=(session,), anchor=session)
    text = BASELINE.text(make.a_file(x=baseline))
    assert '"enqueue_share": [[0.875], []]' in text
    assert BASELINE.read(text, source="x").benchmarks["x"].sessions == (session,)
    assert "enqueue_share" not in BASELINE.text(make.a_file())


@pytest.mark.parametrize("share", [-0.1, math.nan, math.inf])
def test_a_share_that_is_none_cannot_be(make, share):
    with pytest.raises(ValueError, match=f"enqueue_share={share!r} is not allowed"):
        make.a_run(enqueue_share=share)
    with pytest.raises(ValueError, match=f"enqueue_share={share!r} is not allowed"):
        make.a_measurement(enqueue_share=share)


B = "benches/bench_llm.py::bench_prefill"
RUNS = ["benchmarks", B, "sessions", 0, "runs"]
LATENCY = [*RUNS, "statistics", "latency"]


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (
            ["benchmarks", B, "metrics", "latency", "unit"],
            None,
            "unit: expected a string",
        ),
        (
            ["benchmarks", B, "metrics", "latency", "unit"],
            "ms",
            "unit: expected 's', the",
        ),
        (
            ["benchmarks", B, "metrics", "latency", "better"],
            "higher",
            "better: expected 'lower', the direction of latency",
        ),
        (["benchmarks", B, "metrics", "latency"], ..., "this metric is not among"),
        (["benchmarks", B, "sessions"], [], "sessions: expected at least one session"),
        (["benchmarks", B, "sketch", "x"], [1], "sketch.x: this metric is not among"),
        (
            ["benchmarks", B, "sketch", "latency", 0],
            0,
            "sketch.latency[0]: expected a nu",
        ),
        (
            ["benchmarks", B, "counts", "kernel_launches"],
            1.5,
            "launches: expected an int",
        ),
        (["benchmarks", B, "plan", "seed"], ..., "plan: the key 'seed' is missing"),
        (
            ["benchmarks", B, "plan", "cache"],
            "cold",
            "plan.cache: expected one of hot, flush, got 'cold'",
        ),
        (["benchmarks", B, "anchor"], None, "anchor: expected an object, got None"),
        (["benchmarks", B, "environment"], None, "environment: expected an object"),
        (
            ["benchmarks", B, "sessions", 0, "commit"],
            1,
            "commit: expected a string, got 1",
        ),
        (
            [*LATENCY, "median", 0, 0],
            0,
            "median[0][0]: expected a number greater than 0",
        ),
        ([*LATENCY, "median", 2, 0], -1e-3, "median[2][0]: expected a number greater"),
        (
            [*LATENCY, "median", 0, 1],
            -1,
            "median[0][1]: expected a number of at least 0",
        ),
        ([*LATENCY, "median", 0, 0], "1", "median[0][0]: expected a number, got '1'"),
        (
            [*LATENCY, "median", 0],
            [1.0],
            "median[0]: expected [value, standard error], o",
        ),
        ([*LATENCY, "median", 0], ..., "median: expected 3 entries, one a run, got 2"),
        (
            [*RUNS, "statistics", "peak_memory", "max", 0, 0],
            -1,
            "max[0][0]: expected a num",
        ),
        ([*RUNS, "drift", "latency", 2], [1, 2], "latency[2]: expected [value], or []"),
        (
            [*RUNS, "samples", "peak_memory", 0],
            [0],
            "peak_memory[0][0]: expected an integ",
        ),
        (
            [*RUNS, "enqueue_share"],
            [[0.9]],
            "enqueue_share: expected 3 entries, one a run, got 1",
        ),
        (
            [*RUNS, "enqueue_share"],
            [[0.9], [], [-1]],
            "enqueue_share[2][0]: expected a number of at least 0",
        ),
        (
            [*RUNS, "enqueue_share"],
            [[0.9], [], [0.1, 0.2]],
            "enqueue_share[2]: expected [value], or []",
        ),
        ([*RUNS, "steady"], [True], "steady: expected 3 entries, one a run, got 1"),
        (
            [*RUNS, "iterations", 1],
            0,
            "iterations[1]: expected an integer of at least 1",
        ),
        (
            [*RUNS, "clock_tick_s", 1],
            -1,
            "clock_tick_s[1]: expected a number of at lea",
        ),
        (
            ["environment", "hardware", "gpu"],
            {},
            "hardware.gpu: expected a string, a nu",
        ),
        (["environment", "mood"], 1, "environment: unknown key 'mood'"),
        (["producer", "name"], None, "producer.name: expected a string, got None"),
        (["producer", "version"], 1, "producer.version: expected a string, got 1"),
        (["producer"], ..., "top level: the key 'producer' is missing"),
        (["schema_version"], ..., "top level: the key 'schema_version' is missing"),
        (["schema_version"], "1", "schema_version: expected an integer, got '1'"),
        (["schema_version"], 0, "schema_version: expected an integer of at least 1"),
        (["schema_version"], True, "schema_version: expected an integer, got True"),
        (["results"], [], "top level: unknown key 'results'"),
    ],
)
def test_a_wrong_baseline_file_is_refused(make, spoil, path, value, message):
    text = spoil(BASELINE.text(make.a_file()), path, value)
    with pytest.raises(BaselineCorrupt) as caught:
        BASELINE.read(text, source="baselines/h/b.json")
    words = str(caught.value)
    assert words.startswith("baselines/h/b.json is no baseline that can be used: ")
    assert message in words
    assert words.endswith("--perfgate-update")


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([1], r"operators\[\"aten::addmm\"\]: expected \[count, seconds\], got \[1\]"),
        ([0.5, 1], r"\[0\]: expected an integer, got 0.5"),
        ([1, -1], r"\[1\]: expected a number of at least 0, got -1"),
    ],
)
def test_a_wrong_profile_is_refused(make, spoil, value, message):
    path = ["benchmarks", f"{B}[αβ|1]", "profile", "operators", "aten::addmm"]
    text = spoil(BASELINE.text(make.a_full_file()), path, value)
    with pytest.raises(BaselineCorrupt, match=message):
        BASELINE.read(text, source="b.json")


def test_a_session_without_runs_is_refused(make, spoil):
    empty = {
        "iterations": [],
        "clock_tick_s": [],
        "alone": [],
        "disturbed": [],
        "steady": [],
        "statistics": {},
    }
    text = spoil(BASELINE.text(make.a_file()), RUNS, empty)
    with pytest.raises(
        BaselineCorrupt, match=r"sessions\[0\]\.runs: expected at least"
    ):
        BASELINE.read(text, source="x")


def test_an_older_session_may_know_a_metric_that_is_not_measured_any_more(make):
    waits = {"queue_wait": make.a_run().statistics["latency"]}
    older = make.a_session(runs=(make.a_run(statistics=waits, samples={}),))
    newer = make.a_session()
    baseline = make.a_baseline(sessions=(older, newer), anchor=older)
    text = BASELINE.text(make.a_file(x=baseline))
    assert BASELINE.read(text, source="x").benchmarks["x"].sessions[0] == older


def test_a_count_may_be_zero(make, spoil):
    path = [*RUNS, "statistics", "kernel_launches", "max", 0, 0]
    text = spoil(BASELINE.text(make.a_file()), path, 0)
    run = BASELINE.read(text, source="x").benchmarks[B].runs[0]
    assert run.get("kernel_launches", "max").value == 0


def test_a_metric_under_another_name_is_not_written(make):
    baseline = make.a_baseline(metrics={"latency": METRICS["e2e"]})
    with pytest.raises(ValueError, match="'e2e' is filed under 'latency'"):
        BASELINE.text(make.a_file(x=baseline))


def test_a_report_comes_back_equal(make):
    for report in (
        make.a_report(),
        make.a_report(commit=None, environment=None, interrupted=True, results=()),
        make.a_report(problem="the disk is full", notes=("two machines", "")),
        make.a_report(
            environment=None,
            results=(
                make.a_result(absorbed=True, environment=make.an_environment()),
                make.a_result(metrics={"own": Metric(name="own", unit="°C")}),
            ),
        ),
    ):
        assert REPORT.read(REPORT.text(report), source="x") == report


def test_a_bound_that_is_infinite_is_absent_from_a_report(make):
    (judgement, _) = make.a_result().judgements
    open_ended = make.a_comparison(low=-math.inf, high=math.inf, detectable=None)
    judgement = dataclasses.replace(judgement, comparison=open_ended)
    report = make.a_report(results=(make.a_result(judgements=(judgement,)),))
    text = REPORT.text(report)
    assert '"low"' not in text
    assert '"high"' not in text
    assert REPORT.read(text, source="x") == report


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (
            ["results", 0, "verdict", "outcome"],
            "fine",
            "outcome: expected 'unchanged' or",
        ),
        (
            ["results", 0, "verdict", "reason"],
            "mood",
            "reason: expected a reason that is",
        ),
        (["results", 0, "text"], None, "results[0].text: expected a string, got None"),
        (["results", 0, "judgements", 0, "budget"], "5%", "budget: expected a number"),
        (
            ["results", 0, "judgements", 0, "comparison"],
            None,
            "comparison: expected an o",
        ),
        (
            ["results", 0, "judgements", 0, "comparison", "baseline_runs"],
            -1,
            "baseline_runs: expected an integer of at least 0",
        ),
        (
            ["results", 0, "runs", "statistics", "latency", "median", 0, 0],
            0,
            "median[0][0]: expected a number greater than 0, got 0",
        ),
        (["results", 0, "plan"], None, "plan: expected an object, got None"),
        (["results", 0, "absorbed"], 1, "absorbed: expected true or false, got 1"),
        (["results", 0, "environment"], "gpu", "environment: expected an object"),
        (["results", 0, "metrics"], {"": {}}, "metrics: a metric has no name"),
        (["problem"], 3, "problem: expected a string, got 3"),
        (["notes"], "one", "notes: expected an array, got 'one'"),
        (["exit_code"], 1.0, "exit_code: expected an integer, got 1.0"),
        (["policy", "budget"], 5, "policy.budget: expected a string, got 5"),
        (["cost", "seconds"], "1", "cost.seconds: expected a number, got '1'"),
        (["environment"], None, "environment: expected an object, got None"),
        (["interrupted"], ..., "top level: the key 'interrupted' is missing"),
        (["benchmarks"], {}, "top level: unknown key 'benchmarks'"),
    ],
)
def test_a_wrong_report_is_refused(make, spoil, path, value, message):
    text = spoil(REPORT.text(make.a_report()), path, value)
    with pytest.raises(BaselineCorrupt) as caught:
        REPORT.read(text, source="last/report.json")
    words = str(caught.value)
    assert words.startswith("last/report.json is no report that can be used: ")
    assert message in words


def test_a_report_shows_the_zero_that_made_the_error(make, spoil):
    error = make.a_verdict(Outcome.ERROR, Reason.NOT_A_NUMBER, "0 s")
    report = make.a_report(results=(make.a_result(verdict=error),))
    path = ["results", 0, "runs", "statistics", "latency", "median", 0, 0]
    text = spoil(REPORT.text(report), path, 0)
    run = REPORT.read(text, source="x").results[0].runs[0]
    assert run.get("latency", "median").value == 0


@pytest.mark.parametrize(
    ("metric", "value", "allowed"),
    [
        (METRICS["latency"], 0, False),
        (METRICS["latency"], 1e-9, True),
        (METRICS["device_time"], -1e-9, False),
        (METRICS["cpu_time"], 0, True),
        (METRICS["cpu_time"], -1e-9, False),
        (METRICS["loader_wait"], 0, True),
        (METRICS["loader_wait"], -1e-9, False),
        (METRICS["data_share"], 0, True),
        (METRICS["data_share"], -1e-9, False),
        (METRICS["peak_memory"], 0, True),
        (METRICS["peak_memory"], -1, False),
        (METRICS["throughput"], -1, False),
        (Metric(name="heap", unit="B"), -1, False),
        (Metric(name="clock_skew", unit="s"), -1e-3, True),
        (Metric(name="loss", unit="1"), -3, True),
    ],
)
def test_what_a_metric_cannot_be_is_refused(make, metric, value, allowed):
    statistics = {metric.name: {"median": RunStatistic(value=float(value))}}
    session = make.a_session(runs=(make.a_run(statistics=statistics, samples={}),))
    metrics = {metric.name: metric}
    baseline = make.a_baseline(
        metrics=metrics, sessions=(session,), anchor=session, sketch={}
    )
    text = BASELINE.text(make.a_file(x=baseline))
    judgement = dataclasses.replace(make.a_result().judgements[0], metric=metric)
    result = make.a_result(judgements=(judgement,), runs=session.runs)
    report = REPORT.text(make.a_report(results=(result,)))
    for kind, written in ((BASELINE, text), (REPORT, report)):
        if allowed:
            assert kind.text(kind.read(written, source="x")) == written
        else:
            with pytest.raises(
                BaselineCorrupt, match=r"median\[0\]\[0\]: expected a n"
            ):
                kind.read(written, source="x")


@pytest.mark.parametrize(("unit", "allowed"), [("tokens/s", True), ("tokens", False)])
def test_a_throughput_says_what_it_counts(make, unit, allowed):
    rate = dataclasses.replace(METRICS["throughput"], unit=unit)
    measurement = make.a_measurement(samples=(Samples(metric=rate, values=(812.5,)),))
    travelled = through_json(encode_measurement(measurement))
    if allowed:
        assert decode_measurement(travelled) == measurement
    else:
        with pytest.raises(BaselineCorrupt, match="expected '1/s', the unit of throug"):
            decode_measurement(travelled)


@pytest.mark.parametrize(
    ("kind", "name"), [(BASELINE, "a_full_file"), (REPORT, "a_report")]
)
def test_every_truncation_is_refused(make, kind, name):
    text = kind.text(getattr(make, name)()).rstrip()
    for end in range(0, len(text), 97):
        with pytest.raises(BaselineCorrupt, match=r"truncated|the file is empty"):
            kind.read(text[:end], source="x")


def test_a_run_that_the_device_spoilt_travels_with_its_reason(make):
    spoilt = dataclasses.replace(
        make.a_measurement().health,
        unfit=Reason.DEVICE_LOST,
        repeated_blocks=2,
        device={"sm_clock_mhz": 1980.0},
    )
    measurement = make.a_measurement(health=spoilt)
    travelled = through_json(encode_measurement(measurement))
    assert decode_measurement(travelled).health == spoilt
    travelled["health"]["unfit"] = "too-noisy"
    with pytest.raises(BaselineCorrupt, match="unfit: expected one of"):
        decode_measurement(travelled)
