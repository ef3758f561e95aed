"""Both trees measured side by side: real repositories and workers, a fake device."""

import json
import socket
import subprocess
import time
from pathlib import Path

import pytest

from pytest_perfgate.cli import main as main_of_cli
from pytest_perfgate.protocol import RecordReader

LIBRARY = "FACTOR = {factor}\n"
BENCH = """\
import library

def bench_one(perfgate):
    perfgate(lambda: library.FACTOR)

def bench_two(perfgate):
    perfgate(lambda: library.FACTOR)
"""
ONE, TWO = (f"benches/bench_a.py::bench_{name}" for name in ("one", "two"))
PACE = {"*": {"factor_from": "library:FACTOR"}}


class Repository:
    """A project under git: `main`, and a branch that changes its library."""

    def __init__(self, project):
        self.project = project
        self.path = project.path
        self.git("init", "-q", "-b", "main")
        project.pytester.makeini(
            "[pytest]\nfilterwarnings = error\nperfgate_max_time = 0.05\n"
            "pythonpath = .\n"
        )
        (self.path / ".gitignore").write_text(
            ".perfgate/\n__pycache__/\nfake-device.json\n"
        )
        self.library(1.0)
        project.bench(BENCH)
        project.device(PACE)
        self.commit()
        self.git("switch", "-q", "-c", "feature")

    def git(self, *arguments):
        identity = ("-c", "user.name=Ann", "-c", "user.email=ann@example.org")
        done = subprocess.run(
            ["git", *identity, *arguments],
            cwd=self.path,
            check=True,
            capture_output=True,
            text=True,
        )
        return done.stdout

    def library(self, factor):
        (self.path / "library.py").write_text(LIBRARY.format(factor=factor))

    def commit(self):
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "change")

    def against(self, *arguments, ref="main"):
        return self.project.run(f"--perfgate-against={ref}", "benches", *arguments)

    @property
    def outcomes(self):
        return self.project.outcomes

    def details(self, benchmark):
        (found,) = [
            result["verdict"]["detail"]
            for result in self.project.report["results"]
            if result["benchmark"] == benchmark
        ]
        return found

    def left_behind(self):
        """What a session may not leave: checkouts, and files git would see."""
        trees = self.git("worktree", "list").splitlines()[1:]
        return trees, self.git("status", "--porcelain")


def soon(condition):
    """Wait for other processes, which is over as soon as it is true."""
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.01)


def gone(pid):
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return True
    return status.rpartition(")")[2].split()[0] in "ZX"


@pytest.fixture
def repository(project):
    found = Repository(project)
    yield found
    assert found.left_behind() == ([], "")


@pytest.mark.parametrize(
    ("factor", "code", "verdict"),
    [
        (1.3, 1, ("regressed", "confirmed")),
        (1.0, 0, ("unchanged", "within-budget")),
        (0.7, 0, ("improved", "faster-beyond-budget")),
    ],
)
def test_what_the_library_does_is_judged(repository, factor, code, verdict):
    repository.library(factor)
    (repository.path / "other.py").write_text("")
    repository.commit()
    result = repository.against()
    assert repository.outcomes == {ONE: verdict, TWO: verdict}
    assert result.ret == code
    report = repository.project.report
    assert report["base"]["ref"] == "main"
    main = repository.git("rev-parse", "main").strip()
    assert report["base"]["commit"] == main
    assert "benches/" in report["base"]["overlaid"]
    assert len(report["results"][0]["base_runs"]["iterations"]) == 5
    # judged again it is the same, and halves of pairs are no baselines
    last = str(repository.path / ".perfgate" / "last")
    assert main_of_cli(["gate", last]) == code
    assert main_of_cli(["accept", last]) == 4


def test_pairs_take_turns_and_measure_the_same_number(repository):
    repository.library(1.3)
    repository.commit()
    repository.against()
    found = list(repository.project.measurements())
    plans = {(m.benchmark, m.plan.iterations, m.plan.warmup) for m in found}
    assert len(plans) == 2  # one for each benchmark, whoever measured it
    turns = {m.benchmark: m.turns for m in found}
    assert all(
        measurement.turns == turns[measurement.benchmark] for measurement in found
    )
    assert len(turns[ONE]) >= 2


