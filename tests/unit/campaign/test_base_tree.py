"""The base tree: which commit, what lies in it, and that nothing of it is left."""

import os
import select
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_perfgate.campaign import janitor
from pytest_perfgate.campaign.base_tree import (
    BaseRequest,
    open_base_tree,
    private_caches,
)
from pytest_perfgate.errors import (
    BasePythonUnusable,
    BaseSetupFailed,
    NotARepository,
    ShallowClone,
    UnknownRef,
    UnrelatedHistories,
    UsageError,
    WorktreeFailed,
)

BENCH = "import lib\n\n\ndef bench_one(perfgate):\n    perfgate(lib.work)\n"
LIBRARY = {
    "src/lib/__init__.py": "def work():\n    return 'base'\n",
    "pyproject.toml": "[tool.pytest.ini_options]\npythonpath = ['src']\n",
    "benches/bench_a.py": BENCH,
}


@pytest.fixture
def checkout(make_checkout):
    """A repository whose HEAD is one commit ahead of `main`."""
    made = make_checkout().write(LIBRARY)
    made.commit("base")
    made.git("checkout", "-q", "-b", "topic")
    made.write({"src/lib/__init__.py": "def work():\n    return 'candidate'\n"})
    made.commit("candidate")
    return made


@pytest.fixture
def open_tree(tmp_path):
    """Open base trees of a checkout in a folder of their own, and close them."""
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    opened = []

    def opens(checkout, ref="main", **given):
        root = checkout.path
        request = {
            "ref": ref,
            "rootdir": root,
            "start": root,
            "inifile": root / "pyproject.toml",
            "files": (root / "benches/bench_a.py",),
        }
        tree = open_base_tree(BaseRequest(**request | given), temporary=temporary)
        opened.append(tree)
        return tree

    yield opens
    for tree in opened:
        tree.close()
    assert list(temporary.iterdir()) == []


def test_it_is_the_merge_base_and_the_candidates_benchmarks(checkout, open_tree):
    base = checkout.git("rev-parse", "main")
    checkout.git("checkout", "-q", "main")
    checkout.write({"later.txt": "main moved on"}).commit()
    checkout.git("checkout", "-q", "topic")
    checkout.write({"benches/bench_a.py": BENCH + "# new\n"}).commit()
    tree = open_tree(checkout)
    assert tree.commit == base
    assert not (tree.root / "later.txt").exists()
    assert "'base'" in (tree.root / "src/lib/__init__.py").read_text()
    assert (tree.root / "benches/bench_a.py").read_text().endswith("# new\n")
    assert tree.overlaid == ("benches/", "pyproject.toml")
    assert tree.notes == ()


def test_nothing_is_left_and_nothing_of_the_users_changed(checkout, open_tree):
    before = checkout.state()
    tree = open_tree(checkout)
    assert tree.root.parent.stat().st_mode & 0o777 == 0o700
    assert str(tree.root) in checkout.git("worktree", "list")
    tree.close()
    tree.close()
    assert not tree.root.parent.exists()
    assert checkout.state() == before


def test_it_is_removed_when_the_session_fails(checkout, open_tree):
    class Failure(Exception):
        pass

    tree = open_tree(checkout)
    with pytest.raises(Failure), tree:
        raise Failure
    assert not tree.root.exists()
    assert "temporary" not in checkout.git("worktree", "list")


def test_it_is_removed_whatever_rights_a_setup_took(checkout, open_tree):
    tree = open_tree(checkout, setup="mkdir shut && touch shut/it && chmod 500 shut")
    tree.close()
    assert not tree.root.exists()


# -- no base


def test_outside_git(tmp_path, open_tree, make_checkout):
    class Plain:
        path = tmp_path / "plain"

    Plain.path.mkdir()
    with pytest.raises(NotARepository, match="plain is in no git repository"):
        open_tree(Plain)


def test_without_git(checkout, open_tree, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NotARepository, match="git cannot be run"):
        open_tree(checkout)


