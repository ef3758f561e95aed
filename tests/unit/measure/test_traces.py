"""Traces in Chrome's format, small ones written by hand for each rule."""

from pathlib import Path

import pytest

from pytest_perfgate.errors import MeasurementError
from pytest_perfgate.measure.traces import CPU_MEMORY, CUDA_MEMORY, read_trace

FOLDER = Path(__file__).parents[2] / "data" / "traces"


def trace_of(name):
    return read_trace((FOLDER / f"{name}.json").read_text(), where=name)


def test_what_was_launched_before_the_call_is_not_its():
    trace = trace_of("overlapping-streams")
    names = {event.name for event in trace.events if event.category == "kernel"}
    assert names == {"gemm", "add", "late"}


def test_launches_of_every_kind_and_no_callback_of_the_host():
    trace = trace_of("overlapping-streams")
    assert (trace.kernel_launches, trace.kernels, trace.graph_launches) == (3, 3, 0)
    assert trace.on_device


def test_kernels_that_run_side_by_side_are_busy_once():
    trace = trace_of("overlapping-streams")
    # 120.5 to 210.5 on two streams, and a late one of 20
    assert trace.busy_s == pytest.approx(110e-6)
    assert trace_of("no-gpu-events").busy_s == 0.0


def test_our_own_wait_after_the_call_is_not_counted():
    assert trace_of("overlapping-streams").syncs == 0


def test_a_graph_is_one_launch_of_many_kernels():
    trace = trace_of("graph-launch")
    assert (trace.kernel_launches, trace.graph_launches, trace.kernels) == (1, 1, 5)
    assert trace.syncs == 1


def test_kernels_of_triton_are_launched_by_the_driver():
    assert trace_of("triton").kernel_launches == 3  # one is listed in both layers


def test_compiled_graphs_by_their_ids():
    assert trace_of("triton").compiled == {"0/0", "1/0"}


def test_copies_by_direction():
    trace = trace_of("copies")
    assert trace.copies("h2d") == (2, 5120)
    assert trace.copies("d2h") == (3, 28)
    assert trace.pageable_copies == 3


def test_a_copy_to_pageable_memory_is_a_wait_even_if_nothing_says_so():
    assert trace_of("copies").syncs == 2  # one is told, by the call after it


def test_every_call_that_waits_and_none_that_only_asks():
    assert trace_of("syncs").syncs == 5


def test_memory_that_one_call_takes():
    trace = trace_of("no-gpu-events")
    assert trace.peak_bytes(CPU_MEMORY) == 1500
    assert trace.allocations(CPU_MEMORY) == 3
    assert (trace.peak_bytes(CUDA_MEMORY), trace.allocations(CUDA_MEMORY)) == (64, 1)


def test_a_trace_without_gpu_events_counts_none():
    trace = trace_of("no-gpu-events")
    counts = (trace.kernel_launches, trace.kernels, trace.syncs, trace.copies("h2d"))
    assert counts == (0, 0, 0, (0, 0))
    assert not trace.on_device


def test_an_old_trace_has_whole_microseconds_and_no_correlation():
    trace = trace_of("old-integers")
    assert (trace.kernel_launches, trace.kernels) == (1, 1)


def test_a_trace_that_is_cut_off():
    with pytest.raises(MeasurementError, match="truncated is cut off or no JSON"):
        trace_of("truncated")


@pytest.mark.parametrize("text", ["{}", '{"traceEvents": 3}', "3"])
def test_what_is_no_trace(text):
    with pytest.raises(MeasurementError, match="no traceEvents"):
        read_trace(text)


def test_events_that_are_nothing_like_events_are_left_out():
    text = '[3, {"ph": "X"}, {"ph": "X", "name": "k", "cat": "kernel", "args": 3}]'
    assert read_trace(text).kernels == 1