COLD = """\
import library, pytest

@pytest.mark.perfgate(cache=library.CACHE)
def bench_one(perfgate):
    perfgate(lambda: library.FACTOR)
"""


def test_both_sides_flush_or_the_two_are_not_compared(repository):
    repository.project.device({"*": {"factor_from": "library:FACTOR", "flush": 1.5}})
    repository.git("switch", "-q", "main")
    library = repository.path / "library.py"
    library.write_text("FACTOR = 1.0\nCACHE = 'flush'\n")
    repository.commit()
    repository.git("switch", "-q", "-c", "flushed")
    repository.project.bench(COLD)
    library.write_text("FACTOR = 1.3\nCACHE = 'flush'\n")
    repository.commit()
    assert repository.against().ret == 1
    assert repository.outcomes == {ONE: ("regressed", "confirmed")}
    found = list(repository.project.measurements())
    assert {m.plan.cache for m in found} == {"flush"}
    assert len({m.turns for m in found}) == 1
    library.write_text("FACTOR = 1.3\nCACHE = 'hot'\n")
    repository.commit()
    assert repository.against().ret == 11
    assert repository.outcomes == {ONE: ("incomparable", "plan-differs")}
    assert "cache was flush, is hot" in repository.details(ONE)


def test_whole_runs_alternate_where_both_cannot_be_alive(repository):
    repository.library(1.3)
    repository.commit()
    result = repository.against("--perfgate-interleave=run")
    assert result.ret == 1
    assert repository.outcomes[ONE] == ("regressed", "confirmed")
    assert {m.turns for m in repository.project.measurements()} == {()}


def test_an_uncommitted_change_is_measured_and_named(repository):
    repository.library(1.3)
    result = repository.against()
    assert repository.outcomes[ONE] == ("regressed", "confirmed")
    result.stdout.fnmatch_lines(["*uncommitted changes*library.py*"])
    assert "changed with it: there are uncommitted changes" in result.stdout.str()
    repository.git("checkout", "-q", "--", "library.py")


def test_a_benchmark_of_something_new_has_no_base(repository):
    (repository.path / "fresh.py").write_text("FACTOR = 1.0\n")
    repository.project.bench(
        "import pytest\n"
        "def bench_new(perfgate):\n"
        "    fresh = pytest.importorskip('fresh')\n"
        "    perfgate(lambda: fresh.FACTOR)\n",
        "benches/bench_b.py",
    )
    repository.commit()
    result = repository.against("--perfgate-on-missing=warn")
    new = "benches/bench_b.py::bench_new"
    assert repository.outcomes[new] == ("no-baseline", "not-in-base")
    assert repository.outcomes[ONE][0] == "unchanged"
    assert result.ret == 0


def test_a_benchmark_that_fails_in_the_base_passes_nothing(repository):
    repository.project.bench(BENCH.replace("library.FACTOR)", "library.NEW)"))
    (repository.path / "library.py").write_text("FACTOR = 1.0\nNEW = 1.0\n")
    repository.commit()
    result = repository.against()
    assert repository.outcomes[ONE] == ("invalid", "base-not-measured")
    assert "NEW" in repository.details(ONE)
    assert "failed in the base tree" in repository.details(ONE)
    assert result.ret == 12


def test_a_base_that_cannot_be_imported_passes_nothing(repository):
    (repository.path / "added.py").write_text("FACTOR = 1.0\n")
    source = "import added\n" + BENCH
    repository.project.bench(source)
    repository.commit()
    result = repository.against()
    assert repository.outcomes[ONE] == ("invalid", "base-not-measured")
    assert "No module named 'added'" in repository.details(ONE)
    assert result.ret == 12


def test_a_suite_that_imports_nothing_proves_nothing(repository):
    repository.project.bench("def bench_one(perfgate):\n    perfgate(lambda: None)\n")
    repository.project.device()
    repository.commit()
    result = repository.against()
    assert repository.outcomes == {ONE: ("invalid", "base-not-measured")}
    assert result.ret == 12


