"""Any value → JSON text → valid by the published schema → the same value."""

import dataclasses
import json
import math
from collections.abc import Mapping
from pathlib import Path

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_perfgate import measured, model
from pytest_perfgate.store import (
    decode_measurement,
    encode_measurement,
    environment_digest,
)
from pytest_perfgate.store.codec_baseline import BASELINE
from pytest_perfgate.store.codec_report import REPORT

SCHEMAS = Path(__file__).parents[2] / "docs" / "schemas"
repeatable = settings(
    derandomize=True,
    database=None,
    deadline=None,
    max_examples=60,
    # how fast a busy machine draws examples says nothing of the codec
    suppress_health_check=[HealthCheck.too_slow],
)

text = st.text(max_size=8)
texts = st.lists(text, max_size=2).map(tuple)
number = st.floats(allow_nan=False, allow_infinity=False)
positive = st.floats(min_value=0, exclude_min=True, allow_infinity=False)
from_zero = st.floats(min_value=0, allow_infinity=False)
whole = st.integers(-(2**70), 2**70)
count = st.integers(0, 2**40)
names = st.sampled_from(("median", "p99", "floor", "max"))


def maybe(strategy):
    return st.none() | strategy


def mapping(values, keys=text):
    return st.dictionaries(keys, values, max_size=3)


def build(cls, **fields):
    # a field that is new in the model must be stored, and be drawn here
    assert fields.keys() == {field.name for field in dataclasses.fields(cls)}, cls
    return st.builds(cls, **fields)


scalars = mapping(maybe(text | whole | number | st.booleans()))
environments = build(
    model.Environment, key=text, hardware=scalars, software=scalars, fake=st.booleans()
)
plans = build(
    measured.Plan,
    iterations=st.integers(1, 2**40),
    warmup=count,
    inner_loop=st.integers(1, 2**40),
    seed=whole,
    batch_size=maybe(whole),
    threads=maybe(whole),
    device=text,
    workload=text,
    cache=st.sampled_from(measured.CACHES),
)
own_metrics = build(
    measured.Metric,
    name=st.text(min_size=1, max_size=8).filter(
        lambda name: name not in measured.METRICS
    ),
    unit=st.sampled_from(("s", "B", "1", "1/s")) | text,
    better=st.sampled_from(model.Better),
    definition=text,
    exact=st.booleans(),
)
rates = st.sampled_from(("tokens/s", "steps/s")).map(
    lambda unit: dataclasses.replace(measured.METRICS["throughput"], unit=unit)
)
metrics = own_metrics | rates | st.sampled_from(list(measured.METRICS.values()))
healths = build(
    measured.Health,
    blocks=count,
    disturbed_blocks=count,
    cpu_share=maybe(number),
    involuntary_switches=maybe(whole),
    disturbed=st.booleans(),
    steady=st.booleans(),
    evidence=texts,
    repeated_blocks=count,
    unfit=maybe(st.sampled_from(sorted(measured.UNFIT))),
    device=mapping(number),
)
samples = build(
    measured.Samples,
    metric=metrics,
    values=st.lists(number, min_size=1, max_size=5).map(tuple),
)
uses = mapping(build(measured.OperatorUse, count=count, self_s=from_zero))
profiles = build(
    measured.Profile,
    operators=uses,
    kernels=uses,
    operators_s=from_zero,
    kernels_s=from_zero,
)
slow_iterations = build(
    measured.SlowIteration,
    index=count,
    at_s=from_zero,
    value_s=from_zero,
    known=texts,
)


@st.composite
def slows(draw):
    worst = draw(st.lists(slow_iterations, min_size=1, max_size=2).map(tuple))
    drawn = build(
        measured.SlowIterations,
        run=whole,
        beyond_s=from_zero,
        rule=text,
        count=count.map(lambda more: len(worst) + more),
        worst=st.just(worst),
    )
    return draw(drawn)


