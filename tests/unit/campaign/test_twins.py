"""Set-up that fails only because the other half is alive, and bases that fail."""

import pytest

from pytest_perfgate.campaign.ledger import Entry, Failure, Ledger, Loss
from pytest_perfgate.campaign.twins import base_trouble, held_by_twin
from pytest_perfgate.model import Reason


def failure(text, *, run=1, when="setup"):
    return Failure(run=run, when=when, reason=Reason.BODY_RAISED, text=text)


@pytest.fixture
def ledger():
    """A ledger with one entry and its twin; settings are of no account."""
    found = Ledger([])
    found.entries["a"] = Entry(nodeid="a", settings=None)
    found.base = Ledger([], is_base=True)
    found.base.entries["a"] = Entry(nodeid="a", settings=None)
    found.entries["a"].twin = found.base.entries["a"]
    for entry in (found.entries["a"], found.base.entries["a"]):
        entry.reports[1] = []
    return found


@pytest.mark.parametrize(
    "text",
    [
        "OSError: [Errno 98] Address already in use",
        "FileExistsError: [Errno 17] File exists: '/tmp/cache'",
        "sqlite3.OperationalError: database is locked",
        "BlockingIOError: [Errno 11] Resource temporarily unavailable",
        "filelock.Timeout: timeout on lock '/tmp/x.lock'",
        "torch.OutOfMemoryError: CUDA out of memory",
    ],
)
@pytest.mark.parametrize("side", ["candidate", "base"])
def test_what_a_twin_may_hold_is_forgotten_and_named(ledger, text, side):
    entry = ledger.entries["a"] if side == "candidate" else ledger.base.entries["a"]
    entry.failures.append(failure(text))
    assert held_by_twin(ledger, 1) == text
    assert entry.failures == []
    assert 1 not in entry.reports


def test_other_failures_stand(ledger):
    entry = ledger.entries["a"]
    entry.failures.append(failure("AssertionError: 3 != 4"))
    assert held_by_twin(ledger, 1) == ""
    assert entry.failures


def test_what_fails_on_both_sides_is_not_the_twins_doing(ledger):
    for book in (ledger, ledger.base):
        book.entries["a"].failures.append(failure("Address already in use"))
    assert held_by_twin(ledger, 1) == ""


def test_an_earlier_run_is_not_looked_at(ledger):
    ledger.entries["a"].failures.append(failure("Address already in use", run=1))
    assert held_by_twin(ledger, 2) == ""


def test_runs_without_a_twin_are_nobodys():
    ledger = Ledger([])
    ledger.entries["a"] = Entry(nodeid="a", settings=None)
    assert held_by_twin(ledger, 1) == ""
    assert base_trouble(ledger.entries["a"]) == ""


def loss(how="SIGKILL", run=1):
    return Loss(run=run, how=how, timed_out=False, tail="")


@pytest.mark.parametrize(
    ("trouble", "said"),
    [
        ({"unusable": "it imported the candidate"}, "it imported the candidate"),
        ({"failures": [failure("boom", when="call")]}, "its call failed in the base"),
        ({"skipped_runs": [1]}, "skipped in the base tree"),
        ({"tracer": "coverage"}, "coverage is active in the base tree"),
        ({"losses": [loss(), loss(run=2)]}, "lost in it: SIGKILL, SIGKILL"),
    ],
)
def test_a_base_that_did_not_measure_says_why(ledger, trouble, said):
    twin = ledger.base.entries["a"]
    for name, value in trouble.items():
        setattr(twin, name, value)
    assert said in base_trouble(ledger.entries["a"])


def test_a_base_that_measured_something_else_says_so(ledger):
    entry = ledger.entries["a"]
    entry.runs[1] = {"a::first": None}
    ledger.base.entries["a"].runs[1] = {"a::other": None}
    assert base_trouble(entry) == "the base tree did not measure it"


def test_one_loss_among_good_runs_is_no_trouble(ledger):
    entry, twin = ledger.entries["a"], ledger.base.entries["a"]
    entry.runs[1] = twin.runs[2] = {"a": None}
    twin.losses.append(loss())
    assert base_trouble(entry) == ""
