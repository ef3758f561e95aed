import pytest

from pytest_perfgate.workloads.target import Target


@pytest.fixture
def target():
    return Target(nodeid="a.py::b", benchmark="a.py::b")


@pytest.fixture
def by_name():
    """Values of a measurement's samples by metric name."""
    return lambda measurement: {
        series.metric.name: series.values for series in measurement.samples
    }