clues = build(
    model.Clue,
    kind=st.sampled_from(list(model.ClueKind)),
    text=text,
    old=text,
    new=text,
    share=maybe(number),
)
explanations = build(
    model.Explanation, lines=st.lists(clues, min_size=1, max_size=3).map(tuple)
)
measurements = build(
    measured.Measurement,
    benchmark=text,
    nodeid=text,
    run=whole,
    plan=plans,
    samples=st.lists(samples, max_size=3).map(tuple),
    health=healths,
    clock_tick_s=from_zero,
    output=mapping(from_zero),
    alone=st.booleans(),
    remarks=texts,
    turns=st.lists(st.integers(1, 2**40), max_size=3).map(tuple),
    profile=maybe(profiles),
    slow=maybe(slows()),
    enqueue_share=maybe(from_zero),
)
twins = build(model.Twin, log_ratio=number, se=from_zero)


def values_of(metric):
    if metric.name in measured.METRICS:
        return positive
    return from_zero if metric.unit == "B" else number


def statistics_of(metric):
    one = build(
        model.RunStatistic, value=values_of(metric), se=from_zero, twin=maybe(twins)
    )
    return st.dictionaries(names, one, min_size=1, max_size=3)


@st.composite
def runs(draw, known, *, min_size=0):
    """Draw runs in which any metric may be absent from any run."""
    one = build(
        model.RunSummary,
        iterations=st.integers(1, 2**40),
        statistics=st.fixed_dictionaries(
            {}, optional={name: statistics_of(metric) for name, metric in known.items()}
        ),
        drift=st.fixed_dictionaries({}, optional=dict.fromkeys(known, number)),
        clock_tick_s=from_zero,
        disturbed=st.booleans(),
        steady=st.booleans(),
        alone=st.booleans(),
        samples=st.fixed_dictionaries(
            {}, optional=dict.fromkeys(known, st.integers(1, 2**40))
        ),
        device=mapping(number),
        output=mapping(from_zero),
        enqueue_share=maybe(from_zero),
    )
    return tuple(draw(st.lists(one, min_size=min_size, max_size=4)))


@st.composite
def baselines(draw):
    drawn = draw(st.lists(metrics, max_size=3))
    known = {metric.name: metric for metric in drawn}
    session = build(
        model.Session,
        time=text,
        commit=maybe(text),
        environment_digest=text,
        runs=runs(known, min_size=1),
    )
    sessions = tuple(draw(st.lists(session, min_size=1, max_size=3)))
    sketch = {
        name: st.lists(values_of(metric), max_size=4).map(tuple)
        for name, metric in known.items()
    }
    drawn = build(
        model.Baseline,
        plan=plans,
        metrics=st.just(known),
        sessions=st.just(sessions),
        anchor=st.sampled_from(sessions) | session,
        sketch=st.fixed_dictionaries({}, optional=sketch),
        counts=mapping(count),
        environment=maybe(environments),
        profile=maybe(profiles),
    )
    return draw(drawn)


baseline_files = build(
    model.BaselineFile, environment=environments, benchmarks=mapping(baselines())
)
verdicts = build(
    model.Verdict,
    outcome=st.sampled_from(model.Outcome),
    reason=st.sampled_from(model.Reason),
    detail=text,
)
comparisons = build(
    model.Comparison,
    baseline=number,
    candidate=number,
    ratio=number,
    low=number | st.just(-math.inf),
    high=number | st.just(math.inf),
    p_identity=number,
    baseline_runs=count,
    candidate_runs=count,
    spread=number,
    detectable=maybe(number),
    absolute=st.booleans(),
    q_value=maybe(number),
)
judgements = build(
    model.Judgement,
    metric=metrics,
    statistic=text,
    verdict=verdicts,
    budget=maybe(number),
    bound=text,
    gated=st.booleans(),
    comparison=maybe(comparisons),
    remarks=texts,
    anchor=st.booleans(),
)
differences = build(
    model.Difference, field=text, baseline=text, candidate=text, forbids=st.booleans()
)


