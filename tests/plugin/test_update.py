"""`--perfgate-update`: what is stored, what is refused, and what is said of it."""

import errno
import json
import re

import pytest

from pytest_perfgate import cli
from pytest_perfgate.campaign import manager
from pytest_perfgate.store import BaselineStore, atomic

BENCH = "benches/bench_a.py::bench_one"


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """Record sessions of four runs; the ten of every day are in test_sequence."""
    monkeypatch.setattr(manager, "RECORDING_RUNS", 4)


def stored_benchmarks(project, name="benches/bench_a.py"):
    return json.loads(project.baseline(name).read_text())["benchmarks"]


def words(result):
    """Return the output with every run of blanks as one."""
    return " ".join(result.stdout.str().split())


def test_a_first_session_is_recorded_and_never_called_passed(one):
    result = one.run("--perfgate-update", "--junitxml=j.xml", "benches")
    assert (result.ret, one.outcomes[BENCH]) == (0, ("recorded", "first-session"))
    assert result.parseoutcomes() == {"recorded": 1}
    assert "latency·median nothing → 1.00 ms" in words(result)
    assert (
        'name="perfgate_outcome" value="recorded"' in (one.path / "j.xml").read_text()
    )
    (session,) = stored_benchmarks(one)[BENCH]["sessions"]
    assert len(session["runs"]["iterations"]) == 4


EACH = """
import pytest

@pytest.mark.parametrize("n", range(6))
def bench_one(perfgate, n):
    perfgate(lambda: None)
    assert n != 4 or not {armed}
"""


def each(n):
    return f"{BENCH}[{n}]"


def test_what_becomes_of_each_benchmark(project):
    project.bench(EACH.format(armed=False))
    project.adopt("benches")
    before = stored_benchmarks(project)
    kept = {each(5): before[each(5)]}
    without = {k: v for k, v in before.items() if k not in kept}
    whole = json.loads(project.baseline().read_text())
    project.baseline().write_text(json.dumps(whole | {"benchmarks": without}))
    project.bench(EACH.format(armed=True))
    laws = {
        each(1): {"factor": 1.5},
        each(2): {"factor": 0.5},
        each(3): {"run_sd": 0.3},
    }
    project.device(laws, salt=1)
    result = project.run("--perfgate-update", "benches")
    after = stored_benchmarks(project)
    assert [project.outcomes[each(n)] for n in range(6)] == [
        ("recorded", "session-added"),
        ("recorded", "replaced"),
        ("recorded", "replaced"),
        ("inconclusive", "too-noisy"),
        ("error", "body-raised"),
        ("recorded", "first-session"),
    ]
    assert {n: len(after[each(n)]["sessions"]) for n in (0, 1, 2, 5)} == {
        0: 2,
        1: 1,
        2: 1,
        5: 1,
    }
    assert after[each(3)] == before[each(3)]
    assert after[each(4)] == before[each(4)]
    assert result.ret == 1
    text = words(result)
    assert re.search(r"latency·median 1.00 ms → 1.(49|50) ms \+(49|50)", text)
    assert re.search(r"latency·median 1.00 ms → (499|500) µs -50", text)
    assert "cpu_time·median 1.00 ms stays" in text
    assert "baselines: 2 refused, 2 replaced, 1 recorded, 1 added a session" in text
    assert result.parseoutcomes() == {"failed": 1, "recorded": 4, "inconclusive": 1}


def test_what_the_data_cannot_tell_is_refused_unless_forced(stored):
    before = stored.baseline().read_bytes()
    stored.device({"*": {"run_sd": 0.3}}, salt=1)
    result = stored.run("--perfgate-update", "benches")
    assert (result.ret, stored.outcomes[BENCH][0]) == (13, "inconclusive")
    assert stored.baseline().read_bytes() == before
    assert "inconclusive: too-noisy; --perfgate-update-force stores" in words(result)
    forced = stored.run("--perfgate-update-force", "benches")
    assert (forced.ret, stored.outcomes[BENCH]) == (0, ("recorded", "session-added"))
    _, session = stored_benchmarks(stored)[BENCH]["sessions"]
    assert len(session["runs"]["iterations"]) == 4


def test_another_plan_replaces_what_is_stored(stored):
    stored.bench("def bench_one(perfgate):\n    perfgate(lambda x: x, [1])\n")
    stored.run("--perfgate-update", "benches")
    assert stored.outcomes[BENCH] == ("recorded", "replaced")


def test_a_file_that_cannot_be_read_is_not_written_over(stored):
    stored.baseline().write_text("{")
    result = stored.run("--perfgate-update", "benches")
    assert (result.ret, stored.outcomes[BENCH]) == (1, ("error", "baseline-corrupt"))
    assert stored.baseline().read_text() == "{"


def test_an_update_of_one_benchmark_leaves_the_others(project):
    project.bench(
        "def bench_one(perfgate):\n    perfgate(lambda: None)\n"
        "def bench_two(perfgate):\n    perfgate(lambda: None)\n"
    )
    project.bench("def bench_b(perfgate):\n    perfgate(int)\n", "benches/bench_b.py")
    project.adopt("benches")
    two = "benches/bench_a.py::bench_two"
    before, other = stored_benchmarks(project), project.baseline("benches/bench_b.py")
    untouched = other.read_bytes(), other.stat().st_mtime_ns
    project.device(salt=1)
    result = project.run("--perfgate-update", "benches/bench_a.py", "-k", "one")
    assert result.ret == 0
    after = stored_benchmarks(project)
    assert after[two] == before[two]
    assert after[BENCH] != before[BENCH]
    assert (other.read_bytes(), other.stat().st_mtime_ns) == untouched


