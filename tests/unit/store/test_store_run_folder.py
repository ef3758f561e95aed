import errno
import gc
import os
from pathlib import Path

import pytest

from pytest_perfgate.errors import BaselineCorrupt, StoreUnreachable, UsageError
from pytest_perfgate.store import RunFolder, load_report


@pytest.fixture
def path(tmp_path):
    return tmp_path / ".perfgate" / "last"


@pytest.fixture
def folder(path):
    made = RunFolder(path)
    yield made
    made.release()


def names_in(path):
    return sorted(entry.name for entry in path.iterdir())


def test_a_folder_is_not_touched_before_a_session_begins(folder, path):
    folder.worker(1)
    assert not path.parent.exists()


def test_a_session_begins_in_a_folder_that_git_ignores(folder, path):
    folder.prepare()
    assert (path / ".gitignore").read_text() == "*\n"
    assert names_in(path) == [".gitignore", ".perfgate-run-folder", "runs"]


def test_each_worker_has_files_of_its_own(folder, path):
    first = folder.worker(3)
    assert first.task == path / "runs" / "run-003.task.json"
    assert first.records == path / "runs" / "run-003.records.jsonl"
    assert first.log == path / "runs" / "run-003.log"
    again = folder.worker(3, side="base", part=2)
    assert again.log == path / "runs" / "run-003-base-2.log"


def test_a_new_session_replaces_the_content_of_the_last(folder, path, make, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").write_text("")
    folder.prepare()
    folder.worker(1).log.write_text("old")
    folder.write_report(make.a_report())
    (path / "link").symlink_to(outside)
    (path / "report.html").write_text("old")
    folder.prepare()
    assert names_in(path) == [".gitignore", ".perfgate-run-folder", "runs"]
    assert names_in(path / "runs") == []
    assert names_in(outside) == ["kept"]


def test_an_empty_folder_is_taken(folder, path):
    path.mkdir(parents=True)
    folder.prepare()
    assert "runs" in names_in(path)


def test_a_folder_with_other_things_in_it_is_refused_as_it_is(folder, path):
    path.mkdir(parents=True)
    (path / "thesis.tex").write_text("years of work")
    with pytest.raises(UsageError, match=r"last holds 'thesis.tex', which no earlier"):
        folder.prepare()
    assert names_in(path) == ["thesis.tex"]


def test_a_file_is_refused(folder, path):
    path.parent.mkdir()
    path.write_text("")
    with pytest.raises(UsageError, match="last is a file; name a folder"):
        folder.prepare()


def test_a_folder_that_cannot_be_written_is_named(folder, monkeypatch):
    def refuse(path, **kwargs):
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(Path, "mkdir", refuse)
    with pytest.raises(StoreUnreachable, match=r"last cannot be prepared \(Read-only"):
        folder.prepare()


def test_two_sessions_never_share_a_folder(folder, path):
    folder.prepare()
    folder.worker(1).records.write_text("measured for hours")
    other = RunFolder(path)
    with pytest.raises(StoreUnreachable) as caught:
        other.prepare()
    assert f"in use by the session of process {os.getpid()} on " in str(caught.value)
    assert folder.worker(1).records.read_text() == "measured for hours"
    folder.release()
    other.prepare()
    assert names_in(path / "runs") == []
    other.release()


def test_the_claim_ends_with_its_owner(path):
    first = RunFolder(path)
    first.prepare()
    del first
    gc.collect()
    second = RunFolder(path)
    second.prepare()
    second.release()
    second.release()


def test_a_report_is_loaded_from_its_folder_or_its_file(folder, path, make):
    folder.prepare()
    written = folder.write_report(make.a_report())
    assert written == path / "report.json" == folder.report
    assert load_report(path) == make.a_report()
    assert load_report(written) == make.a_report()


def test_a_report_that_is_not_there_is_a_matter_of_the_argument(tmp_path):
    with pytest.raises(UsageError, match=r"there is no report at .*report\.json"):
        load_report(tmp_path)
    with pytest.raises(UsageError, match=r"there is no report at .*/x"):
        load_report(tmp_path / "x")


def test_a_report_that_cannot_be_read_is_named(tmp_path):
    (tmp_path / "report.json").mkdir()
    with pytest.raises(StoreUnreachable, match=r"report\.json cannot be read"):
        load_report(tmp_path)
    (tmp_path / "torn.json").write_text('{"schema_version"')
    with pytest.raises(BaselineCorrupt, match=r"torn\.json is no report .*truncated"):
        load_report(tmp_path / "torn.json")
