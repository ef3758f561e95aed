"""Which results are explained, held against what, and by which history."""

from dataclasses import replace

import pytest

from pytest_perfgate.campaign import explaining, git
from pytest_perfgate.campaign.explaining import Explaining
from pytest_perfgate.gate.explain import History
from pytest_perfgate.measured import METRICS, Plan
from pytest_perfgate.model import (
    Baseline,
    BenchmarkResult,
    Difference,
    Judgement,
    Outcome,
    Reason,
    RunSummary,
    Session,
    Verdict,
)

DIFFERS = (Difference(field="torch", baseline="1", candidate="2", forbids=False),)
VERDICT = Verdict(outcome=Outcome.REGRESSED, reason=Reason.CONFIRMED)


def session(commit):
    runs = (RunSummary(iterations=1, statistics={}),)
    return Session(time="", commit=commit, environment_digest="", runs=runs)


BASELINE = Baseline(
    plan=Plan(iterations=1, warmup=0),
    metrics={},
    sessions=(session("middle"), session("newest")),
    anchor=session("anchor"),
)


class Reference:
    def __init__(self, found):
        self.found = found

    def explaining(self, entry, benchmark):
        assert (entry, benchmark) == ("entry", "b")
        return self.found


def result(outcome=Outcome.REGRESSED, reason=Reason.CONFIRMED):
    verdict = Verdict(outcome=outcome, reason=reason)
    judged = Judgement(metric=METRICS["latency"], statistic="median", verdict=verdict)
    return BenchmarkResult(
        benchmark="b", nodeid="b", verdict=verdict, judgements=(judged,)
    )


@pytest.fixture
def explained(monkeypatch, tmp_path):
    """Explain a result; gives its texts, and the commits that were asked for."""
    asked = []

    def history(root, since):
        assert root == tmp_path
        asked.append(since)
        return History(since=since)

    monkeypatch.setattr(explaining.git, "history", history)

    def explain(one, *, when="auto", found=(BASELINE, DIFFERS, False)):
        them = Explaining(
            Reference(found), when=when, root=tmp_path, base_commit=lambda: "base"
        )
        texts = [
            [line.text for line in explanation.lines] if explanation else []
            for explanation in (
                them.of("entry", one).explanation,
                them.of("entry", one).explanation,
            )
        ]
        assert texts[0] == texts[1]
        return texts[0], asked

    return explain


@pytest.mark.parametrize(
    ("when", "outcome", "told"),
    [
        ("auto", Outcome.REGRESSED, True),
        ("auto", Outcome.UNCHANGED, False),
        ("auto", Outcome.ERROR, False),
        ("always", Outcome.UNCHANGED, True),
        ("always", Outcome.INCONCLUSIVE, True),
        ("always", Outcome.ERROR, False),
        ("never", Outcome.REGRESSED, False),
    ],
)
def test_who_is_explained(explained, when, outcome, told):
    texts, asked = explained(result(outcome), when=when)
    assert texts == (["torch: 1 → 2"] if told else [])
    assert asked == (["newest"] if told else [])  # git is asked once


def test_what_was_never_judged_is_not_explained(explained):
    plain = replace(result(Outcome.UNCHANGED), judgements=())
    assert explained(plain, when="always")[0] == []


def test_what_has_nothing_to_be_held_against_is_not_explained(explained):
    assert explained(result(), found=None)[0] == []


def test_base_code_has_its_own_commit(explained):
    assert explained(result(), found=(BASELINE, DIFFERS, True))[1] == ["base"]


def test_what_crept_since_the_anchor_is_held_against_it(explained):
    crept = result(reason=Reason.CREPT)
    assert explained(crept)[1] == ["anchor"]


# -- git


@pytest.fixture
def checkout(make_checkout):
    made = make_checkout().write({"a.py": "1\n"})
    made.commit("Begin")
    return made


@pytest.fixture
def tree(checkout):
    return checkout.path


def test_the_commits_since_a_baseline(checkout, tree):
    since = git.commit(tree)
    checkout.commit("One thing\n\nand why")
    checkout.commit("Another: with  two spaces, ünicode")
    (tree / "a.py").write_text("2\n")
    found = git.history(tree, f"{since}+dirty")
    assert [one.subject for one in found.commits] == [
        "Another: with  two spaces, ünicode",
        "One thing",
    ]
    assert (found.since, found.count) == (f"{since}+dirty", 2)
    assert found.dirty
    assert not found.problem


def test_the_same_commit_has_no_history(tree):
    since = git.commit(tree)
    assert git.history(tree, since) == History(since=since)


def test_a_long_history_is_counted(checkout, tree, monkeypatch):
    monkeypatch.setattr(git, "MOST_COMMITS", 2)
    since = git.commit(tree)
    for number in range(4):
        checkout.commit(f"Step {number}")
    found = git.history(tree, since)
    assert [one.subject for one in found.commits] == ["Step 3", "Step 2"]
    assert found.count == 4


@pytest.mark.parametrize(
    ("since", "problem"),
    [
        (None, "does not say of which commit"),
        ("--output=here", "'--output=here' is no commit"),
        ("0" * 12, "is not in this clone"),
    ],
)
def test_a_history_that_cannot_be_told(tree, since, problem):
    found = git.history(tree, since)
    assert problem in found.problem
    assert not found.commits
    assert not (tree / "here..HEAD").exists()


def test_without_a_repository_there_is_no_history(tmp_path):
    assert git.history(tmp_path, "0" * 12).problem == "this is no git repository"


def test_a_subject_that_is_no_text_stops_nobody(checkout, tree):
    since = git.commit(tree)
    message = tree / "message"
    message.write_bytes(b"bad \xff byte")
    encoded = ("-c", "i18n.commitEncoding=utf-8")
    checkout.git(*encoded, "commit", "-q", "--allow-empty", "-F", "message")
    (found,) = git.history(tree, since).commits
    assert found.subject.startswith("bad ")