@st.composite
def results(draw):
    judged = draw(st.lists(judgements, max_size=3))
    judged = list({judgement.metric.name: judgement for judgement in judged}.values())
    known = {judgement.metric.name: judgement.metric for judgement in judged}
    drawn = build(
        model.BenchmarkResult,
        benchmark=text,
        nodeid=text,
        verdict=verdicts,
        judgements=st.just(tuple(judged)),
        runs=runs(known),
        confirmation=runs(known),
        base_runs=runs(known),
        base_confirmation=runs(known),
        plan=maybe(plans),
        differences=st.lists(differences, max_size=2).map(tuple),
        discarded=texts,
        remarks=texts,
        text=text,
        attempt=st.integers(1, 2**40),
        earlier_runs=count,
        absorbed=st.booleans(),
        metrics=st.just(known) | st.just({}),
        longest_warmup=count,
        environment=maybe(environments),
        profile=maybe(profiles),
        explanation=maybe(explanations),
        slow=st.lists(slows(), max_size=2).map(tuple),
    )
    return draw(drawn)


shifts = build(model.Shift, ratio=number, benchmarks=count, share=number)
bases = build(model.BaseCode, ref=text, commit=text, overlaid=texts, notes=texts)
reports = build(
    model.Report,
    created=text,
    commit=maybe(text),
    environment=maybe(environments),
    results=st.lists(results(), max_size=3).map(tuple),
    exit_code=whole,
    summary=text,
    policy=mapping(text),
    cost=mapping(number),
    interrupted=st.booleans(),
    shift=maybe(shifts),
    problem=text,
    notes=texts,
    base=maybe(bases),
)


def validator(name):
    schema = json.loads((SCHEMAS / f"{name}.schema.json").read_text(encoding="utf-8"))
    return jsonschema.Draft202012Validator(schema)


def assert_alike(left, right):
    """Compare two values, fractions by six significant digits."""
    if isinstance(left, float) and not isinstance(right, bool):
        # half a unit of the sixth digit, at most; the smallest floats have fewer
        assert math.isclose(left, right, rel_tol=5.0001e-6, abs_tol=1e-318)
    elif dataclasses.is_dataclass(left):
        assert type(left) is type(right)
        for field in dataclasses.fields(left):
            assert_alike(getattr(left, field.name), getattr(right, field.name))
    elif isinstance(left, Mapping):
        assert left.keys() == right.keys()
        for key in left:
            assert_alike(left[key], right[key])
    elif isinstance(left, tuple):
        assert len(left) == len(right)
        for one, other in zip(left, right, strict=True):
            assert_alike(one, other)
    else:
        assert left == right


@repeatable
@given(measurements)
def test_measurements_travel_without_loss(measurement):
    travelled = json.loads(json.dumps(encode_measurement(measurement), allow_nan=False))
    assert decode_measurement(travelled) == measurement


@repeatable
@given(reports)
def test_reports_come_back_equal(report):
    written = REPORT.text(report)
    validator("report").validate(json.loads(written))
    assert REPORT.read(written, source="report.json") == report


@repeatable
@given(baseline_files)
def test_baselines_come_back_by_six_digits_and_then_never_change(file):
    written = BASELINE.text(file)
    validator("baseline").validate(json.loads(written))
    again = BASELINE.read(written, source="b.json")
    assert_alike(file, again)
    assert BASELINE.text(again) == written


@repeatable
@given(environments)
def test_the_digest_of_an_environment_outlives_storage(environment):
    file = model.BaselineFile(environment=environment, benchmarks={})
    again = BASELINE.read(BASELINE.text(file), source="b.json").environment
    assert environment_digest(again) == environment_digest(environment)


@pytest.mark.parametrize("name", ["baseline", "report"])
def test_the_validator_can_say_no(name):
    assert not validator(name).is_valid({})