def test_an_unknown_ref(checkout, open_tree):
    with pytest.raises(UnknownRef, match=r"no commit 'nosuch' in .*; name a br"):
        open_tree(checkout, "nosuch")


def test_a_ref_is_no_option(checkout, open_tree):
    with pytest.raises(UnknownRef, match="'--all'"):
        open_tree(checkout, "--all")


def test_a_branch_that_only_the_remote_has(
    checkout, make_checkout, tmp_path, open_tree
):
    checkout.git("branch", "stable", "main")
    clone = make_checkout("clone")
    clone.git("remote", "add", "upstream", str(checkout.path))
    clone.git("fetch", "-q", "upstream")
    clone.git("checkout", "-q", "-b", "mine", "upstream/topic")
    with pytest.raises(UnknownRef, match="did you mean 'upstream/stable'"):
        open_tree(clone, "stable")


@pytest.mark.parametrize("ref", ["origin/main", "v1"])
def test_a_shallow_clone(checkout, make_checkout, open_tree, ref):
    clone = make_checkout("clone")
    clone.git("remote", "add", "origin", f"file://{checkout.path}")
    branches = [f"{name}:refs/remotes/origin/{name}" for name in ("main", "topic")]
    clone.git("fetch", "-q", "--depth=1", "origin", *branches)
    clone.git("checkout", "-q", "-b", "mine", "origin/topic")
    error = ShallowClone if ref == "origin/main" else UnknownRef
    with pytest.raises(error, match=r"shallow(?s:.*)fetch-depth: 0") as caught:
        open_tree(clone, ref)
    assert isinstance(caught.value, UsageError)


def test_unrelated_histories(checkout, open_tree):
    checkout.git("checkout", "-q", "--orphan", "other")
    checkout.commit()
    checkout.git("checkout", "-q", "topic")
    with pytest.raises(UnrelatedHistories, match="HEAD and 'other' have no commit in"):
        open_tree(checkout, "other")


def test_no_commit_yet(make_checkout, checkout, open_tree):
    young = make_checkout("young")
    young.git("fetch", "-q", str(checkout.path), "main:main", "--update-head-ok")
    young.git("checkout", "-q", "--orphan", "nothing")
    with pytest.raises(UnknownRef, match="HEAD has no commit yet"):
        open_tree(young)


def test_the_checkout_fails(checkout, open_tree):
    """git's own words are shown, and nothing is left behind."""
    commit = checkout.git("rev-parse", "main:src/lib/__init__.py")
    (checkout.path / ".git/objects" / commit[:2] / commit[2:]).unlink()
    with pytest.raises(WorktreeFailed, match=r"(?s)cannot check out .*unable to read"):
        open_tree(checkout)


