"""What git knows of the tree that is measured."""

import re
import subprocess
from pathlib import Path

from pytest_perfgate.gate.explain import Commit, History

_DIRTY = "+dirty"
_SOURCE = re.compile(
    r"\.(?:c|cc|cfg|cpp|cu|cuh|cxx|h|hpp|ini|pxd|pyi?|pyx|rs|so|toml)\0"
)
"""Files on which a measurement may depend though git does not know them."""
_HASH = re.compile(r"[0-9a-f]{7,64}")
MOST_COMMITS = 10
"""So many commits of a history are listed; the rest is counted."""


def commit(root: Path) -> str | None:
    """Return HEAD's hash, `+dirty` where tracked files differ; None outside git."""
    head = _git(root, "rev-parse", "--short=12", "HEAD")
    if not head:
        return None
    return f"{head}{_DIRTY}" if _git(root, "status", "--porcelain", "-uno") else head


def clean_commit(root: Path) -> str | None:
    """Return HEAD's hash where the tree holds nothing but that commit's source.

    None outside git, where tracked files differ, and where there is source that
    git does not know: two sessions on one commit may then measure two things.
    """
    head = commit(root)
    if head is None or head.endswith(_DIRTY):
        return None
    unknown = _git(root, "ls-files", "-z", "--others", "--exclude-standard", ":/")
    return None if _SOURCE.search(unknown) else head


def file_at(root: Path, commit: str, name: str) -> str:
    """Return a file, relative to `root`, as a commit has it; empty where it has none."""
    return _git(root, "show", f"{commit}:./{name}")


def history(root: Path, since: str | None) -> History:
    """List the commits that HEAD has and another one, a baseline's, has not.

    Parameters
    ----------
    since : as `commit` gave it; it comes from a file, and is not trusted
    """
    if since is None:
        return History(problem="the baseline does not say of which commit it is")
    begin = since.removesuffix(_DIRTY)
    if not _HASH.fullmatch(begin):
        return History(problem=f"the baseline's commit {since!r} is no commit")
    head = commit(root)
    if head is None:
        return History(since=since, problem="this is no git repository")
    count = _git(root, "rev-list", "--count", f"{begin}..HEAD")
    if not count:
        return History(
            since=since,
            problem=f"the baseline's commit {begin} is not in this clone; fetch more of "
            "its history",
        )
    listed = _git(
        root,
        *("log", f"--max-count={MOST_COMMITS}", "--no-show-signature", "--no-color"),
        *("-z", "--format=%h %s", f"{begin}..HEAD"),
    )
    return History(
        since=since,
        commits=tuple(
            Commit(name=name, subject=subject)
            for name, _, subject in (
                text.partition(" ") for text in listed.split("\0") if text
            )
        ),
        count=int(count),
        dirty=head.endswith(_DIRTY),
    )


def _git(root: Path, *arguments: str) -> str:
    try:
        done = subprocess.run(  # noqa: S603 (fixed arguments)
            ["git", "-C", str(root), *arguments],  # noqa: S607 (the user's own git)
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            check=False,
            timeout=30,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
