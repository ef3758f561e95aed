"""What git knows of the tree that is measured."""

import re
import subprocess
from pathlib import Path

_DIRTY = "+dirty"
_SOURCE = re.compile(
    r"\.(?:c|cc|cfg|cpp|cu|cuh|cxx|h|hpp|ini|pxd|pyi?|pyx|rs|so|toml)\0"
)
"""Files on which a measurement may depend though git does not know them."""


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


def _git(root: Path, *arguments: str) -> str:
    try:
        done = subprocess.run(  # noqa: S603 (fixed arguments)
            ["git", "-C", str(root), *arguments],  # noqa: S607 (the user's own git)
            capture_output=True,
            text=True,
            check=False,
            timeout=30,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
