"""What git knows of the tree that is measured."""

import subprocess
from pathlib import Path


def commit(root: Path) -> str | None:
    """Return HEAD's hash, `+dirty` where tracked files differ; None outside git."""
    head = _git(root, "rev-parse", "--short=12", "HEAD")
    if not head:
        return None
    return f"{head}+dirty" if _git(root, "status", "--porcelain", "-uno") else head


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
