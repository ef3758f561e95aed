"""A private folder that does not outlive the process that made it."""

import contextlib
import fcntl
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from pytest_perfgate.campaign import janitor
from pytest_perfgate.campaign.repository import Repository, git_environment
from pytest_perfgate.errors import WorktreeFailed

_ALIVE = "alive"
"""Locked as long as the session or its janitor lives; says what to remove."""
_PATIENCE_S = 60.0
_ELSEWHERE = ("/tmp", "/var/tmp")  # noqa: S108 (a private folder is made in it)


class Custody:
    """A folder that only this user can read, and the janitor that removes it.

    The janitor is there before the checkout is: there is no moment at which a
    SIGKILL of this process leaves a checkout behind.
    """

    def __init__(self, repository: Repository, *, temporary: Path | None) -> None:
        """Make the folder, and start the janitor.

        Raises
        ------
        WorktreeFailed
            Where no folder can be made outside the repository.
        """
        place = _place(repository, temporary)
        with contextlib.ExitStack() as undo:
            try:
                self.private = Path(tempfile.mkdtemp(prefix=_prefix(), dir=place))
                undo.callback(shutil.rmtree, self.private, ignore_errors=True)
                self.private = self.private.resolve()
                # named like the candidate's: a checkout may itself be a package
                self.tree = self.private / (repository.root.name or "tree")
                self._order = json.dumps(
                    {
                        "private": str(self.private),
                        "tree": str(self.tree),
                        "common": str(repository.common),
                    }
                )
                self._alive: int | None = _claim(self.private / _ALIVE, self._order)
                self._janitor, self._line = _start_janitor(self._order, self._alive)
            except OSError as error:
                raise WorktreeFailed(
                    f"no private folder can be made in {place}: {error}; name another "
                    "place with TMPDIR"
                ) from error
            undo.pop_all()

    def close(self) -> None:
        """Remove everything, and wait until it is gone; again is nothing."""
        if self._alive is None:
            return
        os.close(self._line)
        os.close(self._alive)
        self._alive = None
        try:
            self._janitor.wait(_PATIENCE_S)
        except subprocess.TimeoutExpired:
            self._janitor.kill()
            self._janitor.wait()
        if self.private.exists():  # the janitor itself was ended
            janitor.obey(self._order)


def _prefix() -> str:
    # a repository may be shared with another machine, whose folders are not here
    return f"perfgate-base-{re.sub(r'[^A-Za-z0-9.]', '-', socket.gethostname())}-"


def _place(repository: Repository, temporary: Path | None) -> Path:
    """Return where to make the folder: not in the candidate's tree, which is watched."""
    wanted = temporary or Path(tempfile.gettempdir())
    for place in (wanted, *map(Path, _ELSEWHERE)):
        inside = place.resolve().is_relative_to(repository.root)
        if place.is_dir() and not inside:
            return place
    raise WorktreeFailed(
        f"the base tree cannot lie in the repository it is taken from: {wanted} is in "
        f"{repository.root}; name a folder outside it with TMPDIR"
    )


def _claim(path: Path, order: str) -> int:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.write(descriptor, order.encode())
    return descriptor


def _start_janitor(order: str, alive: int) -> tuple["subprocess.Popen[bytes]", int]:
    reader, writer = os.pipe()
    try:
        process = subprocess.Popen(  # noqa: S603 (our own interpreter, our own script)
            [sys.executable, "-I", "-S", janitor.__file__],
            stdin=reader,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            env=git_environment(),
            start_new_session=True,
            pass_fds=(alive,),
        )
    finally:
        os.close(reader)
    os.write(writer, order.encode())
    return process, writer


def remove_dead(repository: Repository, *, temporary: Path | None) -> None:
    """Remove what sessions left that ended with their machine or container.

    Only what is ours, of this machine, and held by no living process.
    """
    prefix = _prefix()
    place = temporary or Path(tempfile.gettempdir())
    for private in sorted(place.glob(f"{prefix}*")):
        order = _order_of_dead(private / _ALIVE)
        if order is not None:
            janitor.obey(order)
    for tree in repository.worktrees():
        ours = tree.parent.name.startswith(prefix)
        if ours and not tree.parent.exists():
            janitor.forget(str(tree), str(repository.common))


def _order_of_dead(alive: Path) -> str | None:
    """Return what a dead session's file says; None where it lives, or is not ours."""
    with contextlib.suppress(OSError, ValueError), _opened(alive) as descriptor:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        order = os.read(descriptor, 1 << 16).decode()
        # what it says is followed only for the folder it lies in
        if json.loads(order)["private"] == str(alive.parent.resolve()):
            return order
    return None


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[int]:
    flags = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW
    descriptor = os.open(path, flags)
    try:
        if os.fstat(descriptor).st_uid != os.getuid():
            raise PermissionError(path)
        yield descriptor
    finally:
        os.close(descriptor)