def test_a_hook_has_not_the_last_word_on_the_repository(
    checkout, make_checkout, open_tree, monkeypatch
):
    """Inside a hook git names the repository to all its children."""
    other = make_checkout("other")
    monkeypatch.setenv("GIT_DIR", str(other.path / ".git"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(other.path / ".git/index"))
    assert open_tree(checkout).root.name == "project"


def test_a_worktree_of_the_users_is_a_candidate_too(checkout, open_tree, tmp_path):
    checkout.git("checkout", "-q", "main")
    checkout.git("worktree", "add", "-q", str(tmp_path / "second"), "topic")

    class Second:
        path = tmp_path / "second"

    tree = open_tree(Second)
    assert "'base'" in (tree.root / "src/lib/__init__.py").read_text()
    tree.close()
    listed = checkout.git("worktree", "list", "--porcelain")
    assert listed.count("worktree ") == 2


# -- what is in it


def test_no_hook_of_the_users_runs(checkout, open_tree, tmp_path):
    hook = checkout.path / ".git/hooks/post-checkout"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch '{tmp_path}/ran'\n")
    hook.chmod(0o755)
    tree = open_tree(checkout)
    assert (tree.root / "src").exists()
    assert not (tmp_path / "ran").exists()


def test_uncommitted_changes_are_named(checkout, open_tree):
    checkout.write({"src/lib/__init__.py": "def work():\n    return 'dirty'\n"})
    (note,) = open_tree(checkout).notes
    assert note == (
        "the candidate has uncommitted changes, and is measured with them: "
        "src/lib/__init__.py"
    )


def test_the_same_commit_twice_is_named(checkout, open_tree):
    (note,) = open_tree(checkout, "topic").notes
    assert note.startswith("HEAD is itself the base (")
    assert note.endswith("the same code is measured on both sides")


def test_generated_python_is_copied_and_named(checkout, open_tree):
    checkout.write({".gitignore": "_version.py\n_gen/\nbuild/\nscratch.py\n"}).commit()
    checkout.write(
        {
            "src/lib/_version.py": "version = '1'\n",
            "src/lib/_gen/pb.py": "",
            "src/lib/_gen/data.bin": "",
            "build/lib/x.py": "",
            "new/scratch.py": "",
        }
    )
    tree = open_tree(checkout)
    assert (tree.root / "src/lib/_version.py").read_text() == "version = '1'\n"
    assert not (tree.root / "build").exists()
    assert not (tree.root / "new").exists()
    (note,) = tree.notes
    assert note.endswith(
        "copied into the base tree: src/lib/_gen/pb.py, src/lib/_version.py"
    )
    assert "src/lib/_version.py" in tree.overlaid


def test_what_the_setup_generates_stays(checkout, open_tree):
    checkout.write({".gitignore": "_version.py\n"}).commit()
    checkout.write({"src/lib/_version.py": "version = 'candidate'\n"})
    tree = open_tree(checkout, setup="echo \"version = 'base'\" >src/lib/_version.py")
    assert "base" in (tree.root / "src/lib/_version.py").read_text()
    assert tree.notes == ()


def test_compiled_files_are_refused(checkout, open_tree):
    checkout.write({".gitignore": "*.so\n"}).commit()
    checkout.write({"src/lib/_core.so": "", "src/lib/_core.abi3.so": ""})
    tree = open_tree(checkout)
    assert not list(tree.root.rglob("*.so"))
    (note,) = tree.notes
    assert "--perfgate-base-setup: src/lib/_core.abi3.so, src/lib/_core.so" in note


def test_submodules_are_said_to_be_empty(checkout, make_checkout, open_tree):
    part = make_checkout("part")
    part.write({"x.txt": ""}).commit()
    checkout.git("checkout", "-q", "main")
    url = str(part.path)
    checkout.git("-c", "protocol.file.allow=always", "submodule", "add", url, "part")
    checkout.commit()
    checkout.git("checkout", "-q", "-b", "next")
    checkout.write({"src/lib/new.py": ""}).commit()
    tree = open_tree(checkout)
    assert list((tree.root / "part").iterdir()) == []
    assert any(n.startswith("submodules are empty") for n in tree.notes)
    assert tree.notes[-1].endswith(": part")


def test_pointers_of_large_files_are_said_to_be_pointers(checkout, open_tree):
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n"
    checkout.git("checkout", "-q", "main")
    attributes = "*.bin filter=lfs diff=lfs merge=lfs -text\n"
    checkout.write({".gitattributes": attributes, "src/w.bin": pointer}).commit()
    checkout.git("checkout", "-q", "-b", "next")
    checkout.commit()
    # as `git lfs install` leaves it, on a machine that lacks git-lfs
    checkout.git("config", "filter.lfs.process", "git-lfs-is-not-here filter-process")
    checkout.git("config", "filter.lfs.smudge", "git-lfs-is-not-here smudge -- %f")
    checkout.git("config", "filter.lfs.required", "true")
    (note,) = open_tree(checkout).notes
    assert note.startswith("files of git-lfs are pointers")
    assert note.endswith(": src/w.bin")


# -- the set-up and its interpreter


def test_the_setup_runs_in_the_base_before_the_overlay(checkout, open_tree):
    checkout.write({"benches/bench_a.py": "# candidate\n"})
    tree = open_tree(checkout, setup="cat benches/bench_a.py src/lib/*.py >seen")
    seen = (tree.root / "seen").read_text()
    assert "'base'" in seen
    assert "# candidate" not in seen


def test_the_setup_of_a_session_started_elsewhere_runs_in_the_base(
    checkout, open_tree, tmp_path, monkeypatch
):
    monkeypatch.setenv("GIT_DIR", "/nowhere")  # as in a hook
    setup = "touch here && git rev-parse HEAD >commit"
    tree = open_tree(checkout, setup=setup, start=tmp_path)
    assert (tree.root / "here").exists()
    assert (tree.root / "commit").read_text().strip() == tree.commit


def test_a_janitor_that_cannot_be_started(checkout, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "executable", "/no/python")
    root = checkout.path
    request = BaseRequest(ref="main", rootdir=root, start=root, inifile=None, files=())
    (tmp_path / "there").mkdir()
    with pytest.raises(WorktreeFailed, match=r"/no/python.*TMPDIR"):
        open_base_tree(request, temporary=tmp_path / "there")
    assert list((tmp_path / "there").iterdir()) == []


def test_a_setup_that_fails(checkout, open_tree):
    with pytest.raises(
        BaseSetupFailed, match=r"(?s)exit code 3 .*base tree.*\nno gcc$"
    ):
        open_tree(checkout, setup="echo no gcc >&2; exit 3")
    assert "temporary" not in checkout.git("worktree", "list")


def test_a_setup_that_installs_the_base_over_the_candidate(
    checkout, open_tree, tmp_path, monkeypatch
):
    """As `pip install .` does in the environment that runs pytest."""
    site = tmp_path / "site"
    (site / "lib-1.dist-info").mkdir(parents=True)
    (site / "lib-1.dist-info/METADATA").write_text("Name: lib\n")
    monkeypatch.syspath_prepend(str(site))
    url = """printf '{"url": "file://%s"}' "$PWD" """
    setup = f"{url} >{site}/lib-1.dist-info/direct_url.json"
    with pytest.raises(BaseSetupFailed, match="installed the base's lib into the cand"):
        open_tree(checkout, setup=setup)


def test_an_interpreter_that_is_none(checkout, open_tree):
    with pytest.raises(BasePythonUnusable, match="'/no/python' cannot be run"):
        open_tree(checkout, python="/no/python")


def test_an_interpreter_without_this_package(checkout, open_tree):
    setup = (
        f"printf '#!/bin/sh\\nexec {sys.executable} -S \"$@\"\\n' >py && chmod +x py"
    )
    with pytest.raises(BasePythonUnusable, match="install pytest-perfgate=="):
        open_tree(checkout, setup=setup, python="./py")


def test_an_interpreter_that_the_setup_makes(checkout, open_tree):
    setup = f"printf '#!/bin/sh\\nexec {sys.executable} \"$@\"\\n' >py && chmod +x py"
    tree = open_tree(checkout, setup=setup, python="./py")
    assert tree.command(("python", "-m", "pytest"))[0] == str(tree.root / "py")


# -- where it lies, and how it goes


def test_a_temporary_folder_inside_the_repository_is_not_taken(checkout):
    root = checkout.path
    request = BaseRequest(ref="main", rootdir=root, start=root, inifile=None, files=())
    (root / "tmp").mkdir()
    with open_base_tree(request, temporary=root / "tmp") as tree:
        assert not tree.root.is_relative_to(root)


KILLED = """
import os, signal, sys
from pathlib import Path
from pytest_perfgate.campaign.base_tree import BaseRequest, open_base_tree

root, temporary = map(Path, sys.argv[1:])
request = BaseRequest(ref="main", rootdir=root, start=root, inifile=None, files=())
tree = open_base_tree(request, temporary=temporary)
print(tree._custody._janitor.pid, tree.root, flush=True)
sys.stdin.read()
"""


@pytest.fixture
def manager(checkout, tmp_path):
    """A process that holds a base tree: itself, its janitor's pidfd, and the tree."""
    if not hasattr(os, "pidfd_open"):
        pytest.skip("only Linux tells of the end of a process that is not a child")
    temporary = tmp_path / "held"
    temporary.mkdir()
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, checkout.path, temporary],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        pid, tree = process.stdout.readline().split()
        descriptor = os.pidfd_open(int(pid))
        yield process, descriptor, Path(tree)
        os.close(descriptor)


