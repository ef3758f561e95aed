"""Files that are either the old or the new one, and a lock around a change."""

import contextlib
import errno
import fcntl
import os
import secrets
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from pytest_perfgate.errors import StoreUnreachable

Write = Callable[[int, bytes], None]
"""Writes all bytes to a file descriptor; a door, so that a disk can be full."""

_PAUSE_S = 0.05
_PATIENCE_S = 30.0
_NO_FSYNC_HERE = (errno.EINVAL, errno.ENOTSUP)


def write_all(descriptor: int, data: bytes) -> None:
    """Write all bytes and wait until they are on the disk."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]
    os.fsync(descriptor)


def write_atomically(path: Path, data: bytes, *, write: Write = write_all) -> None:
    """Replace a file as a whole; missing folders are made.

    Whatever happens on the way, the path holds the old or the new content.

    Raises
    ------
    StoreUnreachable
        Where the disk is full, the folder cannot be written, and so on.
    """
    # in the same folder: a rename between two file systems is not atomic
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.ExitStack() as stack:
            stack.callback(temporary.unlink, missing_ok=True)
            _write_new(temporary, data, write=write)
            temporary.replace(path)
    except OSError as error:
        raise unreachable(path, "written", error) from error
    _sync_folder_of(path)


def remove(path: Path) -> None:
    """Remove a file for good.

    Raises
    ------
    StoreUnreachable
        Where the folder cannot be written.
    """
    try:
        path.unlink()
    except OSError as error:
        raise unreachable(path, "removed", error) from error
    _sync_folder_of(path)


def _sync_folder_of(path: Path) -> None:
    """Make a rename or a removal outlive a power cut."""
    try:
        _sync_folder(path.parent)
    except OSError as error:
        # some network file systems cannot; the file itself is safe by then
        if error.errno not in _NO_FSYNC_HERE:
            raise unreachable(path.parent, "synchronised", error) from error


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _write_new(path: Path, data: bytes, *, write: Write) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        write(descriptor, data)
    finally:
        os.close(descriptor)


def unreachable(path: Path, verb: str, error: OSError) -> StoreUnreachable:
    """Put a failed system call into words."""
    hint = {
        errno.ENOSPC: "make room on the disk",
        errno.EDQUOT: "make room in the quota",
        errno.EROFS: "the file system is read-only: choose another folder",
        errno.EACCES: "check the permissions of file and folder",
        errno.EPERM: "check the permissions of file and folder",
        errno.ENOTDIR: "a file stands where a folder should be: move it away",
        errno.EISDIR: "a folder stands where a file should be: move it away",
    }.get(error.errno or 0, "check the disk and the folder")
    problem = error.strerror or str(error)
    unchanged = "; it is as it was" if verb == "written" else ""
    return StoreUnreachable(f"{path} cannot be {verb} ({problem}){unchanged}; {hint}")


@contextlib.contextmanager
def locked(
    path: Path, *, sleep: Callable[[float], None] = time.sleep
) -> Iterator[None]:
    """Hold the lock of a file during a read-modify-write.

    The lock ends with the process, whatever becomes of it; its file stands
    beside the one it guards and goes when the lock is released.

    Raises
    ------
    StoreUnreachable
        Naming the holder, if it does not let go within half a minute.
    """
    lock = path.with_name(f".{path.name}.lock")
    descriptor = _acquire(lock, guarded=path, sleep=sleep)
    try:
        yield
    finally:
        # removed while held: who waits for it sees that, and makes a new one
        lock.unlink(missing_ok=True)
        os.close(descriptor)


def _acquire(lock: Path, *, guarded: Path, sleep: Callable[[float], None]) -> int:
    try:
        lock.parent.mkdir(parents=True, exist_ok=True)
        for _ in range(round(_PATIENCE_S / _PAUSE_S)):
            descriptor = try_lock(lock)
            if descriptor is not None:
                return descriptor
            sleep(_PAUSE_S)
    except OSError as error:
        raise unreachable(lock, "locked", error) from error
    raise StoreUnreachable(
        f"{guarded} is being changed by {holder_of(lock)} and was not released "
        f"within {_PATIENCE_S:g} s; wait for that process, or end it"
    )


def try_lock(lock: Path) -> int | None:
    """Take a lock and write one's name into it; None if somebody has it.

    Returns
    -------
    int or None
        The open descriptor that holds the lock until it is closed.
    """
    descriptor = os.open(lock, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if not _is_still(lock, descriptor):
            os.close(descriptor)
            return None
        os.ftruncate(descriptor, 0)
        os.write(
            descriptor, f"process {os.getpid()} on {socket.gethostname()}".encode()
        )
    except BlockingIOError:
        os.close(descriptor)
        return None
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def _is_still(lock: Path, descriptor: int) -> bool:
    """Tell whether the locked file is still the one that stands at the path."""
    try:
        return os.path.samestat(os.fstat(descriptor), lock.stat())
    except FileNotFoundError:
        return False


def holder_of(lock: Path) -> str:
    """Return who wrote their name into a lock."""
    try:
        return lock.read_text(errors="replace") or "another process"
    except OSError:
        return "another process"
