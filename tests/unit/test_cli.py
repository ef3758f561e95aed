"""The `perfgate` command: what it shows, changes and refuses."""

import os
import subprocess
import sys

import pytest

from pytest_perfgate import __version__
from pytest_perfgate.cli import main
from pytest_perfgate.measured import METRICS, Plan
from pytest_perfgate.model import (
    Baseline,
    BenchmarkResult,
    Environment,
    Outcome,
    Reason,
    Report,
    RunStatistic,
    RunSummary,
    Session,
    Verdict,
)
from pytest_perfgate.store import BaselineStore, RunFolder

A, B = "benches/bench_a.py::bench_a", "benches/bench_a.py::bench_b[x-1]"
FILE = "benches/bench_a.py"


def baseline():
    run = RunSummary(
        iterations=10, statistics={"latency": {"median": RunStatistic(value=0.001)}}
    )
    session = Session(
        time="2026-11-02T09:30:00Z",
        commit=None,
        environment_digest="x",
        runs=(run, run, run),
    )
    return Baseline(
        plan=Plan(iterations=10, warmup=1),
        metrics={"latency": METRICS["latency"]},
        sessions=(session,),
        anchor=session,
    )


@pytest.fixture
def store(tmp_path):
    found = BaselineStore(tmp_path / "kept")
    for key in ("cpu", "gpu"):
        environment = Environment(key=key, hardware={})
        names = (A, B) if key == "cpu" else (A,)
        benchmarks = {name: baseline() for name in names}
        found.merge(key, FILE, benchmarks, environment=environment)
    return found


@pytest.fixture
def run(store, capsys):
    """Run `perfgate baselines`; returns code, output and errors."""

    def call(*arguments):
        code = main(["baselines", "--baselines", str(store.root), *arguments])
        out, err = capsys.readouterr()
        return code, out, err

    return call


def benchmarks(store, key):
    file = store.load(key, FILE)
    return set(file.benchmarks) if file else set()


# -- baselines


def test_list_shows_what_is_stored(run):
    code, out, err = run("list")
    assert (code, err) == (0, "")
    kept = "1 session, 3 runs, newest 2026-11-02T09:30:00Z"
    assert out.splitlines() == [
        *("cpu", f"  {A}", f"    {kept}", f"  {B}", f"    {kept}"),
        *("gpu", f"  {A}", f"    {kept}"),
    ]


def test_hardware_narrows_it_down(run, store):
    _, out, _ = run("--hardware=gpu", "list")
    assert out.startswith("gpu\n")
    assert "cpu" not in out
    run("--hardware=gpu", "prune", A)
    assert (benchmarks(store, "cpu"), benchmarks(store, "gpu")) == ({A, B}, set())


def test_prune_forgets_on_every_hardware(run, store):
    code, out, _ = run("prune", A)
    assert (code, out) == (0, f"pruned {A} from cpu\npruned {A} from gpu\n")
    assert (benchmarks(store, "cpu"), benchmarks(store, "gpu")) == ({B}, set())


def test_prune_changes_nothing_where_one_of_several_is_not_there(run, store):
    code, out, err = run("prune", A, "benches/bench_a.py::typo")
    assert (code, out) == (4, "")
    assert "'benches/bench_a.py::typo' is in no baseline" in err
    assert benchmarks(store, "cpu") == {A, B}


