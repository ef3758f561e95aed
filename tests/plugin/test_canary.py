"""`perfgate canary`: whole canaries in a project of its own."""

import json
import os
import signal
import subprocess
import time

import pytest

from tests.plugin import commands

pytestmark = pytest.mark.slow

BENCHES = (
    "import pytest\n"
    "def bench_one(perfgate):\n    perfgate(lambda: None)\n"
    "@pytest.mark.perfgate(budget={'median': '20%'})\n"
    "def bench_other(perfgate):\n    perfgate(lambda: None)\n"
    "def bench_record(perfgate):\n"
    "    perfgate.record('wait', [0.011, 0.012], unit='s', better='lower')\n"
    "def test_plain():\n    raise AssertionError\n"
)
ONE, OTHER = "benches/bench_a.py::bench_one", "benches/bench_a.py::bench_other"
FEW = "--perfgate-runs=3:3"


class Trial:
    """A project, and the command run in it."""

    def __init__(self, folder):
        self.folder = folder
        self.path = folder.path
        self.temporary = commands.temporary(folder)
        folder.bench(BENCHES)
        git = ["git", "-c", "user.name=n", "-c", "user.email=e@x"]
        for command in (["init", "-q"], ["add", "."], ["commit", "-qm", "one"]):
            subprocess.run([*git, *command], check=True, cwd=self.path)

    def start(self, *arguments):
        return commands.start(self.folder, "canary", *arguments, columns=80)

    def run(self, *arguments):
        process = self.start(*arguments)
        self.output, _ = process.communicate(timeout=300)
        self.code = process.returncode

    def files(self):
        return sorted(
            str(path.relative_to(self.path))
            for path in self.path.rglob("*")
            if ".git" not in path.relative_to(self.path).parts
        )


@pytest.fixture(scope="module")
def make_trial(make_spawned):
    return lambda name: Trial(make_spawned(name))


@pytest.fixture(scope="module")
def alive(make_trial):
    """A canary of a gate that works."""
    trial = make_trial("alive")
    trial.before = trial.files()
    answer = trial.temporary.parent / "answer.json"
    trial.run("benches", "--json", str(answer), "--", FEW, "-k", "not absent")
    trial.text = answer.read_text()
    trial.answer = json.loads(trial.text)
    return trial


def test_a_gate_that_works_is_alive(alive):
    assert alive.code == 0, alive.output
    assert alive.answer["alive"] is True
    last = " ".join(alive.output.splitlines()[-2:])
    assert last.startswith("the gate is alive: 2 of 2 benchmarks went red")
    assert "Traceback" not in alive.output


def test_every_check_was_made(alive):
    verdicts = {one["name"]: one["verdict"] for one in alive.answer["checks"]}
    assert verdicts == {
        "baselines": "ok",
        "same code": "ok",
        "10 % slower": "ok",
        "40 % slower": "ok",
        "baseline deleted": "ok",
        "baseline truncated": "ok",
        "NaN measured": "ok",
    }
    for name, verdict in verdicts.items():
        rows = [one for one in alive.output.splitlines() if one.startswith(name)]
        assert any(row.endswith(verdict) for row in rows), name


def test_each_benchmark_is_slowed_by_twice_its_own_budget(alive):
    found = {one["benchmark"]: one for one in alive.answer["slowed"]}
    assert {name: one["planted"] for name, one in found.items()} == {
        ONE: 0.1,
        OTHER: 0.4,
    }
    for one in found.values():
        assert one["response"] == "red"
        assert one["effect"][0] == pytest.approx(1 + one["planted"], abs=0.01)
    assert alive.answer["not_slowed"] == [
        "benches/bench_a.py::bench_record (unchanged: within-budget)"
    ]


def test_the_answer_is_as_its_schema_says(alive, refused_by):
    assert refused_by("canary", alive.text) == []
    assert refused_by("canary", alive.text.replace('"red"', '"green"')) != []


