"""The user's git repository, and a second checkout of it."""

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from pytest_perfgate.errors import (
    NotARepository,
    ShallowClone,
    UnknownRef,
    UnrelatedHistories,
    WorktreeFailed,
)

_ABOUT_ANOTHER = (
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_DIR",
    "GIT_INDEX_FILE",
    "GIT_NAMESPACE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_PREFIX",
    "GIT_WORK_TREE",
)
"""Set inside hooks: git would look at the hook's repository, not at ours."""
_QUIET = (
    ("core.hooksPath", os.devnull),  # a checkout would run the user's post-checkout
    ("core.fsmonitor", "false"),
    ("advice.detachedHead", "false"),
    # pointers stay pointers: nothing is downloaded, and git-lfs may be missing
    ("filter.lfs.smudge", ""),
    ("filter.lfs.process", ""),
    ("filter.lfs.required", "false"),
)
_FETCH = (
    "fetch the whole history: `fetch-depth: 0` for actions/checkout, or "
    "`git fetch --unshallow`"
)
_SHORT = 12


def outside_of_hooks(own: Mapping[str, str]) -> dict[str, str]:
    """Return an environment in which git looks at the folder it is started in."""
    return {name: value for name, value in own.items() if name not in _ABOUT_ANOTHER}


def git_environment() -> dict[str, str]:
    """Return an environment in which git asks nothing, locks nothing, says it in English."""
    quiet = {
        "GIT_LFS_SKIP_SMUDGE": "1",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_TERMINAL_PROMPT": "0",
        "LC_ALL": "C",
    }
    return outside_of_hooks(os.environ) | quiet


