import inspect
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from pytest_perfgate.measure.context import MeasureContext
from pytest_perfgate.measure.fake import FakeDevice
from pytest_perfgate.measure.fake_script import parse_script

ROOT = str(Path(__file__).parents[2])
if ROOT not in sys.path:
    sys.path.insert(0, ROOT)  # for the helpers that several test files share


class Ticking:
    """A clock that moves by a given step at every reading."""

    def __init__(self, step=10):
        self.now = 0
        self.step = step

    def __call__(self):
        self.now += self.step
        return self.now


@pytest.fixture
def make_clock():
    return Ticking


@pytest.fixture
def make_fake():
    return lambda **script: FakeDevice(parse_script(script))


@pytest.fixture
def make_context(make_fake):
    def make(**changes):
        fields = {
            "device": make_fake(),
            "run": 0,
            "seed": 0,
            "max_time_s": 1.0,
            "iterations": None,
            "warmup": None,
            "inner_loop": 1,
            "plans": {},
            "slowdown": 0.0,
            "emit": lambda _: None,
            "note": lambda _: None,
            "alone": False,
            "wants_p99": False,
            "counting": False,  # what is counted depends on what else is imported
        }
        return MeasureContext(**(fields | changes))

    return make


@pytest.fixture
def make_benchmark():
    """Make real objects of pytest-benchmark, as its fixture hands them to tests."""
    fixture = pytest.importorskip("pytest_benchmark.fixture")
    utils = pytest.importorskip("pytest_benchmark.utils")

    def make(**changes):
        options = {
            "disable_gc": False,
            "timer": utils.NameWrapper(time.perf_counter),
            "min_rounds": 5,
            "min_time": 0.000005,
            "max_time": 1.0,
            "precision": None,
            "confidence": 0.99,
            "warmup": False,
            "warmup_iterations": 100,
            "calibration_precision": 10,
            "add_stats": [].append,
            "logger": SimpleNamespace(debug=lambda *_, **__: None),
            "warner": None,
            "disabled": False,
            "cprofile": False,
            "cprofile_loops": None,
            "cprofile_dump": None,
        }
        node = SimpleNamespace(name="b", nodeid="a.py::b", _nodeid="a.py::b")
        known = inspect.signature(fixture.BenchmarkFixture).parameters
        # older versions have fewer
        given = {n: value for n, value in (options | changes).items() if n in known}
        return fixture.BenchmarkFixture(node, **given)

    return make


class OtherSide:
    """The other half of a pair: counts the turns it is given."""

    def __init__(self, agreed=None):
        self.agreed = agreed
        self.turns = 0
        self.begun = []

    def begin(self, benchmark):
        self.begun.append(benchmark)
        return self.agreed

    def agree(self, agreement):
        assert self.agreed is None
        self.agreed = agreement

    def turn(self):
        self.turns += 1


@pytest.fixture
def make_other_side():
    return OtherSide
