import errno
import fcntl
import os
import stat

import pytest

from pytest_perfgate.errors import StoreUnreachable
from pytest_perfgate.store.atomic import (
    holder_of,
    locked,
    remove,
    try_lock,
    unreachable,
    write_all,
    write_atomically,
)


def names_in(folder):
    return sorted(entry.name for entry in folder.iterdir())


def test_a_file_is_made_with_its_folders_and_replaced_as_a_whole(tmp_path):
    path = tmp_path / "a" / "b" / "x.json"
    write_atomically(path, b"one, and longer")
    write_atomically(path, b"two")
    assert path.read_bytes() == b"two"
    assert names_in(path.parent) == ["x.json"]


def test_a_new_file_has_the_permissions_that_the_user_gives_to_files(tmp_path):
    plain, ours = tmp_path / "plain", tmp_path / "ours"
    plain.write_bytes(b"")
    write_atomically(ours, b"")
    assert ours.stat().st_mode == plain.stat().st_mode


def test_bytes_are_written_to_the_last_one_and_to_the_disk(tmp_path, monkeypatch):
    real, synced = os.write, []
    monkeypatch.setattr(os, "write", lambda fd, data: real(fd, data[:3]))
    monkeypatch.setattr(os, "fsync", synced.append)
    with (tmp_path / "x").open("wb") as file:
        write_all(file.fileno(), b"0123456789")
        assert synced == [file.fileno()]
    assert (tmp_path / "x").read_bytes() == b"0123456789"


