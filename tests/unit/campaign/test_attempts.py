"""The same commit judged again has a past; anything else has none."""

import subprocess
from dataclasses import replace

import pytest

from pytest_perfgate.campaign import git
from pytest_perfgate.campaign.attempts import Earlier, PastAttempts
from pytest_perfgate.model import RunStatistic, RunSummary
from pytest_perfgate.store.attempts import FILE, Evidence

RUN = RunSummary(
    iterations=10, statistics={"latency": {"median": RunStatistic(value=1.0)}}
)
RICH = RunSummary(
    iterations=10,
    statistics={
        "latency": {
            "median": RunStatistic(value=1.0),
            "p90": RunStatistic(value=2.0),
        }
    },
)
FOUND = {"b": Evidence(conditions="c", attempts=1, runs=(RUN,) * 3, fresh=(RUN,))}


@pytest.fixture
def tree(tmp_path):
    """A repository with one commit."""
    run = ["git", "-C", str(tmp_path), "-c", "user.name=n", "-c", "user.email=e@x"]
    (tmp_path / "code.py").write_text("x = 1\n")
    for command in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "one"]):
        subprocess.run([*run, *command], check=True)
    return tmp_path


def past(root, *, counting=True, hardware="cpu"):
    found = PastAttempts(root, hardware=hardware, counting=counting)
    found.begin()
    return found


def remembered(root, **kind):
    return past(root, **kind).of("b", "c")


def test_what_was_measured_comes_back_under_the_same_conditions(tree):
    past(tree).keep(FOUND)
    again = past(tree)
    assert again.counting
    assert again.of("b", "c") == Earlier(attempts=1, runs=(RUN,) * 3, fresh=(RUN,))
    assert again.of("b", "c").evidence == (RUN,) * 4
    assert again.of("b", "other") == Earlier()
    assert again.of("other", "c") == Earlier()
    assert remembered(tree, hardware="gpu") == Earlier()


def test_the_memory_makes_no_tree_dirty(tree):
    past(tree).keep(FOUND)
    assert git.clean_commit(tree) is not None


@pytest.mark.parametrize(
    ("name", "text"),
    [("code.py", "x = 2\n"), ("new.py", ""), ("deep/er/kernel.cu", "")],
    ids=["changed", "unknown", "deep"],
)
def test_a_tree_that_is_not_the_commit_has_no_past_and_leaves_none(tree, name, text):
    past(tree).keep(FOUND)
    before = (tree / FILE).read_text()
    (tree / name).parent.mkdir(parents=True, exist_ok=True)
    (tree / name).write_text(text)
    changed = past(tree)
    assert not changed.counting
    assert changed.of("b", "c") == Earlier()
    changed.keep({"b": replace(FOUND["b"], attempts=9)})
    assert (tree / FILE).read_text() == before


def test_files_that_no_measurement_depends_on_do_not_matter(tree):
    (tree / "junit.xml").write_text("")
    (tree / "baselines.json").write_text("")
    assert past(tree).counting


def test_outside_git_there_is_no_past(tmp_path):
    found = past(tmp_path)
    found.keep(FOUND)
    assert not found.counting
    assert not (tmp_path / FILE).exists()


def test_a_session_that_proves_nothing_of_its_commit_neither_reads_nor_writes(tree):
    past(tree).keep(FOUND)
    silent = past(tree, counting=False)
    assert silent.of("b", "c") == Earlier()
    silent.keep({"b": replace(FOUND["b"], attempts=9)})
    assert remembered(tree).attempts == 1


def test_a_tree_that_changed_while_it_was_measured_is_not_remembered(tree):
    found = past(tree)
    (tree / "code.py").write_text("x = 2\n")
    found.keep(FOUND)
    assert not (tree / FILE).exists()


def test_nothing_found_writes_nothing(tree):
    past(tree).keep({})
    assert not (tree / FILE).exists()


def test_a_corrupt_file_is_told_in_one_line_and_begun_anew(tree):
    past(tree).keep(FOUND)
    (tree / FILE).write_text("{")
    found = past(tree)
    assert found.problem.startswith("earlier attempts are not counted: ")
    assert "attempts.json" in found.problem
    assert "\n" not in found.problem
    found.keep(FOUND)
    assert remembered(tree).attempts == 1


def test_a_file_that_cannot_be_written_is_told(tree):
    found = past(tree)
    (tree / FILE).mkdir(parents=True)
    found.keep(FOUND)
    assert found.problem.startswith("this attempt is not remembered: ")


def test_runs_that_lack_what_is_judged_now_do_not_count():
    earlier = Earlier(attempts=2, runs=(RUN, RICH), fresh=(RUN,))
    assert earlier.like((RICH, RICH)) == Earlier(attempts=2, runs=(RICH,))
    # one new run that lacks it is the gate's business, not a reason to drop others
    assert earlier.like((RICH, RUN)) == earlier
    assert earlier.like(()) == earlier