@pytest.mark.parametrize(
    ("code", "hint"),
    [(errno.ENOSPC, "make room"), (errno.EROFS, "read-only")],
    ids=["full", "read-only"],
)
def test_a_disk_that_refuses_leaves_the_baselines_as_they_were(
    stored, monkeypatch, code, hint
):
    before = stored.texts("baselines")
    write = atomic._write_new

    def refuse(path, data, **given):
        if "baselines" in path.parts:
            raise OSError(code, "the disk refuses")
        write(path, data, **given)

    monkeypatch.setattr(atomic, "_write_new", refuse)
    result = stored.run("--perfgate-update", "benches")
    assert result.ret == 3
    result.stdout.fnmatch_lines(
        [f"perfgate: *bench_a.py.json cannot be written*{hint}*"]
    )
    assert stored.texts("baselines") == before
    assert result.parseoutcomes() == {}  # nothing claims to be recorded
    report = stored.report
    assert (report["exit_code"], report["interrupted"]) == (3, False)
    assert hint in report["problem"]
    assert stored.outcomes == {BENCH: ("unchanged", "within-budget")}
    assert (stored.path / ".perfgate" / "last" / "report.html").exists()
    assert cli.main(["gate", str(stored.path / ".perfgate")]) == 3
    assert len(list(stored.measurements())) == 4


# -- benchmarks that are gone or have another name


def test_a_benchmark_that_is_gone_survives_an_update(stored):
    stored.bench("def bench_new(perfgate):\n    perfgate(lambda: None)\n")
    result = stored.run("--perfgate-update", "benches")
    assert (result.ret, stored.outcomes[BENCH]) == (14, ("missing", "gone"))
    assert set(stored_benchmarks(stored)) == {BENCH, "benches/bench_a.py::bench_new"}


def perfgate(project, *arguments):
    return cli.main(
        ["baselines", "--baselines", str(project.path / "baselines"), *arguments]
    )


def test_a_renamed_benchmark_keeps_its_baseline(stored, capsys):
    new = "benches/bench_b.py::bench_new"
    (stored.path / "benches" / "bench_a.py").unlink()
    stored.bench(
        "def bench_new(perfgate):\n    perfgate(lambda: None)\n", "benches/bench_b.py"
    )
    assert perfgate(stored, "rename", BENCH, new) == 0
    assert f"renamed {BENCH} to {new} in fake" in capsys.readouterr().out
    result = stored.run("--perfgate-runs=3:3", "benches")
    assert (result.ret, stored.outcomes) == (0, {new: ("unchanged", "within-budget")})


def test_a_pruned_benchmark_is_missing_no_more(stored, capsys):
    stored.bench("def bench_new(perfgate):\n    perfgate(lambda: None)\n")
    assert perfgate(stored, "list") == 0
    listed = capsys.readouterr().out
    assert listed.startswith(f"fake\n  {BENCH}\n    1 session, 3 runs, newest 2026")
    assert perfgate(stored, "prune", BENCH) == 0
    result = stored.run("--perfgate-runs=3:3", "--perfgate-on-missing=warn", "benches")
    assert result.ret == 0
    assert list(stored.outcomes) == ["benches/bench_a.py::bench_new"]


def test_what_is_not_gated_is_recorded_and_a_skip_is_no_refusal(one):
    one.bench(
        "import pytest\n"
        "@pytest.mark.perfgate(gate=False)\n"
        "def bench_one(perfgate):\n    perfgate(lambda: None)\n"
        "def bench_two(perfgate):\n    pytest.skip('not today')\n"
    )
    result = one.run("--perfgate-update", "benches")
    assert result.ret == 0
    assert "1 refused" not in words(result)
    assert list(stored_benchmarks(one)) == [BENCH]
    assert one.outcomes[BENCH] == ("recorded", "first-session")
    one.run("--perfgate-update", "--perfgate-iterations=20", "benches")
    assert one.outcomes[BENCH] == ("recorded", "replaced")


def test_a_disturbed_run_has_no_place_in_a_baseline(one):
    one.device({"*": {"runs": {"2": {"disturbed": True}}}})
    one.record("benches")
    assert one.report["cost"]["runs"] == manager.RECORDING_RUNS + 1
    (stored,) = (
        BaselineStore(one.path / "baselines")
        .load("fake", "benches/bench_a.py")
        .benchmarks.values()
    )
    assert len(stored.runs) == manager.RECORDING_RUNS
    assert not any(run.disturbed for run in stored.runs)


def test_a_session_cut_short_by_the_clock_is_not_stored(one, monkeypatch):
    kept = manager.Campaign._make_run

    def late(campaign, wanting):
        kept(campaign, wanting)
        campaign.out_of_time = campaign.cost.runs == 3

    monkeypatch.setattr(manager.Campaign, "_make_run", late)
    result = one.run("--perfgate-update", "benches")
    assert (result.ret, one.outcomes[BENCH]) == (13, ("inconclusive", "out-of-time"))
    assert "3 of the 4 runs" in words(result)
    assert not one.baseline().exists()