@pytest.mark.parametrize(
    ("ref", "said"),
    [("nowhere", "*git knows no commit 'nowhere'*"), ("-x", "*no git ref*")],
)
def test_a_ref_that_leads_nowhere_is_told_at_once(repository, ref, said):
    result = repository.against(ref=ref)
    assert result.ret == 4
    result.stderr.fnmatch_lines([said])


def test_both_ways_of_pairing_exclude_each_other(repository):
    result = repository.against("--perfgate-confirm=main")
    assert result.ret == 4
    result.stderr.fnmatch_lines(["*exclude each other*"])


# what one side does costs the other nothing -----------------------------------

CALM = """\
FACTOR = 1.0
CASES = [1, 2]
NAMES = [None]

def hurt(kind):
    return None
"""
HURT = """\
import os, signal, threading
import pytest

FACTOR = 1.0
CASES = [1]
NAMES = [None, "again"]

def hurt(kind):
    if kind == "skip":
        pytest.skip("not here")
    if kind in {"set up", "raise"}:
        raise RuntimeError("not here")
    if kind == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    if kind == "hang":
        threading.Event().wait()
"""
MISHAPS = """\
import library
import pytest

@pytest.fixture
def made():
    library.hurt("set up")

def bench_set_up(perfgate, made):
    perfgate(lambda: None)

@pytest.mark.perfgate(timeout="1s", iterations=40)
@pytest.mark.parametrize("kind", ["skip", "raise", "die", "hang"])
def bench_hurt(perfgate, kind):
    calls = iter(range(10**9))
    perfgate(lambda: library.hurt(kind) if next(calls) == 40 else None)

@pytest.mark.parametrize("case", library.CASES)
def bench_case(perfgate, case):
    perfgate(lambda: None)

def bench_double(perfgate):
    for name in library.NAMES:
        perfgate(lambda: library.FACTOR, name=name)

def bench_one(perfgate):
    perfgate(lambda: library.FACTOR)
"""
HERE = "benches/bench_a.py::bench_"
SPOILT = ("set_up", "hurt[skip]", "hurt[raise]", "hurt[die]", "hurt[hang]")


def unlike(repository, *, base, candidate, benches=MISHAPS):
    """Let the two trees have different libraries, and the same benchmarks."""
    repository.git("switch", "-q", "main")
    (repository.path / "library.py").write_text(base)
    repository.project.bench(benches)
    repository.commit()
    repository.git("switch", "-q", "feature")
    repository.git("rebase", "-q", "main")
    (repository.path / "library.py").write_text(candidate)
    repository.commit()


def test_whatever_happens_in_the_base_the_candidate_is_whole(repository):
    unlike(repository, base=HURT, candidate=CALM)
    repository.against("--perfgate-on-missing=warn")
    outcomes = repository.outcomes
    spoilt = {HERE + name: ("invalid", "base-not-measured") for name in SPOILT}
    spoilt[HERE + "case[2]"] = ("invalid", "base-not-measured")
    whole = ("case[1]", "double", "one")
    kept = {HERE + name: ("unchanged", "within-budget") for name in whole}
    assert outcomes == spoilt | kept
    ours = measured_by(repository, "candidate")
    assert {HERE + name for name in (*SPOILT, *whole, "case[2]")} == ours


def test_whatever_happens_in_the_candidate_the_base_is_whole(repository):
    unlike(repository, base=CALM, candidate=HURT)
    repository.against()
    outcomes = repository.outcomes
    names = ("case[1]", "double", "one")
    kept = {outcomes[HERE + name] for name in names}
    assert kept == {("unchanged", "within-budget")}
    assert outcomes[HERE + "set_up"] == ("error", "body-raised")
    assert outcomes[HERE + "hurt[raise]"] == ("error", "body-raised")
    assert outcomes[HERE + "hurt[skip]"] == ("skipped", "skipped")
    assert outcomes[HERE + "hurt[die]"] == ("error", "crashed")
    assert outcomes[HERE + "hurt[hang]"] == ("invalid", "timed-out")
    assert outcomes[HERE + "double::again"] == ("no-baseline", "not-in-base")
    theirs = measured_by(repository, "base")
    assert {HERE + name for name in (*SPOILT, *names)} <= theirs


