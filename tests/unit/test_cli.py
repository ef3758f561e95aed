"""The `perfgate` command on stored files: what it prints, changes and refuses."""

import json
import shutil
from pathlib import Path

import pytest

from pytest_perfgate import __version__
from pytest_perfgate.cli import main
from pytest_perfgate.errors import StoreUnreachable
from pytest_perfgate.store import BaselineStore

GOLDEN = Path(__file__).parents[1] / "golden"
KEY = "nvidia-h200"
PREFILL = "benches/bench_llm.py::bench_prefill"
OTHER = "benches/bench_llm.py::bench_prefill[αβ|1]"


@pytest.fixture
def stored(tmp_path, monkeypatch):
    """A project with baselines of one file and the report of a session."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    file = tmp_path / "baselines" / KEY / "benches" / "bench_llm.py.json"
    file.parent.mkdir(parents=True)
    shutil.copy(GOLDEN / "baseline-v1.json", file)
    (tmp_path / "last").mkdir()
    shutil.copy(GOLDEN / "report-v1.json", tmp_path / "last" / "report.json")
    return file


@pytest.fixture
def perfgate(capsys):
    """Run the command; gives exit code, output and errors."""

    def run(*arguments):
        code = main(arguments)
        return code, *capsys.readouterr()

    return run


def benchmarks(file):
    return sorted(json.loads(file.read_text("utf-8"))["benchmarks"])


def test_the_version_is_named(perfgate):
    assert perfgate("--version") == (0, f"pytest-perfgate {__version__}\n", "")


@pytest.mark.parametrize(
    "arguments", [(), ("nonsense",), ("baselines",), ("report",), ("--nonsense",)]
)
def test_wrong_usage_is_4_and_says_what_there_is(perfgate, arguments):
    code, out, err = perfgate(*arguments)
    assert (code, out) == (4, "")
    assert err.startswith("usage: perfgate")


def test_a_report_is_shown_as_a_table(perfgate, stored):
    code, out, _ = perfgate("report", "last")
    assert code == 0
    assert "1 regressed, 1 missing" in out
    assert max(map(len, out.splitlines())) <= 80
    assert perfgate("report", "last/report.json")[1] == out


def test_the_verbose_table_says_more(perfgate, stored):
    short, long = (
        perfgate("report", "last", *more)[1] for more in ((), ("--verbose",))
    )
    assert len(long) > len(short)


def test_no_report_is_wrong_usage(perfgate, stored):
    code, _, err = perfgate("report", "elsewhere")
    assert code == 4
    assert "elsewhere" in err


def test_what_is_no_report_is_an_error(perfgate, stored):
    code, _, err = perfgate("report", str(stored))
    assert code == 1
    assert str(stored) in err


def test_the_list_fits_a_terminal(perfgate, stored):
    code, out, _ = perfgate("baselines", "list")
    assert code == 0
    assert out == (
        f"{KEY}\n"
        f"  {PREFILL}\n    1 session, 3 runs, newest 2026-11-02T09:30:00Z\n"
        f"  {OTHER}\n    1 session, 3 runs, newest 2026-11-02T09:30:00Z\n"
    )


def test_another_folder_and_one_kind_of_hardware(perfgate, stored):
    (stored.parents[2]).rename("elsewhere")
    given = ("baselines", "--baselines", "elsewhere", "--hardware")
    assert perfgate(*given, KEY, "list")[0] == 0
    code, _, err = perfgate(*given, "h100", "list")
    assert code == 4
    assert "'h100'" in err
    assert KEY in err


def test_a_folder_without_baselines_is_wrong_usage(perfgate, tmp_path):
    code, _, err = perfgate("baselines", "--baselines", str(tmp_path), "list")
    assert code == 4
    assert str(tmp_path) in err
    assert "--perfgate-update" in err


def test_prune_forgets_what_it_names(perfgate, stored):
    assert perfgate("baselines", "prune", PREFILL) == (
        0,
        f"pruned {PREFILL} from {KEY}\n",
        "",
    )
    assert benchmarks(stored) == [OTHER]


def test_rename_keeps_the_numbers(perfgate, stored):
    before = json.loads(stored.read_text("utf-8"))["benchmarks"][PREFILL]
    new = "benches/bench_llm.py::bench_read"
    code, out, _ = perfgate("baselines", "rename", PREFILL, new)
    assert (code, out) == (0, f"renamed {PREFILL} to {new} in {KEY}\n")
    assert json.loads(stored.read_text("utf-8"))["benchmarks"][new] == before
    assert benchmarks(stored) == sorted([OTHER, new])


@pytest.mark.parametrize("action", [("prune", "a.py::b"), ("rename", "a.py::b", "c")])
def test_what_is_not_stored_is_wrong_usage(perfgate, stored, action):
    before = stored.read_bytes()
    code, _, err = perfgate("baselines", *action)
    assert code == 4
    assert "'a.py::b'" in err
    assert stored.read_bytes() == before


def test_a_corrupt_file_is_an_error_that_names_it(perfgate, stored):
    stored.write_text("{")
    code, _, err = perfgate("baselines", "list")
    assert code == 1
    assert str(stored.relative_to(Path.cwd())) in err


def test_a_store_that_cannot_be_reached_is_3(perfgate, stored, monkeypatch):
    def refuse(*_):
        raise StoreUnreachable("the disk is gone")

    monkeypatch.setattr(BaselineStore, "load", refuse)
    assert perfgate("baselines", "list")[::2] == (3, "perfgate: the disk is gone\n")


def test_a_reader_that_has_seen_enough_is_no_error(stored, monkeypatch):
    def closed(*_):
        raise BrokenPipeError

    monkeypatch.setattr("builtins.print", closed)
    assert main(["baselines", "list"]) == 0