def ended(descriptor):
    return bool(select.select([descriptor], [], [], 30)[0])


@pytest.mark.parametrize("number", ["SIGKILL", "SIGTERM", "SIGINT"])
def test_it_goes_with_its_session_however_that_ends(checkout, manager, number):
    process, sweeper, tree = manager
    assert tree.exists()
    process.send_signal(getattr(signal, number))
    process.wait()
    assert ended(sweeper)
    assert not tree.parent.exists()
    assert not (checkout.path / ".git/worktrees").exists()


def test_what_a_dead_machine_left_is_removed_by_the_next_session(
    checkout, manager, open_tree
):
    process, sweeper, tree = manager
    signal.pidfd_send_signal(sweeper, signal.SIGKILL)
    process.kill()
    process.wait()
    assert ended(sweeper)
    assert tree.exists()
    root = checkout.path
    request = BaseRequest(ref="main", rootdir=root, start=root, inifile=None, files=())
    with open_base_tree(request, temporary=tree.parent.parent) as mine:
        assert mine.root.exists()
        assert not tree.parent.exists()
        assert str(tree) not in checkout.git("worktree", "list")


def test_what_git_remembers_of_a_cleared_temporary_folder_is_removed(
    checkout, manager, open_tree
):
    process, sweeper, tree = manager
    signal.pidfd_send_signal(sweeper, signal.SIGKILL)
    process.kill()
    process.wait()
    assert ended(sweeper)
    shutil.rmtree(tree.parent)
    assert str(tree) in checkout.git("worktree", "list")
    open_tree(checkout)
    assert str(tree) not in checkout.git("worktree", "list")


