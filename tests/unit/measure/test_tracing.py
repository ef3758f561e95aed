import sys
import types

import pytest

from pytest_perfgate.measure.tracing import active_tracer


@pytest.fixture(autouse=True)
def untraced(monkeypatch):
    monkeypatch.delenv("_PERFGATE_ALLOW_TRACER", raising=False)
    monkeypatch.delenv("CUDA_LAUNCH_BLOCKING", raising=False)
    monkeypatch.setattr(sys, "gettrace", lambda: None)
    monkeypatch.setattr(sys, "getprofile", lambda: None)
    monkeypatch.setattr(sys, "monitoring", make_monitoring(), raising=False)


def make_monitoring(**tools):
    by_number = {int(name[1:]): tool for name, tool in tools.items()}
    return types.SimpleNamespace(get_tool=by_number.get)


def hook(frame, event, argument):
    raise NotImplementedError


class CTracer:
    """Like coverage's: an instance, not a function."""


CTracer.__module__ = "coverage.tracer"


def test_nothing_watches():
    assert active_tracer() is None


def test_a_trace_function(monkeypatch):
    monkeypatch.setattr(sys, "gettrace", CTracer)
    assert active_tracer() == "coverage (trace function)"


def test_a_profile_function(monkeypatch):
    hook.__module__ = "yappi"
    monkeypatch.setattr(sys, "getprofile", lambda: hook)
    assert active_tracer() == "yappi (profile function)"


def test_a_monitoring_tool(monkeypatch):
    monkeypatch.setattr(sys, "monitoring", make_monitoring(t1="coverage.py"))
    assert active_tracer() == "coverage.py (sys.monitoring)"


def test_an_interpreter_without_monitoring(monkeypatch):
    monkeypatch.delattr(sys, "monitoring")
    assert active_tracer() is None


def test_launches_that_block(monkeypatch):
    monkeypatch.setenv("CUDA_LAUNCH_BLOCKING", "1")
    assert active_tracer() == "CUDA_LAUNCH_BLOCKING=1"
    monkeypatch.setenv("CUDA_LAUNCH_BLOCKING", "0")
    assert active_tracer() is None


def test_the_switch_for_our_own_tests(monkeypatch):
    monkeypatch.setattr(sys, "gettrace", CTracer)
    monkeypatch.setenv("_PERFGATE_ALLOW_TRACER", "1")
    assert active_tracer() is None