class Repository:
    """The repository a folder belongs to."""

    def __init__(self, folder: Path) -> None:
        """Find it.

        Raises
        ------
        NotARepository
            Where there is none, or git refuses to look at it.
        """
        self.root = folder
        done = self._run("rev-parse", "--show-toplevel")
        if done.returncode or not done.stdout.strip():
            raise NotARepository(
                f"{folder} is in no git repository that can be read, and the base's "
                f"code is taken from git ({_last_line(done) or 'no working tree'}); run "
                "it in a clone, or compare with stored baselines"
            )
        self.root = Path(done.stdout.rstrip("\n")).resolve()
        common = self.ask("rev-parse", "--git-common-dir").rstrip("\n")
        self.common = (self.root / common).resolve()  # relative, in a plain clone

    # -- which commit

    def merge_base(self, ref: str) -> str:
        """Return the commit at which HEAD left the line of a ref.

        Raises
        ------
        UnknownRef, ShallowClone, UnrelatedHistories
        """
        tip = self.commit(ref)
        if tip is None:
            raise UnknownRef(self.unknown_ref(ref))
        if self.commit("HEAD") is None:
            raise UnknownRef("HEAD has no commit yet; commit before you compare")
        done = self._run("merge-base", "HEAD", tip)
        if done.returncode == 0:
            return done.stdout.split()[0]
        if self._is_shallow():
            raise ShallowClone(
                f"this clone of {self.root} is shallow: the commit at which HEAD left "
                f"{ref!r} is not in it; {_FETCH}"
            )
        raise UnrelatedHistories(
            f"HEAD and {ref!r} have no commit in common; name the ref that HEAD was "
            "branched from"
        )

    def commit(self, ref: str) -> str | None:
        """Return the commit that a ref names; None where there is none."""
        if ref.startswith("-"):  # to git that would be an option
            return None
        done = self._run("rev-parse", "--verify", "--quiet", f"{ref}^{{commit}}")
        return done.stdout.strip() if done.returncode == 0 else None

    def unknown_ref(self, ref: str) -> str:
        """Say that a ref names no commit, and what may have been meant."""
        text = f"git knows no commit {ref!r} in {self.root}"
        remotes = self.ask("remote").split()
        there = [f"{remote}/{ref}" for remote in remotes]
        known = next((name for name in there if self.commit(name)), None)
        if known:
            return f"{text}; did you mean {known!r}?"
        if self._is_shallow():
            return f"{text}, and the clone is shallow; {_FETCH}"
        return f"{text}; name a branch, tag or commit, or fetch it first"

    def _is_shallow(self) -> bool:
        return self.ask("rev-parse", "--is-shallow-repository").strip() == "true"

    def is_ancestor(self, older: str, newer: str) -> bool:
        """Tell whether a commit is in the history of another, or that one itself."""
        return self._run("merge-base", "--is-ancestor", older, newer).returncode == 0

    def common_ancestor(self, one: str, other: str) -> str | None:
        """Return the commit at which two lines parted; None where they never met."""
        done = self._run("merge-base", one, other)
        return done.stdout.split()[0] if done.returncode == 0 else None

    def head(self) -> str | None:
        return self.commit("HEAD")

    def short(self, commit: str) -> str:
        return self.ask("rev-parse", f"--short={_SHORT}", commit).strip()

    # -- what is in it

    def uncommitted(self) -> tuple[str, ...]:
        """Return the files that differ from HEAD, new Python files among them."""
        changed = self._list("diff", "--name-only", "-z", "HEAD", "--")
        new = self._list(
            "ls-files", "-z", "--others", "--exclude-standard", "--", "*.py"
        )
        return (*changed, *new)

    def ignored(self) -> tuple[str, ...]:
        """Return what git ignores; a wholly ignored folder once, with a slash."""
        how = ("--others", "--ignored", "--exclude-standard", "--directory")
        return self._list("ls-files", "-z", *how)

    def submodules(self, commit: str) -> tuple[str, ...]:
        entries = self._list("ls-tree", "-r", "-z", commit)
        return tuple(
            entry.partition("\t")[2] for entry in entries if entry.startswith("160000 ")
        )

    def lfs_files(self, commit: str, tree: Path) -> tuple[str, ...]:
        """Return the files of a checkout that are pointers to what git-lfs keeps."""
        said = self._run(
            "grep", "-q", "-e", "filter=lfs", commit, "--", ":(glob)**/.gitattributes"
        )
        if said.returncode:
            return ()
        names = self._list("ls-tree", "-r", "-z", "--name-only", commit)
        return tuple(name for name in names if _is_pointer(tree / name))

    # -- a second checkout

    def add_worktree(self, tree: Path, commit: str) -> None:
        """Check a commit out into a folder of its own.

        Raises
        ------
        WorktreeFailed
            With what git said.
        """
        done = self._run("worktree", "add", "--quiet", "--detach", str(tree), commit)
        if done.returncode:
            raise WorktreeFailed(
                f"git cannot check out {commit[:_SHORT]} into {tree}: "
                f"{_last_lines(done) or f'exit code {done.returncode}'}"
            )

    def worktrees(self) -> tuple[Path, ...]:
        """Return where git believes to have checkouts; some may be gone."""
        # -z is younger than the git of many machines
        lines = self.ask("worktree", "list", "--porcelain").split("\n")
        start = "worktree "
        return tuple(Path(one[len(start) :]) for one in lines if one.startswith(start))

    # -- asking git

    def _list(self, *arguments: str) -> tuple[str, ...]:
        return tuple(filter(None, self.ask(*arguments).split("\0")))

    def ask(self, *arguments: str) -> str:
        """Return what git says.

        Raises
        ------
        WorktreeFailed
            With what it says where it fails.
        """
        done = self._run(*arguments)
        if done.returncode:
            raise WorktreeFailed(
                f"`git {' '.join(arguments)}` failed in {self.root}: {_last_lines(done)}"
            )
        return done.stdout

    def _run(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        settings = [
            word for name, value in _QUIET for word in ("-c", f"{name}={value}")
        ]
        try:
            return subprocess.run(  # noqa: S603 (our own arguments; no ref begins with a dash)
                ["git", "-C", str(self.root), *settings, *arguments],  # noqa: S607 (the user's own git)
                capture_output=True,
                text=True,
                errors="surrogateescape",
                check=False,
                env=git_environment(),
                stdin=subprocess.DEVNULL,
            )
        except OSError as error:
            raise NotARepository(
                f"git cannot be run ({error}), and the base's code is taken from git; "
                "install git, or compare with stored baselines"
            ) from error


def _is_pointer(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(40).startswith(b"version https://git-lfs.github.com/")
    except OSError:
        return False


def _last_lines(done: "subprocess.CompletedProcess[str]", count: int = 5) -> str:
    lines: Sequence[str] = [line for line in done.stderr.splitlines() if line.strip()]
    return "\n".join(lines[-count:])


def _last_line(done: "subprocess.CompletedProcess[str]") -> str:
    return _last_lines(done, 1)
