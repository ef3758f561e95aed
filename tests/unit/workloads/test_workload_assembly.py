import subprocess
import sys

import pytest

from pytest_perfgate.errors import BadSample
from pytest_perfgate.measure.memory import MemoryUse
from pytest_perfgate.measure.runner import Outcome
from pytest_perfgate.measured import METRICS, Health
from pytest_perfgate.model import Better
from pytest_perfgate.workloads.assembly import (
    describe,
    memory_samples,
    samples,
    throughput,
    workload_digest,
)


def make_outcome(**changes):
    fields = {
        "iterations": 4,
        "warmup": 1,
        "inner_loop": 1,
        "host_ns": (1, 1, 1, 1),
        "wall_ns": 2_000_000_000,
        "cpu_time_s": (1.0,),
        "turns": (),
        "health": Health(),
        "remarks": (),
    }
    return Outcome(**(fields | changes))


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_a_bad_sample_is_named_with_its_place(value):
    with pytest.raises(BadSample, match=rf"x: latency\[1\] is {value}"):
        samples(METRICS["latency"], [1.0, value], where="x")


def test_no_sample_is_bad_too():
    with pytest.raises(BadSample, match="latency has no sample"):
        samples(METRICS["latency"], [], where="x")


def test_throughput_is_work_over_wall():
    (found,) = throughput(
        make_outcome(inner_loop=3), work_per_iteration=5, unit="tokens"
    )
    assert found.values == (30.0,)
    assert (found.metric.unit, found.metric.better) == ("tokens/s", Better.HIGHER)


def test_throughput_over_a_given_wall_and_over_none():
    outcome = make_outcome()
    (found,) = throughput(
        outcome, work_per_iteration=1, unit="items", wall_ns=1_000_000_000
    )
    assert found.values == (4.0,)
    assert throughput(make_outcome(wall_ns=0), work_per_iteration=1, unit="i") == ()


def test_peaks_become_metrics():
    found = memory_samples(MemoryUse(values={"peak_memory": 5, "host_peak_memory": 6}))
    assert [series.metric.name for series in found] == [
        "peak_memory",
        "host_peak_memory",
    ]
    assert found[0].metric == METRICS["peak_memory"]


class Array:
    def __init__(self, *shape, dtype="float32"):
        self.shape = shape
        self.dtype = dtype


class Odd:
    shape = "round"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (3, "int"),
        ("some path", "str"),
        (Array(2, 3), "Array[2, 3]:float32"),
        (Odd(), "Odd"),
        ([1, 2], "list[2]['int']"),
        ((), "tuple[0][]"),
        ({"b": 1, "a": Array(1)}, "dict[('a', 'Array[1]:float32'), ('b', 'int')]"),
    ],
)
def test_values_are_described_by_type_and_shape(value, text):
    assert describe(value) == text


def test_what_contains_itself_is_described_to_an_end():
    loop = []
    loop.append(loop)
    assert describe(loop).count("list") == 5


@pytest.mark.parametrize(
    "other",
    [
        ("inference", (Array(2),), {}),
        ("call", (Array(3),), {}),
        ("call", (Array(2, dtype="bfloat16"),), {}),
        ("call", (Array(2),), {"k": 1}),
        ("call", ([Array(2)],), {}),
    ],
)
def test_another_workload_has_another_digest(other):
    kind, inputs, keywords = other
    assert workload_digest(kind, *inputs, **keywords) != workload_digest(
        "call", Array(2)
    )


def test_values_do_not_enter_the_digest():
    assert workload_digest("call", 1, a="x", b=2) == workload_digest(
        "call", 9, b=3, a="yy"
    )


def test_the_digest_is_the_same_in_another_process():
    program = (
        "from pytest_perfgate.workloads.assembly import workload_digest;"
        "print(workload_digest('call', {'a': 1, 'b': [2]}, object(), k='x'))"
    )
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    here = workload_digest("call", {"a": 1, "b": [2]}, object(), k="x")
    assert result.stdout.strip() == here
