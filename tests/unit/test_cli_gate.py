"""`perfgate gate`: what it takes as a report, says, writes and answers."""

import json
from dataclasses import replace

import pytest

from pytest_perfgate.cli import main
from pytest_perfgate.model import Outcome
from pytest_perfgate.store import RunFolder, load_report
from tests.unit.gate.reports import environment, report, result

A, B = "benches/bench_a.py::bench_a", "benches/bench_b.py::bench_b"
GREEN = report(result(A))
RED = report(result(A, Outcome.REGRESSED), environment=environment("h2"), exit_code=1)


@pytest.fixture
def put(tmp_path):
    """Write a report into a session's folder below a common one."""

    def write(name, value):
        folder = RunFolder(tmp_path / "all" / name)
        folder.prepare()
        folder.write_report(value)
        folder.release()
        return folder.path

    return write


@pytest.fixture
def gate(tmp_path, capsys, monkeypatch):
    """Run `perfgate gate`; returns code, output and errors."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments):
        code = main(["gate", *map(str, arguments)])
        out, err = capsys.readouterr()
        return code, out, err

    return call


def test_a_file_a_folder_and_a_tree_are_reports(put, gate):
    folder = put("x", GREEN)
    for named in (folder / "report.json", folder, folder.parent):
        code, out, err = gate(named)
        assert (code, err) == (0, "")
        assert A in out
        assert out.splitlines()[-1] == "1 benchmark: 1 unchanged"


def test_a_tree_is_merged_and_named_twice_counts_once(put, gate):
    put("x", GREEN)
    put("y/z", RED)
    code, out, _ = gate("all", "all/x", "all/x/report.json")
    assert code == 1
    assert f"{A} @ h1" in out
    assert f"{A} @ h2" in out
    assert "as well" not in out
    assert out.splitlines()[-1] == "2 benchmarks: 1 regressed, 1 unchanged"


def test_fail_on_is_told_where_it_forgives(put, gate):
    put("x", RED)
    code, out, _ = gate("all", "--fail-on=never")
    assert code == 0
    assert out.splitlines()[-1] == "exit code 0 and not 1, by --fail-on=never"
    assert gate("all", "--fail-on=regressed")[0] == 1
    assert gate("all", "--fail-on=maybe")[0] == 4


def test_nothing_found_is_not_green(tmp_path, gate):
    (tmp_path / "all").mkdir()
    for arguments in (["all"], ["all", "--fail-on=regressed"]):
        code, out, _ = gate(*arguments)
        assert code == 5
        assert "no report.json below all" in out
        assert out.splitlines()[-1].startswith("no report was found")


def test_a_path_that_is_not_there_is_wrong_usage(put, gate):
    put("x", GREEN)
    code, out, err = gate("all", "else/report.json")
    assert (code, out) == (4, "")
    assert "there is no report at else/report.json" in err


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        (lambda text: text[:-100], "is no report that can be used"),
        (lambda _: "", "is no report that can be used"),
        (
            lambda text: text.replace('"schema_version": 1', '"schema_version": 9'),
            "has schema_version 9",
        ),
    ],
)
def test_a_report_that_cannot_be_read_is_told_beside_the_others(
    put, gate, damage, told
):
    put("x", GREEN)
    bad = put("y", GREEN) / "report.json"
    bad.write_text(damage(bad.read_text()))
    for fail_on in ("policy", "regressed", "never"):
        code, out, _ = gate("all", f"--fail-on={fail_on}")
        assert code == 1
        assert told in " ".join(out.split())
        assert A in out
    assert out.splitlines()[-1].endswith("1 of 2 reports cannot be used")


def test_a_report_that_the_disk_refuses_is_3(put, gate):
    folder = put("x", GREEN)
    (folder / "report.json").unlink()
    (folder / "report.json").mkdir()
    code, out, _ = gate("all/x/report.json", "all")
    assert code == 5  # a folder by that name is no report
    (folder / "report.json").rmdir()
    (folder / "report.json").symlink_to(folder / "report.json")
    code, out, _ = gate("all")
    assert code == 3
    assert "report.json cannot be read" in " ".join(out.split())


def test_an_edited_verdict_is_found(put, gate):
    file = put("x", RED) / "report.json"
    tree = json.loads(file.read_text())
    tree["results"][0]["verdict"] = {
        "outcome": "unchanged",
        "reason": "within-budget",
        "detail": "",
    }
    tree["exit_code"] = 0
    file.write_text(json.dumps(tree))
    code, out, _ = gate("all")
    assert code == 1
    assert "contradicts itself: results[0]" in " ".join(out.split())


def test_reports_of_two_commits_are_wrong_usage(put, gate):
    put("x", GREEN)
    put("y", replace(RED, commit="def"))
    code, _, err = gate("all")
    assert code == 4
    assert "different commits: abc" in err


# -- --out


def test_out_holds_the_merged_report_in_all_its_forms(put, gate, tmp_path):
    put("x", GREEN)
    put("y", RED)
    assert gate("all", "--out=all/merged")[0] == 1
    merged = load_report(tmp_path / "all" / "merged")
    assert (merged.exit_code, merged.environment) == (1, None)
    assert [one.environment.key for one in merged.results] == ["h1", "h2"]
    for name in ("report.md", "report.html"):
        assert "h2" in (tmp_path / "all" / "merged" / name).read_text()
    # what was written is no input of the next time
    assert gate("all", "--out=all/merged")[0] == 1
    assert len(load_report(tmp_path / "all" / "merged").results) == 2
    # and judged again it says the same
    assert gate("all/merged")[0] == 1


def test_out_never_replaces_what_is_judged_or_foreign(put, gate, tmp_path):
    file = put("x", GREEN) / "report.json"
    code, _, err = gate("all/x/report.json", "--out=all")
    assert code == 4
    assert "which is to be judged" in err
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("x")
    code, _, err = gate("all", "--out=mine")
    assert (code, "notes.txt" in err) == (4, True)
    assert file.exists()
