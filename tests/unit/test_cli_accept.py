"""`perfgate accept`: baselines from a report alone."""

import json
from dataclasses import replace

import pytest

from pytest_perfgate.cli import main
from pytest_perfgate.measured import METRICS, Measurement, Plan, Samples
from pytest_perfgate.model import Outcome
from pytest_perfgate.protocol import RecordWriter
from pytest_perfgate.store import (
    BaselineStore,
    RunFolder,
    encode_measurement,
    environment_digest,
)
from tests.unit.gate.reports import environment, report, result

FILE = "benches/bench_a.py"
A, B = f"{FILE}::bench_a", f"{FILE}::bench_b[x-1]"
PLAN = Plan(iterations=100, warmup=3)


def measured(name=A, outcome=Outcome.NO_BASELINE, reason=None, **changes):
    given = result(name, Outcome.UNCHANGED)
    fields = {"plan": PLAN, "metrics": {"latency": METRICS["latency"]}}
    fields["runs"] = given.runs
    return result(name, outcome, reason, **(fields | changes))


@pytest.fixture
def run(tmp_path, capsys, monkeypatch):
    """Run `perfgate accept` on a report; returns code, output and errors."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("_PERFGATE_FAKE", raising=False)
    (tmp_path / "benches").mkdir()
    (tmp_path / FILE).write_text("")
    folder = RunFolder(tmp_path / "from-ci")
    folder.prepare()

    def call(value, *arguments):
        folder.write_report(value)
        code = main(["accept", "from-ci", *arguments])
        out, err = capsys.readouterr()
        return code, out, err

    return call


@pytest.fixture
def store(tmp_path):
    return BaselineStore(tmp_path / "baselines")


def test_a_first_report_becomes_baselines(run, store):
    code, out, err = run(report(measured(A), measured(B), exit_code=10))
    assert (code, err) == (0, "")
    assert "nothing → 1.00 s" in out
    assert "sees slowdowns from" in out
    lines = out.splitlines()
    assert lines[-2:] == [
        "baselines: 2 recorded",
        "look at the change and commit it: git diff baselines",
    ]
    file = store.load("h1", FILE)
    assert file.benchmarks.keys() == {A, B}
    assert file.environment == environment()
    (session,) = file.benchmarks[A].sessions
    assert (session.time, session.commit) == ("2026-11-02T09:30:00Z", "abc")
    assert session.environment_digest == environment_digest(environment())


def test_twice_is_once(run, store):
    first = report(measured(A), exit_code=10)
    run(first)
    before = store.path_for("h1", FILE).read_bytes()
    code, out, _ = run(first, "--force")
    assert code == 1
    assert "these runs are stored already" in out
    assert "1.00 s stays" in out
    assert "commit it" not in out
    assert store.path_for("h1", FILE).read_bytes() == before


def test_by_verdict_old_to_new(run, store):
    run(report(measured(A), measured(B)))
    later = "2026-11-03T00:00:00Z"
    same = measured(A, Outcome.UNCHANGED)
    slow = measured(B, Outcome.REGRESSED)
    code, out, _ = run(report(same, slow, created=later, exit_code=1))
    assert code == 0
    assert "was regressed" in out
    assert "1.00 s → 1.00 s" in out
    assert "baselines: 1 replaced, 1 added a session" in out
    file = store.load("h1", FILE)
    assert len(file.benchmarks[A].sessions) == 2
    assert [one.time for one in file.benchmarks[B].sessions] == [later]


def test_what_is_refused_is_told_and_the_rest_is_stored(run, store):
    broken = measured(B, Outcome.ERROR, runs=(), judgements=())
    code, out, _ = run(report(measured(A), broken, exit_code=1))
    assert code == 1
    assert "error: body-raised; there is nothing sound to store" in out
    assert "baselines: 1 refused, 1 recorded" in out
    assert store.load("h1", FILE).benchmarks.keys() == {A}


def test_nothing_is_written_where_all_is_refused(run, store):
    code, _, _ = run(report(measured(A, Outcome.INVALID), exit_code=12))
    assert code == 1
    assert not store.root.exists()
    assert run(report(result(A, Outcome.SKIPPED), exit_code=5))[0] == 5


def test_of_an_unknown_machine_nothing_is_stored(run, store):
    gone = result(A, Outcome.MISSING)
    code, out, _ = run(report(gone, environment=None, exit_code=14))
    assert code == 1
    assert "missing: gone" in out
    assert not store.root.exists()


def test_each_machine_has_its_own(run, store):
    other = environment("h2")
    both = [measured(A, environment=environment()), measured(A, environment=other)]
    code, _, _ = run(report(*both, environment=None, exit_code=10))
    assert code == 0
    assert store.keys() == ("h1", "h2")
    assert store.load("h2", FILE).environment == other


# -- what is meant


@pytest.mark.parametrize("pattern", [B, FILE + "::bench_b", "*[x-1]", "*bench_b*"])
def test_select(run, store, pattern):
    code, out, _ = run(report(measured(A), measured(B)), f"--select={pattern}")
    assert code == 0
    assert A not in out
    assert store.load("h1", FILE).benchmarks.keys() == {B}


def test_select_of_a_file_and_of_several(run, store):
    value = report(measured(A), measured(B))
    run(value, f"--select={FILE}")
    assert store.load("h1", FILE).benchmarks.keys() == {A, B}
    code, _, _ = run(value, f"--select={A}", f"--select={B}", "--baselines=more")
    assert code == 0
    assert BaselineStore(store.root.parent / "more").keys() == ("h1",)


def test_a_selection_that_fits_nothing_is_wrong_usage(run, store):
    code, out, err = run(report(measured(B)), "--select=bench_b")
    assert (code, out) == (4, "")
    assert "--select='bench_b' fits no benchmark of it; *bench_b* would fit" in err
    _, _, err = run(report(measured(B)), "--select=none")
    assert err.rstrip().endswith("fits no benchmark of it")
    assert not store.root.exists()


def test_another_checkout_is_refused_and_a_file_too_few_is_told(run, tmp_path):
    elsewhere = measured("x/bench_z.py::bench_z")
    code, _, err = run(report(elsewhere))
    assert code == 4
    assert "there is no x/bench_z.py here" in err
    code, out, _ = run(report(measured(A), elsewhere))
    assert code == 0
    assert "note: there is no x/bench_z.py in this checkout" in out


# -- reports that must not be accepted


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"policy": {"--perfgate-slowdown": "60%"}}, "a slowdown was planted in it"),
        ({"environment": replace(environment(), fake=True)}, "simulated device"),
        ({"interrupted": True, "exit_code": 2}, "was interrupted"),
    ],
)
def test_a_report_that_is_no_evidence(run, store, changes, told):
    code, out, err = run(report(measured(), **changes), "--force")
    assert (code, out) == (4, "")
    assert err.startswith("perfgate: from-ci cannot be accepted: ")
    assert told in err
    assert not store.root.exists()


def test_the_simulated_device_of_our_tests_may(run, store, monkeypatch):
    monkeypatch.setenv("_PERFGATE_FAKE", "script.json")
    fake = replace(environment("fake"), fake=True)
    assert run(report(measured(), environment=fake))[0] == 0
    assert store.keys() == ("fake",)


# -- the raw samples beside it


def test_distributions_come_from_the_folder_of_the_session(run, store, tmp_path):
    writer = RecordWriter(tmp_path / "from-ci" / "runs" / "run-001.records.jsonl")
    values = tuple(0.5 + 0.01 * number for number in range(101))
    one = Measurement(
        benchmark=A,
        nodeid=A,
        run=1,
        plan=PLAN,
        samples=(Samples(metric=METRICS["latency"], values=values),),
    )
    sick = replace(one, health=replace(one.health, disturbed=True))
    writer.write("open", nodeid=A)
    for each in (one, sick):
        writer.write("measured", measurement=encode_measurement(each))
    writer.close()
    (tmp_path / "from-ci" / "runs" / "run-002.records.jsonl").write_text("rubbish\n")
    code, out, _ = run(report(measured()))
    assert code == 0
    found = store.load("h1", FILE).benchmarks[A].sketch["latency"]
    assert (found[0], found[10], found[-1]) == (0.5, 1.0, 1.5)
    assert "note: no distributions from from-ci/runs/run-002" in out


# -- somebody else at the same time


def test_it_decides_by_what_is_stored_when_it_writes(run, store, monkeypatch):
    """Another process stores the same session between the look and the lock."""
    value = report(measured(A))
    run(value)
    text = store.path_for("h1", FILE).read_text()
    store.path_for("h1", FILE).unlink()
    update = BaselineStore.update

    def meanwhile(self, key, name, change):
        self.path_for(key, name).write_text(text)
        return update(self, key, name, change)

    monkeypatch.setattr(BaselineStore, "update", meanwhile)
    code, out, _ = run(value)
    assert code == 1
    assert "these runs are stored already" in out
    assert store.path_for("h1", FILE).read_text() == text


def test_a_damaged_baseline_is_not_replaced(run, store):
    run(report(measured()))
    path = store.path_for("h1", FILE)
    tree = json.loads(path.read_text())
    del tree["environment"]
    path.write_text(json.dumps(tree))
    code, _, err = run(report(measured(), created="2026-11-04"), "--force")
    assert code == 1
    assert str(path.relative_to(store.root.parent)) in err
    assert json.loads(path.read_text()) == tree


def test_it_needs_at_least_three_runs(run):
    few = measured(runs=measured().runs[:2])
    code, out, _ = run(report(few))
    assert code == 1
    assert "invalid: too-few-runs; has 2 runs, needs 3" in out
