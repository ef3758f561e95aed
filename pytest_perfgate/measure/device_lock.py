"""One session at a time on a device: a lock that all users of a machine share.

The lock is the kernel's and ends with its process, whatever becomes of it; the
file only says who holds it. It is one for each GPU, by UUID, and one for the
processor.
"""

import contextlib
import datetime as dt
import fcntl
import getpass
import os
import re
import stat
import sys
import time
from collections.abc import Callable, MutableMapping
from pathlib import Path

FOLDER = Path("/tmp/perfgate-locks")  # noqa: S108 (the same for all users; no link in it is followed)
FOLDER_VARIABLE = "_PERFGATE_LOCKS"
"""Private: another folder, so that this project's tests lock nobody out."""
HELD_VARIABLE = "_PERFGATE_HELD"
"""Tells the children of a holder that the device is theirs to use."""
PATIENCE_S = 600.0
_PAUSE_S = 1.0
_LONGEST = 200


class DeviceLock:
    """The lock of one device.

    Parameters
    ----------
    device : a GPU's UUID, or `cpu`
    folder : where the files of all locks lie; None takes the machine's
    environ : of this process, which its children inherit
    """

    def __init__(
        self,
        device: str,
        *,
        folder: Path | None = None,
        environ: MutableMapping[str, str] = os.environ,
    ) -> None:
        named = environ.get(FOLDER_VARIABLE)
        self._folder = folder or (Path(named) if named else FOLDER)
        self._name = re.sub(r"[^A-Za-z0-9-]+", "_", device)
        self._environ = environ
        self._before = environ.get(HELD_VARIABLE)
        self._descriptor: int | None = None

    @property
    def path(self) -> Path:
        return self._folder / f"{self._name}.lock"

    def acquire(
        self,
        *,
        patience_s: float = PATIENCE_S,
        say: Callable[[str], None] = lambda _: None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> str | None:
        """Wait for the lock, and take it.

        Parameters
        ----------
        say : told once who holds it, if anybody does

        Returns
        -------
        str or None
            Who holds it, where patience ended first; None where it is ours, or
            that of a session of whose children we are.

        Raises
        ------
        OSError
            Where the folder or the file cannot be used.
        """
        descriptor = self._open()
        waited_s = 0.0
        try:
            while not _try(descriptor):
                holder = _text(descriptor)
                if self._is_inherited(holder):
                    os.close(descriptor)
                    return None
                if waited_s >= patience_s:
                    os.close(descriptor)
                    return holder
                if not waited_s:
                    say(
                        f"waiting up to {patience_s:.0f} s for the device, held by {holder}"
                    )
                pause_s = min(_PAUSE_S, patience_s - waited_s)
                sleep(pause_s)
                waited_s += pause_s
        except BaseException:
            with contextlib.suppress(OSError):
                os.close(descriptor)
            raise
        self._hold(descriptor)
        return None

    def release(self) -> None:
        """Let the next one have it; does nothing where it is not held."""
        if self._descriptor is None:
            return
        os.ftruncate(self._descriptor, 0)
        os.close(self._descriptor)
        self._descriptor = None
        if self._before is None:
            self._environ.pop(HELD_VARIABLE, None)
        else:
            self._environ[HELD_VARIABLE] = self._before

    def _hold(self, descriptor: int) -> None:
        self._descriptor = descriptor
        os.ftruncate(descriptor, 0)
        os.write(descriptor, _who().encode())
        held = self._environ.get(HELD_VARIABLE, "")
        self._environ[HELD_VARIABLE] = f"{held} {self._name}={os.getpid()}".strip()

    def _is_inherited(self, holder: str) -> bool:
        """Tell whether the holder is a session that started this process.

        The holder's own number must stand in the environment, or a variable
        that outlived its session would open every lock.
        """
        number = re.match(r"process (\d+) ", holder)
        held = self._environ.get(HELD_VARIABLE, "").split()
        return number is not None and f"{self._name}={number[1]}" in held

    def _open(self) -> int:
        """Open the file, making it so that every user can.

        Never with O_CREAT where it exists: in a folder that all may write to,
        Linux refuses that for another user's file.
        """
        _make_folder(self._folder)
        flags = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW
        with contextlib.suppress(FileNotFoundError):
            return os.open(self.path, flags)
        try:
            descriptor = os.open(self.path, flags | os.O_CREAT | os.O_EXCL, 0o666)
        except FileExistsError:  # somebody was quicker
            return os.open(self.path, flags)
        os.fchmod(descriptor, 0o666)
        return descriptor


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir()
        folder.chmod(0o1777)  # for all, and nobody removes another's file
    except FileExistsError:
        if not stat.S_ISDIR(folder.lstat().st_mode):
            raise NotADirectoryError(f"{folder} is no folder") from None


def _try(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _text(descriptor: int) -> str:
    text = os.pread(descriptor, 1000, 0).decode(errors="replace")
    shown = "".join(c if c.isprintable() else "?" for c in text)
    return shown or "another process, which has not said its name yet"


def _who() -> str:
    now = dt.datetime.now(dt.UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    program = Path(sys.argv[0])
    name = program.parent.name if program.name == "__main__.py" else program.name
    command = " ".join([name, *sys.argv[1:]])[:_LONGEST]
    return f"process {os.getpid()} of {_user()} since {now}: {command}"


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container may run as a number without a name
        return f"user {os.getuid()}"
