"""What is stored, found by item and by benchmark."""

import pytest

from pytest_perfgate.campaign.shelf import Shelf, items_of
from pytest_perfgate.errors import BaselineCorrupt
from pytest_perfgate.measured import Plan
from pytest_perfgate.model import (
    Baseline,
    BaselineFile,
    Environment,
    RunSummary,
    Session,
)

STORED = (
    "a.py::one",
    "a.py::one::prefill",
    "a.py::one::decode",
    "a.py::onerous",
    "a.py::Group::two[x::y]",
)


@pytest.fixture
def shelf():
    run = RunSummary(iterations=1, statistics={})
    session = Session(time="", commit=None, environment_digest="", runs=(run,))
    baseline = Baseline(
        plan=Plan(iterations=1, warmup=0),
        metrics={},
        sessions=(session,),
        anchor=session,
    )
    file = BaselineFile(
        environment=Environment(key="here", hardware={}),
        benchmarks=dict.fromkeys(STORED, baseline),
    )

    class Store:
        def load(self, _, name):
            if name == "torn.py":
                raise BaselineCorrupt("torn")
            return file if name == "a.py" else None

    return Shelf(Store(), "here", ["a.py", "b.py", "torn.py"])


@pytest.mark.parametrize(
    ("nodeid", "benchmarks"),
    [
        ("a.py::one", STORED[:3]),
        ("a.py::onerous", STORED[3:4]),
        ("a.py::Group::two[x::y]", STORED[4:]),
        ("a.py::other", ()),
        ("b.py::one", ()),
        ("torn.py::one", ()),
    ],
)
def test_an_item_has_its_own_benchmark_and_the_named_ones_under_it(
    shelf, nodeid, benchmarks
):
    assert tuple(shelf.of_item(nodeid)) == benchmarks
    assert tuple(shelf.plans(nodeid)) == benchmarks


def test_a_benchmark_is_its_own_item_s_or_is_named_under_one():
    assert list(items_of("a.py::T::one::named")) == [
        "a.py::T::one::named",
        "a.py::T::one",
        "a.py::T",
        "a.py",
    ]