QUEUED = """\
import library
import pytest

@pytest.mark.perfgate(iterations=40, warmup=5)
@pytest.mark.parametrize("kind", ["raise", "die", "none"])
def bench_queued(perfgate, kind):
    calls = iter(range(10**9))
    perfgate(lambda: library.hurt(kind) if next(calls) == 60 else None)

def bench_one(perfgate):
    perfgate(lambda: library.FACTOR)
"""


@pytest.fixture
def queued(repository):
    """Benchmarks on a device with a queue, of which some fail as it is filled."""
    repository.project.device({"*": {"device": 0.9, "period": 0.5}})
    unlike(repository, base=HURT, candidate=CALM, benches=QUEUED)
    return repository


def test_what_happens_as_one_side_fills_its_queue_costs_the_other_nothing(queued):
    queued.against()
    spoilt = ("invalid", "base-not-measured")
    assert queued.outcomes == {
        HERE + "queued[raise]": spoilt,
        HERE + "queued[die]": spoilt,
        HERE + "queued[none]": ("unchanged", "within-budget"),
        HERE + "one": ("unchanged", "within-budget"),
    }
    ours = measured_by(queued, "candidate")
    assert ours == set(queued.outcomes)
    for result in queued.project.report["results"]:
        shown = {j["metric"]["name"] for j in result["judgements"]}
        whole = result["verdict"]["outcome"] == "unchanged"
        assert ("device_period" in shown) is whole, result["benchmark"]


def measured_by(repository, side):
    """Return what the workers of one tree measured to the end, in any pair."""
    runs = repository.path / ".perfgate" / "last" / "runs"
    return {
        record["measurement"]["benchmark"]
        for file in runs.glob(f"*-{side}*.records.jsonl")
        for record in RecordReader(file).read()
        if record["kind"] == "measured"
        and sum(record["measurement"]["turns"])
        == record["measurement"]["plan"]["iterations"]
    }


def test_rounds_of_pytest_benchmark_are_judged_in_pairs(repository, monkeypatch):
    plugins = "pytest_perfgate.plugin,pytest_benchmark.plugin"
    monkeypatch.setenv("PYTEST_PLUGINS", plugins)
    repository.project.bench(
        "import library\n\ndef bench_one(benchmark):\n"
        "    benchmark(lambda: library.FACTOR)\n"
    )
    repository.library(1.3)
    repository.commit()
    result = repository.against()
    assert repository.outcomes == {ONE: ("regressed", "confirmed")}
    assert result.ret == 1
    found = list(repository.project.measurements())
    assert len({(m.plan.iterations, m.plan.inner_loop, m.turns) for m in found}) == 1


def test_both_sides_take_as_many_calls_for_a_sample(repository):
    """The slower one alone would settle for ten."""
    short = {"seconds": 2.05e-5, "device": 0.5}
    repository.project.device({"*": PACE["*"] | short})
    repository.library(2.0)
    repository.commit()
    result = repository.against()
    assert repository.outcomes[ONE] == ("regressed", "confirmed")
    assert result.ret == 1
    found = [m for m in repository.project.measurements() if m.benchmark == ONE]
    assert len({(m.plan.inner_loop, m.plan.iterations) for m in found}) == 1
    assert found[0].plan.inner_loop in {10, 20}  # of whichever side came first


PORT = """
import pytest, socket

@pytest.fixture(scope="module")
def server():
    with socket.socket() as held:
        held.bind(("127.0.0.1", {port}))
        yield held
"""


def test_a_port_that_the_twin_holds_is_told_apart(repository):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    source = BENCH.replace("(perfgate)", "(perfgate, server)")
    repository.project.bench(source + PORT.format(port=port))
    repository.commit()
    result = repository.against()
    assert repository.outcomes == {
        ONE: ("unchanged", "within-budget"),
        TWO: ("unchanged", "within-budget"),
    }
    assert result.ret == 0
    result.stdout.fnmatch_lines(["*set-up failed while the other was alive*"])


