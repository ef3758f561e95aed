"""M is the number of tests that this session makes, and no other's."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from pytest_perfgate.campaign.attempts import PastAttempts
from pytest_perfgate.campaign.verdicts import Verdicts
from pytest_perfgate.gate.policy import resolve_policy
from pytest_perfgate.measured import METRICS, Plan
from pytest_perfgate.model import Baseline, RunStatistic, RunSummary, Session
from pytest_perfgate.settings import Pairing

RUN = RunSummary(
    iterations=100,
    statistics={"latency": {"median": RunStatistic(value=1.0)}},
)
SESSION = Session(time="", commit=None, environment_digest="", runs=(RUN,) * 3)
BASELINE = Baseline(
    plan=Plan(iterations=100, warmup=0),
    metrics={"latency": METRICS["latency"]},
    sessions=(SESSION,),
    anchor=SESSION,
)
STORED = {
    "a.py::one": {"a.py::one": BASELINE},
    "a.py::two": {
        "a.py::two": BASELINE,
        "a.py::two::named": replace(BASELINE, sessions=(SESSION, SESSION)),
    },
    "a.py::new": {},
}


@pytest.fixture
def comparisons(tmp_path):
    def count(*nodeids, **policy):
        verdicts = Verdicts(
            SimpleNamespace(entries=dict.fromkeys(nodeids)),
            SimpleNamespace(of_item=STORED.__getitem__),
            {nodeid: resolve_policy(nodeid, **policy) for nodeid in nodeids},
            settings=SimpleNamespace(
                looks=(3, 6, 12), pairing=Pairing(), update=False, paired=False
            ),
            past=PastAttempts(tmp_path, hardware="fake", counting=False),
        )
        return verdicts._look(3, last=True).comparisons

    return count


def test_it_is_summed_over_what_was_selected(comparisons):
    # median and floor each; the second session has an anchor to be held against
    assert comparisons("a.py::one", "a.py::two", "a.py::new") == 2 + 2 + 3


def test_what_is_deselected_is_no_test(comparisons):
    assert comparisons("a.py::one") == 2


def test_what_is_not_gated_is_none_and_there_is_always_one(comparisons):
    assert comparisons("a.py::one", gate=False) == 1
    assert comparisons("a.py::new") == 1
