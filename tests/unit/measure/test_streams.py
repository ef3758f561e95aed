"""Whose stream the events are on: the one that is current where the user measures."""

import sys
import types

import pytest

from pytest_perfgate.measure.device import open_device
from pytest_perfgate.workloads.call import measure_call
from pytest_perfgate.workloads.target import Target
from tests.streams import US, Gpu

TARGET = Target(nodeid="a.py::b", benchmark="a.py::b")
SPAN_NS = 250 * US


@pytest.fixture
def gpu():
    return Gpu()


@pytest.fixture
def device(gpu, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setitem(sys.modules, "torch", types.SimpleNamespace(cuda=gpu))
        opened = open_device("cuda:0", fake_script=None)
    opened.now_ns = lambda: gpu.host_ns
    return opened


@pytest.fixture
def measure(make_context, device, by_name):
    """Measure a call; gives the latency, the device's time, and its period."""

    def measure(call, **changes):
        context = make_context(device=device, iterations=3, warmup=2, **changes)
        found, _ = measure_call(context, TARGET, call, (), {})
        values = by_name(found)
        names = ("latency", "device_time", "device_period")
        return tuple(values[name][-1] for name in names)

    return measure


@pytest.fixture
def by_name():
    return lambda found: {s.metric.name: s.values for s in found.samples}


def events(gpu):
    return {stream for what, stream in gpu.order if what == "event"}


def test_what_is_measured_inside_a_stream_has_its_events_there(gpu, measure):
    with gpu.stream("mine"):
        found = measure(lambda: gpu.work(SPAN_NS))
    assert found == pytest.approx((255e-6, 255e-6, 250e-6))
    assert events(gpu) == {"mine"}


def test_work_that_a_call_puts_elsewhere_is_in_no_span(gpu, measure):
    def call():
        with gpu.stream("aside"):
            gpu.work(SPAN_NS)

    latency, span, _ = measure(call, inner_loop=None)
    assert (latency, span) == pytest.approx((255e-6, 5e-6))
    assert events(gpu) == {"default"}


def test_work_elsewhere_that_is_waited_for_is_in_the_span(gpu, measure):
    def call():
        with gpu.stream("aside"):
            gpu.work(SPAN_NS)
        gpu.wait_for("aside")

    latency, span, _ = measure(call)
    assert (latency, span) == pytest.approx((255e-6, 255e-6))


def test_marks_between_phases_follow_the_current_stream_too(gpu, device):
    with gpu.stream("mine"):
        first = device.mark()
        gpu.work(SPAN_NS)
        second = device.mark()
    device.synchronize()
    assert device.span_s(first, second) == pytest.approx(255e-6)
    assert events(gpu) == {"mine"}
