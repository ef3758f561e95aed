"""Runs and pairs are reduced to what the gate looks at, once."""

from collections import Counter

import pytest

from pytest_perfgate.campaign import summaries as module
from pytest_perfgate.campaign.ledger import Entry
from pytest_perfgate.campaign.summaries import Summaries
from pytest_perfgate.gate.policy import resolve_policy
from pytest_perfgate.measured import METRICS, Measurement, Plan, Samples


def measured(run, value):
    return {
        "b": Measurement(
            benchmark="b",
            nodeid="b",
            run=run,
            plan=Plan(iterations=4, warmup=0),
            samples=(Samples(metric=METRICS["latency"], values=(value,) * 4),),
            turns=(2, 2),
        )
    }


@pytest.fixture
def entry():
    """An item of which three pairs were measured."""
    found = Entry(nodeid="b", settings=None)
    found.twin = Entry(nodeid="b", settings=None)
    for run in (1, 2, 3):
        found.runs[run] = measured(run, 1.1)
        found.twin.runs[run] = measured(run, 1.0)
    return found


@pytest.fixture
def made(monkeypatch):
    """Count what is worked out."""
    count = Counter()

    def counted(name):
        real = getattr(module, name)

        def call(*args, **kwargs):
            count[name] += 1
            return real(*args, **kwargs)

        monkeypatch.setattr(module, name, call)

    counted("summarise")
    counted("with_twin")
    return count


def test_every_look_takes_the_pairs_as_they_were_worked_out(entry, made):
    summaries = Summaries({"b": resolve_policy("b")})
    first = summaries.pairs(entry, "b", [1, 2])
    later = summaries.pairs(entry, "b", [1, 2, 3])
    assert later.candidate[:2] == first.candidate
    assert later.candidate[2].get("latency", "median").twin.log_ratio > 0
    assert made == {"summarise": 6, "with_twin": 3}