def test_a_worker_that_still_writes_is_waited_for(tmp_path, monkeypatch):
    """It dies with the manager, but perhaps a moment after it."""
    private, tree = tmp_path / "private", tmp_path / "private/tree"
    tree.mkdir(parents=True)
    remove = janitor.shutil.rmtree
    busy = iter([True, True, False, False])
    waited = []

    def removes(folder, **given):
        if not next(busy):
            remove(folder, **given)

    monkeypatch.setattr(janitor.shutil, "rmtree", removes)
    assert janitor.clean(str(private), str(tree), str(tmp_path), pause=waited.append)
    assert len(waited) == 2
    assert not private.exists()


def test_what_cannot_be_removed_is_left_for_the_next_session(tmp_path, monkeypatch):
    private, tree = tmp_path / "private", tmp_path / "private/tree"
    tree.mkdir(parents=True)
    (private / "alive").write_text("{}")
    monkeypatch.setattr(janitor.shutil, "rmtree", lambda *_, **__: None)
    waited = []
    common = str(tmp_path)
    assert not janitor.clean(str(private), str(tree), common, pause=waited.append)
    assert 0 < sum(waited) < 60
    assert (private / "alive").exists()


def test_what_is_in_use_or_another_programs_stays(checkout, manager, tmp_path):
    _, _, tree = manager
    checkout.git("worktree", "add", "-q", "--detach", str(tmp_path / "users"))
    root = checkout.path
    request = BaseRequest(ref="main", rootdir=root, start=root, inifile=None, files=())
    with open_base_tree(request, temporary=tree.parent.parent):
        assert tree.exists()
    assert tree.exists()
    assert (tmp_path / "users").exists()


def test_a_killed_janitor_is_done_without(checkout, open_tree):
    tree = open_tree(checkout)
    tree._custody._janitor.kill()
    tree.close()
    assert not tree.root.parent.exists()
    assert not (checkout.path / ".git/worktrees").exists()


def test_caches_are_private(tmp_path):
    ours = private_caches(tmp_path / "a")
    theirs = private_caches(tmp_path / "b")
    assert ours.keys() == theirs.keys() >= {"TRITON_CACHE_DIR", "CUDA_CACHE_PATH"}
    assert not set(ours.values()) & set(theirs.values())
