"""Where the time of a call goes, from traces written by hand."""

from pathlib import Path

import pytest

from pytest_perfgate.measure.profile import KEPT, profile_of
from pytest_perfgate.measure.traces import Event, Trace, read_trace

FOLDER = Path(__file__).parents[2] / "data" / "traces"


def trace_of(name):
    return read_trace((FOLDER / f"{name}.json").read_text(), where=name)


def operator(name, at_us, lasts_us, thread=1):
    return Event(
        category="cpu_op", name=name, at_us=at_us, lasts_us=lasts_us, thread=thread
    )


def test_the_time_in_an_operator_is_without_what_it_calls():
    found = profile_of([trace_of("no-gpu-events")]).operators
    assert found["aten::linear"].self_s == pytest.approx(
        10.3e-6, rel=0.01
    )  # 40.5 less 30.25
    assert found["aten::addmm"].self_s == pytest.approx(30.2e-6, rel=0.01)
    assert found["aten::relu"].self_s == pytest.approx(10e-6)


def test_kernels_and_copies_of_the_gpu():
    found = profile_of([trace_of("copies")]).kernels
    assert found["add"].count == 1
    assert found["Memcpy DtoH (Device -> Pageable)"].count == 2
    assert found["Memset (Device)"].self_s == pytest.approx(2e-6)


def test_two_calls_are_one_on_the_average():
    one, two = operator("a", 0, 10), operator("a", 0, 20)
    found = profile_of([Trace(events=(one,)), Trace(events=(two,))])
    assert found.operators["a"].count == 1
    assert found.operators["a"].self_s == pytest.approx(15e-6)
    assert found.operators_s == pytest.approx(15e-6)


def test_threads_do_not_call_each_other():
    events = (operator("outer", 0, 100), operator("other", 10, 50, thread=2))
    found = profile_of([Trace(events=events)]).operators
    assert found["outer"].self_s == pytest.approx(100e-6)


def test_those_that_take_longest_are_kept_in_the_order_of_their_names():
    events = tuple(operator(f"op{i:02}", 100 * i, i + 1) for i in range(KEPT + 5))
    found = profile_of([Trace(events=events)])
    assert list(found.operators) == [f"op{i:02}" for i in range(5, KEPT + 5)]
    assert found.operators_s > sum(use.self_s for use in found.operators.values())


def test_names_are_the_same_in_every_process():
    events = (
        operator("Torch-Compiled Region: 3/1", 0, 10),
        operator("## Call CompiledFxGraph fabc123 ##", 20, 10),
        operator("x" * 500, 40, 10),
    )
    found = profile_of([Trace(events=events)]).operators
    assert sorted(found) == [
        "## Call CompiledFxGraph … ##",
        "Torch-Compiled Region",
        "x" * 120,
    ]


def test_nothing_to_see():
    assert profile_of([Trace(events=())]) is None