def test_a_full_disk_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "x.json"
    path.write_bytes(b"old")

    def half_then_full(descriptor, data):
        os.write(descriptor, data[: len(data) // 2])
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(StoreUnreachable) as caught:
        write_atomically(path, b"new content", write=half_then_full)
    assert str(caught.value) == (
        f"{path} cannot be written (No space left on device); it is as it was; "
        "make room on the disk"
    )
    assert path.read_bytes() == b"old"
    assert names_in(tmp_path) == ["x.json"]


def test_an_interrupt_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "x.json"
    path.write_bytes(b"old")

    def interrupted(descriptor, data):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_atomically(path, b"new", write=interrupted)
    assert path.read_bytes() == b"old"
    assert names_in(tmp_path) == ["x.json"]


def test_a_read_only_folder_is_named_with_the_way_out(tmp_path, monkeypatch):
    def refuse(path, flags, mode=0o777):
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(StoreUnreachable, match=r"x cannot be written \(Permission den"):
        write_atomically(tmp_path / "x", b"new")


def test_a_file_in_the_place_of_a_folder_is_named(tmp_path):
    (tmp_path / "a").write_bytes(b"")
    with pytest.raises(StoreUnreachable, match=r"written .*; check the disk and the f"):
        write_atomically(tmp_path / "a" / "x.json", b"new")
    with pytest.raises(
        StoreUnreachable, match="a file stands where a folder should be"
    ):
        write_atomically(tmp_path / "a" / "b" / "x.json", b"new")


def failing_fsync_of_folders(monkeypatch, code):
    real = os.fsync

    def fsync(descriptor):
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(code, os.strerror(code))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)


def test_a_file_system_that_cannot_synchronise_folders_will_do(tmp_path, monkeypatch):
    failing_fsync_of_folders(monkeypatch, errno.EINVAL)
    write_atomically(tmp_path / "x", b"new")
    assert (tmp_path / "x").read_bytes() == b"new"


def test_a_disk_that_fails_after_the_rename_is_told(tmp_path, monkeypatch):
    failing_fsync_of_folders(monkeypatch, errno.EIO)
    with pytest.raises(StoreUnreachable) as caught:
        write_atomically(tmp_path / "x", b"new")
    assert f"{tmp_path} cannot be synchronised" in str(caught.value)
    assert "it is as it was" not in str(caught.value)


def test_remove_removes_and_says_what_it_cannot(tmp_path):
    path = tmp_path / "x"
    path.write_bytes(b"")
    remove(path)
    assert names_in(tmp_path) == []
    with pytest.raises(StoreUnreachable, match=r"x cannot be removed \(No such file"):
        remove(path)


def test_an_error_without_a_number_is_told_by_its_words(tmp_path):
    words = str(unreachable(tmp_path, "read", OSError("odd")))
    assert words == f"{tmp_path} cannot be read (odd); check the disk and the folder"


def no_sleep(seconds):
    pytest.fail("nobody holds the lock")


def test_a_lock_leaves_nothing_behind_even_after_an_error(tmp_path):
    path = tmp_path / "new folder" / "x.json"
    with locked(path, sleep=no_sleep):
        assert names_in(path.parent) == [".x.json.lock"]
    assert names_in(path.parent) == []
    with pytest.raises(ZeroDivisionError), locked(path, sleep=no_sleep):
        raise ZeroDivisionError
    with locked(path, sleep=no_sleep):
        pass
    assert names_in(path.parent) == []


def test_who_waits_gets_the_lock_when_it_is_released(tmp_path):
    path, waits = tmp_path / "x.json", []
    first = locked(path)
    first.__enter__()

    def release_at_the_second_wait(seconds):
        waits.append(seconds)
        if len(waits) == 2:
            first.__exit__(None, None, None)

    with locked(path, sleep=release_at_the_second_wait):
        assert names_in(tmp_path) == [".x.json.lock"]
        assert try_lock(tmp_path / ".x.json.lock") is None
    assert len(waits) == 2
    assert all(0 < wait <= 0.1 for wait in waits)


def test_who_waits_in_vain_is_told_who_holds_the_lock(tmp_path):
    path, waits = tmp_path / "x.json", []
    with locked(path):
        with (
            pytest.raises(StoreUnreachable) as caught,
            locked(path, sleep=waits.append),
        ):
            pytest.fail("two hold the lock")
        assert path.with_name(".x.json.lock").exists()
    assert f"{path} is being changed by process {os.getpid()} on " in str(caught.value)
    assert "was not released within 30 s" in str(caught.value)
    assert sum(waits) == pytest.approx(30)


def test_a_lock_whose_holder_died_is_taken_over(tmp_path):
    lock = tmp_path / ".x.json.lock"
    lock.write_text("process 1 on a machine with a long name long gone")
    with locked(tmp_path / "x.json", sleep=no_sleep):
        assert holder_of(lock).startswith(f"process {os.getpid()} on ")
        assert "gone" not in holder_of(lock)


@pytest.mark.parametrize("successor", [True, False])
def test_a_lock_file_that_was_removed_meanwhile_holds_nothing(
    tmp_path, monkeypatch, successor
):
    lock = tmp_path / "lock"
    real = fcntl.flock

    def flock(descriptor, operation):
        real(descriptor, operation)
        lock.unlink()
        if successor:
            lock.write_bytes(b"")

    monkeypatch.setattr(fcntl, "flock", flock)
    opened, closed = [], []
    real_open, real_close = os.open, os.close
    monkeypatch.setattr(
        os, "open", lambda *args: opened.append(real_open(*args)) or opened[-1]
    )
    monkeypatch.setattr(os, "close", lambda fd: closed.append(fd) or real_close(fd))
    assert try_lock(lock) is None
    assert opened[:1] == closed[-1:]


def test_a_file_system_without_locks_is_named(tmp_path, monkeypatch):
    def flock(descriptor, operation):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", flock)
    with pytest.raises(
        StoreUnreachable, match=r"lock cannot be locked \(No locks avail"
    ):
        locked(tmp_path / "x.json").__enter__()


def test_a_holder_who_left_no_name_is_another_process(tmp_path):
    assert holder_of(tmp_path / "none") == "another process"
    (tmp_path / "empty").write_bytes(b"")
    assert holder_of(tmp_path / "empty") == "another process"
    assert holder_of(tmp_path) == "another process"
