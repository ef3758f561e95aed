"""Finding one commit in histories of every shape."""

import random
from math import ceil, log2

import pytest

from pytest_perfgate.cli.bisection import (
    Answer,
    Bisection,
    Commit,
    Effect,
    State,
    search,
)


def linear(count):
    """Newest first; the oldest one's parent is good."""
    return [Commit(sha=f"c{n}", parents=(f"c{n - 1}",)) for n in range(count, 0, -1)]


def random_history(seed, count):
    """Children before parents, with merges; good is c0."""
    draw = random.Random(seed)  # noqa: S311 (a shape, no secret)
    parents = {1: ("c0",)}
    for n in range(2, count + 1):
        back = [f"c{n - 1}"]
        if n > 3 and draw.random() < 0.4:
            back.append(f"c{draw.randrange(1, n - 1)}")
        if n > 3 and draw.random() < 0.3 and n != count:
            back = [f"c{draw.randrange(1, n - 1)}"]
        parents[n] = tuple(dict.fromkeys(back))
    found = {f"c{count}"}
    for n in range(count, 0, -1):  # what the newest one reaches
        if f"c{n}" in found:
            found.update(parents[n])
    return [
        Commit(sha=f"c{n}", parents=parents[n])
        for n in range(count, 0, -1)
        if f"c{n}" in found
    ]


def having(commits, culprit):
    """The commits that have the culprit among themselves and their ancestors."""
    slow = {culprit}
    for commit in reversed(commits):
        if not slow.isdisjoint(commit.parents):
            slow.add(commit.sha)
    return slow


class Meter:
    """Answers by a planted culprit, and counts."""

    def __init__(self, commits, culprit, *, skipped=()):
        self.slow = having(commits, culprit)
        self.skipped = set(skipped)
        self.asked = []

    def __call__(self, commit):
        self.asked.append(commit.sha)
        if commit.sha in self.skipped:
            return Answer(state=State.SKIPPED, text="it does not build")
        state = State.BAD if commit.sha in self.slow else State.GOOD
        return Answer(state=state)


def found(commits, meter):
    told = []
    answer = search(
        commits,
        Answer(state=State.BAD),
        meter,
        tell=lambda step, left: told.append((step.commit.sha, left)),
    )
    assert [sha for sha, _ in told] == meter.asked
    return [commit.sha for commit in answer.suspects]


@pytest.mark.parametrize("count", [1, 2, 3, 16, 17, 100])
def test_every_commit_of_a_line_is_found_in_as_few_steps_as_can_be(count):
    commits = linear(count)
    for culprit in commits:
        meter = Meter(commits, culprit.sha)
        assert found(commits, meter) == [culprit.sha]
        assert len(meter.asked) <= ceil(log2(count))
        assert len(set(meter.asked)) == len(meter.asked)


def test_the_newest_is_known_to_be_bad_and_not_measured_again():
    commits = linear(8)
    for culprit in commits:
        meter = Meter(commits, culprit.sha)
        found(commits, meter)
        assert "c8" not in meter.asked


@pytest.mark.parametrize("seed", range(10))
def test_every_commit_of_a_history_with_merges_is_found(seed):
    commits = random_history(seed, 40)
    for culprit in commits:
        meter = Meter(commits, culprit.sha)
        assert found(commits, meter) == [culprit.sha]
        assert len(meter.asked) <= 2 * ceil(log2(len(commits)))


def test_a_culprit_on_a_side_branch_is_found_there():
    #      c2 - c3
    #     /       \
    #   c1 -- c4 -- c5
    commits = [
        Commit(sha="c5", parents=("c4", "c3")),
        Commit(sha="c4", parents=("c1",)),
        Commit(sha="c3", parents=("c2",)),
        Commit(sha="c2", parents=("c1",)),
        Commit(sha="c1", parents=("c0",)),
    ]
    assert found(commits, Meter(commits, "c2")) == ["c2"]
    assert found(commits, Meter(commits, "c5")) == ["c5"]  # the merge itself


@pytest.mark.parametrize("seed", range(15))
def test_the_culprit_is_always_among_those_left_whatever_is_skipped(seed):
    draw = random.Random(seed)  # noqa: S311 (a shape, no secret)
    commits = random_history(seed, 30)
    culprit = draw.choice(commits).sha
    skipped = {one.sha for one in draw.sample(commits, len(commits) // 3)}
    meter = Meter(commits, culprit, skipped=skipped)
    suspects = found(commits, meter)
    assert culprit in suspects
    # nothing that was measured is left beside it: only what was skipped
    assert set(suspects) - skipped - {suspects[0]} == set()
    if culprit not in skipped and not skipped & set(suspects):
        assert suspects == [culprit]


def test_skipped_commits_that_do_not_matter_cost_no_answer():
    commits = linear(16)
    meter = Meter(commits, "c12", skipped={"c3", "c4", "c8"})
    assert found(commits, meter) == ["c12"]


def test_several_are_left_where_those_between_could_not_be_told():
    commits = linear(6)
    meter = Meter(commits, "c4", skipped={"c3", "c4"})
    assert found(commits, meter) == ["c5", "c4", "c3"]


def test_nothing_can_be_measured_between():
    commits = linear(4)
    meter = Meter(commits, "c2", skipped={"c1", "c2", "c3"})
    assert found(commits, meter) == ["c4", "c3", "c2", "c1"]


def test_it_says_how_many_steps_are_left_at_most():
    bisection = Bisection(linear(16))
    left = [bisection.steps]
    while (commit := bisection.next()) is not None:
        bisection.tell(commit, State.GOOD)
        left.append(bisection.steps)
    assert left == [4, 3, 2, 1, 0]


def test_the_answers_are_kept():
    commits = linear(2)
    answer = search(
        commits, Answer(state=State.BAD), Meter(commits, "c2"), tell=lambda *_: None
    )
    assert answer.answer_of("c1") == Answer(state=State.GOOD)
    assert answer.answer_of("c9") is None


def test_the_worst_effect_is_the_one_to_show():
    small, large = (
        Effect(benchmark="b", statistic="s", ratio=r, low=r, high=r, verdict="v")
        for r in (1.1, 1.3)
    )
    assert Answer(state=State.BAD, effects=(small, large)).worst == large
    assert Answer(state=State.BAD).worst is None
