import math

import pytest

from pytest_perfgate.errors import BadSample, UsageError
from pytest_perfgate.measured import METRICS, Metric, Samples
from pytest_perfgate.model import Better
from pytest_perfgate.workloads.call import measure_call
from pytest_perfgate.workloads.record import record_only, recorded, with_records


def make_recorded(samples, name="queue_wait", **changes):
    fields = {"unit": "s", "better": "lower", "exact": False} | changes
    return recorded(name, samples, **fields)


def test_a_recorded_metric():
    found = make_recorded(range(1, 3), unit="ms", better="higher", exact=True)
    assert found == Samples(
        metric=Metric(
            name="queue_wait",
            unit="ms",
            better=Better.HIGHER,
            definition="recorded/1",
            exact=True,
        ),
        values=(1.0, 2.0),
    )


@pytest.mark.parametrize(
    ("samples", "words"),
    [
        ([], "has no sample"),
        ([1.0, math.nan], "sample 1 is nan"),
        ([math.inf], "sample 0 is inf"),
        ([1, "x"], "sample 1 is 'x'"),
        ([None], "sample 0 is None"),
    ],
)
def test_bad_samples_are_named(samples, words):
    with pytest.raises(BadSample, match=rf"record\('queue_wait'\).*{words}"):
        make_recorded(samples)


def test_arrays_and_tensors_are_series():
    np = pytest.importorskip("numpy")
    assert make_recorded(np.array([1, 2])).values == (1.0, 2.0)


@pytest.mark.parametrize(
    ("changes", "words"),
    [({"better": "faster"}, "better='faster'"), ({"unit": ""}, "unit=''")],
)
def test_bad_words_are_refused(changes, words):
    with pytest.raises(UsageError, match=words):
        make_recorded([1], **changes)


def test_a_test_that_only_records(make_context, target):
    records = {"a": make_recorded([1, 2, 3]), "b": make_recorded([1], name="b")}
    found = record_only(make_context(run=2, alone=True), target, records)
    assert (found.plan.iterations, found.plan.warmup) == (1, 0)
    assert [series.metric.name for series in found.samples] == ["queue_wait", "b"]
    assert (found.run, found.alone) == (2, True)


def test_the_workload_is_which_numbers_not_how_many(make_context, target):
    def workload(samples, name):
        found = record_only(
            make_context(), target, {name: make_recorded(samples, name=name)}
        )
        return found.plan.workload

    assert workload([1, 2], "a") == workload([3], "a")
    assert workload([1, 2], "a") != workload([1, 2], "b")


def test_records_join_what_was_measured(make_context, target):
    own, _ = measure_call(
        make_context(iterations=2, warmup=1), target, lambda: None, (), {}
    )
    joined = with_records(own, {"queue_wait": make_recorded([1])})
    assert joined.samples == (*own.samples, make_recorded([1]))
    with pytest.raises(UsageError, match=r"record\('latency'\) has the name"):
        with_records(own, {"latency": make_recorded([1], name="latency")})
    assert own.samples[0].metric == METRICS["latency"]
