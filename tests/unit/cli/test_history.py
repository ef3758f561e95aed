"""The user's history, and checkouts that borrow from it."""

import subprocess

import pytest

from pytest_perfgate.campaign.repository import Repository
from pytest_perfgate.cli.history import Benchmarks, Checkout, between, resolve
from pytest_perfgate.errors import UsageError

GIT = [
    "git",
    *("-c", "user.name=Ann", "-c", "user.email=a@x"),
    *("-c", "init.defaultBranch=main"),
]


@pytest.fixture
def git(tmp_path):
    root = tmp_path / "project"
    root.mkdir()

    def run(*arguments):
        done = subprocess.run(
            [*GIT, *arguments], check=True, cwd=root, capture_output=True, text=True
        )
        return done.stdout.strip()

    run.root = root
    run("init", "-q")
    for number in range(4):
        (root / "lib.py").write_text(f"N = {number}\n")
        run("add", ".")
        run("commit", "-qm", f"Number {number}")
        run("tag", f"v{number}")
    return run


@pytest.fixture
def repository(git):
    return Repository(git.root)


def test_the_commits_between_are_listed_newest_first(git, repository):
    found = between(repository, *resolve(repository, "v1", "v3"), first_parent=False)
    assert [one.subject for one in found] == ["Number 3", "Number 2"]
    assert [one.sha for one in found] == [git("rev-parse", t) for t in ("v3", "v2")]
    assert found[1].parents == (git("rev-parse", "v1"),)
    assert found[0].author == "Ann <a@x>"
    assert found[0].date == git("log", "-1", "--format=%aI", "v3")


@pytest.mark.parametrize(("first_parent", "count"), [(False, 3), (True, 2)])
def test_merged_branches_are_in_it_or_only_the_main_line(
    git, repository, first_parent, count
):
    git("checkout", "-q", "-b", "side", "v2")
    git("commit", "-q", "--allow-empty", "-m", "On the side")
    git("checkout", "-q", "main")
    git("merge", "-q", "--no-ff", "-m", "Merge", "side")
    found = between(
        repository, *resolve(repository, "v2", "HEAD"), first_parent=first_parent
    )
    assert len(found) == count
    assert len(found[0].parents) == 2


@pytest.mark.parametrize(
    ("good", "bad", "words"),
    [
        ("nowhere", "v3", ["'nowhere'"]),
        ("v1", "nowhere", ["'nowhere'"]),
        ("v3", "main", ["one commit"]),
        ("v3", "v1", ["the other way round", "swap"]),
        ("side", "main", ["parted"]),
        ("alone", "main", ["no commit in common"]),
    ],
)
def test_what_leads_nowhere_is_refused(git, repository, good, bad, words):
    git("checkout", "-q", "-b", "side", "v2")
    git("commit", "-q", "--allow-empty", "-m", "On the side")
    git("checkout", "-q", "--orphan", "alone")
    git("commit", "-q", "--allow-empty", "-m", "Alone")
    with pytest.raises(UsageError) as error:
        resolve(repository, good, bad)
    for word in words:
        assert word in str(error.value)


def state(git):
    """All that a user would miss."""
    return (
        git("status", "--porcelain", "--ignored"),
        git("show-ref"),
        git("worktree", "list", "--porcelain"),
        git("symbolic-ref", "HEAD"),
        sorted(
            path.relative_to(git.root)
            for path in git.root.rglob("*")
            if "objects" not in path.parts
        ),
    )


def test_a_checkout_leaves_no_trace_in_the_users_repository(git, repository, tmp_path):
    (git.root / "lib.py").write_text("N = 'unsaved'\n")
    before = state(git)
    checkout = Checkout(repository, tmp_path / "scratch")
    for number in (3, 1):
        checkout.check_out(git("rev-parse", f"v{number}"))
        assert (checkout.root / "lib.py").read_text() == f"N = {number}\n"
    assert state(git) == before


def test_a_checkout_begins_with_nothing_of_the_one_before(git, repository, tmp_path):
    checkout = Checkout(repository, tmp_path / "scratch")
    checkout.check_out(git("rev-parse", "v2"))
    (checkout.root / "built.so").write_text("")
    (checkout.root / "lib.py").write_text("changed")
    checkout.check_out(git("rev-parse", "v1"))
    assert [path.name for path in checkout.root.iterdir() if path.name != ".git"] == [
        "lib.py"
    ]
    assert (checkout.root / "lib.py").read_text() == "N = 1\n"


def test_a_shallow_clone_is_checked_out_too(git, tmp_path):
    clone = tmp_path / "clone"
    subprocess.run(
        ["git", "clone", "-q", "--depth=2", f"file://{git.root}", str(clone)],
        check=True,
    )
    shallow = Repository(clone)
    checkout = Checkout(shallow, tmp_path / "scratch")
    checkout.check_out(git("rev-parse", "v2"))
    assert Repository(checkout.root).merge_base("HEAD") == git("rev-parse", "v2")


def test_generated_files_of_the_user_are_brought(git, repository, tmp_path):
    (git.root / ".gitignore").write_text("_version.py\n")
    git("add", ".")
    git("commit", "-qm", "Ignore")
    (git.root / "_version.py").write_text("V = 1\n")
    checkout = Checkout(repository, tmp_path / "scratch")
    checkout.check_out(git("rev-parse", "HEAD"))
    checkout.bring_generated()
    assert (checkout.root / "_version.py").read_text() == "V = 1\n"


def test_the_benchmarks_of_one_checkout_are_laid_over_another(
    git, repository, tmp_path
):
    benches = git.root / "benches"
    benches.mkdir()
    (benches / "bench_a.py").write_text("# of bad\n")
    (git.root / "conftest.py").write_text("# of bad\n")
    (git.root / "tool.py").write_text("# of bad\n")
    git("add", ".")
    git("commit", "-qm", "Benchmarks")
    newest = Checkout(repository, tmp_path / "bad")
    newest.check_out(git("rev-parse", "HEAD"))
    older = Checkout(repository, tmp_path / "commit")
    older.check_out(git("rev-parse", "v0"))
    Benchmarks(
        newest,
        rootdir=newest.root,
        inifile=None,
        files=("benches/bench_a.py",),
        extra=("tool.py",),
    ).lay_over(older)
    for name in ("benches/bench_a.py", "conftest.py", "tool.py"):
        assert (older.root / name).read_text() == "# of bad\n"
    assert (older.root / "lib.py").read_text() == "N = 0\n"


@pytest.mark.parametrize("test", ["", "::bench_one[a::b]"])
def test_absolute_paths_of_the_user_are_said_for_the_checkout(
    git, repository, tmp_path, test
):
    checkout = Checkout(repository, tmp_path / "scratch")
    said = checkout.said(f"{git.root / 'lib.py'}{test}")
    assert said == f"{checkout.root / 'lib.py'}{test}"
    for other in (f"lib.py{test}", "-k", f"{tmp_path / 'x.py'}{test}"):
        assert checkout.said(other) == other