def test_it_says_what_it_cost(alive):
    cost = alive.answer["cost"]
    assert cost["sessions"] == 7
    assert cost["runs"] >= 10 + 3 + 2 * (3 + 5) + 3 + 1
    assert "cost: 7 sessions" in alive.output


def test_nothing_is_left_or_changed(alive):
    assert alive.files() == alive.before
    assert list(alive.temporary.iterdir()) == []


def test_a_gate_that_does_not_see_is_not_alive(make_trial):
    trial = make_trial("dead")
    conftest = (
        "import pytest\n"
        "@pytest.hookimpl(tryfirst=True)\n"
        "def pytest_configure(config):\n"
        "    if config.option.perfgate_slowdown:\n"
        "        config.option.perfgate_slowdown = '0%'\n"
    )
    trial.folder.bench(conftest, "conftest.py")
    with (trial.path / "tox.ini").open("a") as ini:
        ini.write("perfgate_confirm = main\n")  # pairs have no say here
    trial.run("--select", "one", "--benchmarks=1", "--", FEW)
    assert trial.code == 1, trial.output
    assert "canary: 1 of 1 benchmark\n" in trial.output
    assert f"passed: {ONE}: latency·median: planted +10 %" in trial.output
    assert trial.output.splitlines()[-1] == (
        "the gate is not alive: 10 % slower FAILED"
    )


def test_a_body_that_raises_is_no_sign_of_life(make_trial):
    trial = make_trial("raises")
    trial.folder.bench("def bench_one(perfgate):\n    assert 0\n")
    trial.run("benches")
    assert trial.code == 1
    assert "1 error: body-raised" in trial.output
    assert "baselines FAILED" in trial.output


@pytest.fixture(scope="module")
def trial(make_trial):
    return make_trial("usage")


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["nowhere"], 4, ["file or directory not found: nowhere"]),
        (["--", "--perfgate-runs=x"], 4, ["--perfgate-runs='x'"]),
        (["--select", "nothing"], 4, ["no benchmark was found", "deselected"]),
        (["--", "--perfgate-report=x"], 4, ["'--perfgate-report=x'", "drop it"]),
        (["--benchmarks=0"], 4, ["'0'", "whole number"]),
    ],
)
def test_wrong_usage_is_told_in_the_words_of_who_refuses_it(
    trial, arguments, code, words
):
    trial.run(*arguments)
    assert trial.code == code, trial.output
    for word in words:
        assert word in trial.output
    assert "Traceback" not in trial.output


def test_a_file_that_cannot_be_collected_is_told(make_trial):
    trial = make_trial("broken")
    trial.folder.bench("import no\ndef bench_b(perfgate): pass\n", "benches/bench_b.py")
    trial.run("benches")
    assert trial.code == 1
    assert "benches/bench_b.py" in trial.output


def _children(pid):
    text = subprocess.run(
        ["ps", "-o", "pid=", "--ppid", str(pid)],
        check=False,
        capture_output=True,
        text=True,
    ).stdout
    return [int(word) for word in text.split()]


def _gone(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


@pytest.mark.parametrize("kind", [signal.SIGINT, signal.SIGTERM])
def test_an_interruption_leaves_nothing(make_trial, kind):
    trial = make_trial(f"interrupted-{kind.name.lower()}")
    before = trial.files()
    process = trial.start("benches")
    measuring = "perfgate-canary-*/recording-baselines/runs/*.records.jsonl"
    commands.wait_for(trial.temporary, measuring, process)
    sessions = _children(process.pid)
    workers = [pid for session in sessions for pid in _children(session)]
    process.send_signal(kind)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 2
    assert output.endswith("perfgate: interrupted\n")
    deadline = time.monotonic() + 120
    while not all(map(_gone, [*sessions, *workers])):  # the kernel ends workers
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert list(trial.temporary.iterdir()) == []
    assert trial.files() == before
