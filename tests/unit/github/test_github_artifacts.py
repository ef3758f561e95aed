"""Reports of another run: the newest attempt, in memory, bounded, or not at all."""

import io
import struct
import zipfile

import pytest

from pytest_perfgate.errors import BadAnswer
from pytest_perfgate.github import artifacts
from pytest_perfgate.github.artifacts import fetch_report, list_artifacts, report_in

RUN = "actions/runs/9001/artifacts"


def entry(number, name, **changes):
    return {
        "id": number,
        "name": name,
        "expired": False,
        "size_in_bytes": 900,
        **changes,
    }


def zipped(**files):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as opened:
        for name, data in files.items():
            opened.writestr(name.replace("__", "/").replace("_json", ".json"), data)
    return buffer.getvalue()


@pytest.fixture
def listed(client, github):
    def call(*entries, attempt=2):
        github.things[RUN] = {"artifacts": list(entries)}
        found = list_artifacts(client, 9001, attempt=attempt)
        return [(one.leg, one.attempt, one.id) for one in found]

    return call


def test_of_each_leg_the_newest_attempt_that_was_asked_for(listed):
    found = listed(
        entry(1, "perfgate-a100-1"),
        entry(2, "perfgate-a100-2"),
        entry(3, "perfgate-a100-3"),
        entry(4, "perfgate-h100-big-1"),
        entry(5, "coverage-1"),
        entry(6, "perfgate-a100"),
        entry(7, "perfgate-old-1", expired=True),
        entry(8, "perfgate-2"),
        entry(9, "xperfgate-a100-2"),
    )
    assert found == [("", 2, 8), ("a100", 2, 2), ("h100-big", 1, 4)]


def test_an_attempt_of_ten_is_newer_than_one_of_nine(listed):
    found = listed(entry(1, "perfgate-a-9"), entry(2, "perfgate-a-10"), attempt=10)
    assert found == [("a", 10, 2)]


def test_all_pages_are_read(listed, github):
    github.page = 1
    assert listed(entry(1, "x-1"), entry(2, "y-1"), entry(3, "perfgate-a-1")) == [
        ("a", 1, 3)
    ]


@pytest.mark.parametrize("name", ["perfgate-a-1\n", "perfgate-a-", "perfgate-a-١", ""])
def test_names_that_are_not_ours(listed, name):
    assert listed(entry(1, name), {"name": "perfgate-a-1"}, {"id": 3}) == []


@pytest.fixture
def fetch(client, github):
    def call(data, **changes):
        from werkzeug import Response

        github.things[RUN] = {"artifacts": [entry(1, "perfgate-a-1", **changes)]}
        github.things["actions/artifacts/1/zip"] = Response(data)
        (artifact,) = list_artifacts(client, 9001, attempt=1)
        return fetch_report(client, artifact)

    return call


@pytest.mark.parametrize("name", ["report_json", "folder__report_json"])
def test_the_report_alone_is_read(fetch, name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    data = zipped(**{name: b"{}", "runs__run-000_log": b"x", "evil_sh": b"rm"})
    found = fetch(data)
    assert (found.data, found.leg, found.artifact) == (b"{}", "a", "perfgate-a-1")
    assert list(tmp_path.iterdir()) == []


def test_a_path_out_of_the_archive_is_only_a_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    data = zipped(**{"..__..__report_json": b"far", "report_json": b"near"})
    assert report_in(data, name="x") == b"near"
    assert list(tmp_path.iterdir()) == []


def test_an_artifact_that_is_too_large_is_not_fetched(fetch, github):
    with pytest.raises(BadAnswer, match="200,000,000 bytes, above 104,857,600"):
        fetch(b"", size_in_bytes=200_000_000)
    assert not any("zip" in path for path in github.asked())


def test_one_that_lies_about_its_size_is_cut_off(fetch, monkeypatch):
    monkeypatch.setattr(artifacts, "LARGEST_ZIP", 1_000)
    with pytest.raises(BadAnswer, match=r"200,000 bytes, above 1,000"):
        fetch(b"x" * 200_000, size_in_bytes=10)


def test_a_report_that_unpacks_to_more_than_allowed_is_refused():
    data = bytearray(zipped(report_json=b"{}"))
    directory = data.rindex(b"PK\x01\x02")
    data[directory + 24 : directory + 28] = struct.pack("<I", 200_000_000)
    with pytest.raises(BadAnswer, match="200,000,000 bytes or more"):
        report_in(bytes(data), name="x")


def test_a_report_that_declares_less_than_it_holds_is_refused():
    data = bytearray(zipped(report_json=b" " * 50_000))
    directory = data.rindex(b"PK\x01\x02")
    data[directory + 24 : directory + 28] = struct.pack("<I", 10)
    with pytest.raises(BadAnswer):
        report_in(bytes(data), name="x", limit=1_000)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "no archive"),
        (b"not a zip", "no archive"),
        (zipped(report_json=b"{}" * 500)[:-30], "no archive"),
        (zipped(other_json=b"{}"), "holds no report.json"),
        (zipped(report_json__x=b"{}"), "holds no report.json"),
    ],
)
def test_what_holds_no_report(data, words):
    with pytest.raises(BadAnswer, match=words):
        report_in(data, name="x")


def test_damaged_content(monkeypatch):
    data = bytearray(zipped(report_json=b"abcdefgh" * 100))
    data[40] ^= 0xFF
    with pytest.raises(BadAnswer, match="no archive"):
        report_in(bytes(data), name="x")


def test_an_entry_with_a_password():
    data = bytearray(zipped(report_json=b"{}"))
    directory = data.rindex(b"PK\x01\x02")
    data[directory + 8] |= 1
    with pytest.raises(BadAnswer, match="cannot be opened"):
        report_in(bytes(data), name="x")