def test_a_killed_manager_leaves_no_tree_and_no_process(repository):
    """The workers end by themselves, and a janitor removes the checkout."""
    repository.project.bench(
        BENCH.replace("library.FACTOR)", "time.sleep(1))").replace(
            "import library",
            "import library, os, time\n"
            "from pathlib import Path\n"
            "with Path('pids').open('a') as file:\n"
            "    file.write(f'{os.getpid()}\\n')",
        )
    )
    (repository.path / ".gitignore").write_text(
        ".perfgate/\n__pycache__/\nfake-device.json\npids\n"
    )
    repository.commit()
    manager = repository.project.start("--perfgate-against=main", "benches")
    records = repository.path / ".perfgate" / "last" / "runs"
    soon(lambda: any(b'"open"' in f.read_bytes() for f in records.glob("*.jsonl")))
    trees = repository.git("worktree", "list").splitlines()
    assert len(trees) == 2
    base = Path(trees[1].split()[0])
    workers = [
        int(pid)
        for file in (repository.path / "pids", base / "pids")
        if file.exists()
        for pid in file.read_text().split()
        if int(pid) != manager.pid
    ]
    assert workers
    manager.kill()
    manager.communicate()
    soon(lambda: not base.exists())
    soon(lambda: all(gone(pid) for pid in workers))


# confirm mode -----------------------------------------------------------------


@pytest.fixture
def recorded(repository):
    """Baselines recorded on main, committed with it."""
    repository.git("switch", "-q", "main")
    repository.project.adopt("benches")
    repository.commit()
    repository.git("switch", "-q", "feature")
    repository.git("rebase", "-q", "main")
    repository.project.device(PACE, salt=1)
    return repository


def confirm(repository, *arguments):
    return repository.project.run("--perfgate-confirm=main", "benches", *arguments)


def test_what_is_slower_than_stored_is_confirmed_in_pairs(recorded):
    recorded.library(1.3)
    recorded.commit()
    result = confirm(recorded)
    assert recorded.outcomes[ONE] == ("regressed", "confirmed")
    assert result.ret == 1
    report = recorded.project.report
    (one,) = [r for r in report["results"] if r["benchmark"] == ONE]
    assert len(one["confirmation"]["iterations"]) == 5
    assert len(one["base_confirmation"]["iterations"]) == 5
    # what explains it lies between base and HEAD, not since a stored baseline
    assert {line["kind"] for line in one["explanation"]} == {"commit"}
    last = str(recorded.path / ".perfgate" / "last")
    assert main_of_cli(["gate", last]) == 1
    assert main_of_cli(["accept", last]) == 0
    (stored,) = sessions(recorded, ONE)
    # the fresh ones took turns with the base
    assert stored["runs"]["iterations"] == one["runs"]["iterations"]
    recorded.commit()


def sessions(repository, benchmark):
    """What is stored of a benchmark."""
    file = json.loads(repository.project.baseline().read_text())
    return file["benchmarks"][benchmark]["sessions"]


def test_where_nothing_is_suspected_no_base_is_checked_out(recorded):
    result = confirm(recorded)
    assert result.ret == 0
    assert "base" not in recorded.project.report
    assert recorded.outcomes == {
        ONE: ("unchanged", "within-budget"),
        TWO: ("unchanged", "within-budget"),
    }


def test_a_machine_that_became_slower_is_no_regression(recorded):
    # same code, and everything takes 30 % longer than on the day of the baseline
    slower = {"*": PACE["*"] | {"factor": 1.3}}
    recorded.project.device(slower, salt=1)
    result = confirm(recorded)
    assert recorded.outcomes[ONE] == ("unchanged", "within-budget")
    assert result.ret == 0
    (one,) = [r for r in recorded.project.report["results"] if r["benchmark"] == ONE]
    remarks = " ".join(r for j in one["judgements"] for r in j["remarks"])
    assert "baseline-stale" in remarks
    last = str(recorded.path / ".perfgate" / "last")
    assert main_of_cli(["gate", last]) == 0
    assert main_of_cli(["accept", last]) == 0
    assert len(sessions(recorded, ONE)) == 1  # replaced: nothing is mixed
    recorded.commit()


def test_an_unknown_ref_is_told_before_anything_is_measured(recorded):
    result = recorded.project.run("--perfgate-confirm=nowhere", "benches")
    assert result.ret == 4
    result.stderr.fnmatch_lines(["*git knows no commit 'nowhere'*"])
    assert list(recorded.project.measurements()) == []