def test_rename_keeps_the_numbers_in_another_file_too(run, store):
    new = "benches/bench_new.py::bench_a"
    code, out, _ = run("rename", A, new)
    assert code == 0
    assert out == f"renamed {A} to {new} in cpu\nrenamed {A} to {new} in gpu\n"
    assert benchmarks(store, "cpu") == {B}
    moved = store.load("gpu", "benches/bench_new.py").benchmarks
    assert moved[new].sessions == baseline().sessions


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["prune", "x.py::y"], 4, ["'x.py::y'", "perfgate baselines list"]),
        (["rename", "x.py::y", A], 4, ["'x.py::y'", "baselines list"]),
        (["rename", A, B], 4, [B]),
        (["--hardware=tpu", "list"], 4, ["'tpu'", "cpu, gpu"]),
    ],
)
def test_what_is_not_there_is_refused(run, store, arguments, code, words):
    before = {path: path.read_bytes() for path in store.root.rglob("*.json")}
    found, out, err = run(*arguments)
    assert (found, out) == (code, "")
    assert err.startswith("perfgate: ")
    assert err.count("\n") == 1
    for word in words:
        assert word in err
    assert {path: path.read_bytes() for path in store.root.rglob("*.json")} == before


def test_without_any_baselines_it_says_how_to_begin(tmp_path, capsys):
    assert main(["baselines", "--baselines", str(tmp_path / "none"), "list"]) == 4
    assert "--perfgate-update" in capsys.readouterr().err


def test_a_damaged_file_is_named(run, store):
    store.path_for("cpu", FILE).write_text("{")
    code, _, err = run("list")
    assert code == 1
    assert str(store.path_for("cpu", FILE)) in err


def test_a_store_that_cannot_be_read(tmp_path, capsys):
    (tmp_path / "file").write_text("no folder")
    assert main(["baselines", "--baselines", str(tmp_path / "file"), "list"]) == 3
    assert "a file stands where a folder should be" in capsys.readouterr().err


# -- report


@pytest.fixture
def folder(tmp_path):
    verdict = Verdict(outcome=Outcome.NO_BASELINE, reason=Reason.NOTHING_STORED)
    report = Report(
        created="2026-11-02T09:30:00Z",
        commit=None,
        environment=None,
        results=(BenchmarkResult(benchmark=A, nodeid=A, verdict=verdict),),
        exit_code=10,
        summary="1 benchmark: 1 without a baseline",
    )
    made = RunFolder(tmp_path / "run")
    made.prepare()
    made.write_report(report)
    made.release()
    return made.path


@pytest.mark.parametrize("name", ["", "report.json"])
def test_a_report_is_shown_by_its_file_or_folder(folder, capsys, name):
    assert main(["report", str(folder / name)]) == 0
    out = capsys.readouterr().out
    assert A in out
    assert "1 benchmark: 1 without a baseline" in out


def test_a_report_that_is_not_there(tmp_path, capsys):
    assert main(["report", str(tmp_path)]) == 4
    assert "there is no report at" in capsys.readouterr().err


def test_a_report_that_cannot_be_read(folder, capsys):
    (folder / "report.json").write_text("[]")
    assert main(["report", str(folder)]) == 1
    assert "report.json" in capsys.readouterr().err


# -- the command itself


@pytest.mark.parametrize("arguments", [[], ["baselines"], ["nonsense"], ["report"]])
def test_wrong_usage_is_4_as_in_pytest(arguments, capsys):
    assert main(arguments) == 4
    assert "usage: perfgate" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["--help"], ["baselines", "--help"]])
def test_help_is_no_error(arguments, capsys):
    assert main(arguments) == 0
    assert "usage: perfgate" in capsys.readouterr().out


def test_version(capsys):
    assert main(["--version"]) == 0
    assert __version__ in capsys.readouterr().out


def test_a_reader_that_has_seen_enough_is_no_error(store):
    command = [sys.executable, "-m", "pytest_perfgate"]
    command += ["baselines", "--baselines", str(store.root), "list"]
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, check=False)
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, b"")


def test_it_needs_no_pytest(store):
    program = (
        "import sys; sys.modules['pytest'] = sys.modules['_pytest'] = None\n"
        "from pytest_perfgate.cli import main\n"
        f"sys.exit(main(['baselines', '--baselines', {str(store.root)!r}, 'list']))"
    )
    done = subprocess.run([sys.executable, "-c", program], check=False)
    assert done.returncode == 0
