"""Remove a base tree when the process that needs it is gone, however it went.

A script of its own, started beside the manager and in a session of its own, so
that neither Ctrl-C nor a SIGKILL of the manager keeps it from its work: it
waits for the end of a pipe that only the manager holds. It imports nothing but
the standard library, and is run by its path.
"""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable

_TRIES = 40
_PAUSE_S = 0.25
"""A worker that dies with the manager may still be writing: ten seconds."""


def clean(
    private: str,
    tree: str,
    common: str,
    *,
    pause: Callable[[float], None] = time.sleep,
) -> bool:
    """Remove a checkout, what git knows of it, and the folder around it.

    Parameters
    ----------
    private : the folder around the checkout
    tree : the checkout; it need not exist
    common : git's own folder of the repository

    Returns
    -------
    bool
        Whether nothing is left.
    """
    for attempt in range(_TRIES):
        if attempt:
            pause(_PAUSE_S)
        _remove(tree)
        if not os.path.lexists(tree):
            # last what says that this folder is to be removed: for another session
            _remove(private)
        if not os.path.lexists(private):
            break
    forget(tree, common)
    return not os.path.lexists(private)


def _remove(folder: str) -> None:
    # a set-up may have made folders read-only; links are not followed
    for place, _, _ in os.walk(folder):
        with contextlib.suppress(OSError):
            os.chmod(place, 0o700)
    shutil.rmtree(folder, ignore_errors=True)


def obey(order: str | bytes) -> bool:
    """Clean as a JSON object says that names `private`, `tree` and `common`."""
    said = json.loads(order)
    return clean(said["private"], said["tree"], said["common"])


def forget(tree: str, common: str) -> None:
    """Take a checkout that is gone out of git's list; others are left alone."""
    with contextlib.suppress(OSError):
        subprocess.run(  # noqa: S603 (fixed arguments)
            ["git", "--git-dir", common, "worktree", "remove", "--force", tree],  # noqa: S607 (the user's own git)
            check=False,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
        )


def main() -> None:
    """Wait for the end of standard input; then clean as standard input said."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        # whoever ends everything ends the manager too, and that is the sign
        signal.signal(number, signal.SIG_IGN)
    obey(sys.stdin.buffer.read())  # ends when the manager does


if __name__ == "__main__":
    main()
