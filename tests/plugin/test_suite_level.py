"""What one benchmark alone cannot tell: the machine, slow creep, attempts."""

import json
import subprocess

import pytest

FEW = ("--perfgate-runs=3:3", "benches")
BENCH = "benches/bench_a.py::bench_one"
TWELVE = (
    "import pytest\n"
    "@pytest.mark.parametrize('n', range(12))\n"
    "def bench_many(perfgate, n):\n    perfgate(lambda: None)\n"
)
SHIFT = ("inconclusive", "machine-wide-shift")


def named(number):
    return f"benches/bench_a.py::bench_many[[]{number}]"


@pytest.fixture
def twelve(project):
    project.bench(TWELVE)
    project.adopt("benches")
    return project


def test_a_slower_machine_confirms_nothing_and_hides_nothing(twelve):
    twelve.device(
        {named(3): {"factor": 1.5}, named(7): {"factor": 0.5}, "*": {"factor": 1.09}},
        salt=1,
    )
    result = twelve.run(*FEW)
    assert result.ret == 0, result.stdout.str()
    found = [twelve.outcomes[f"benches/bench_a.py::bench_many[{n}]"] for n in range(12)]
    assert found.pop(7) == ("improved", "faster-beyond-budget")
    assert set(found) == {SHIFT}
    assert twelve.report["cost"]["runs"] == 3  # none to confirm
    shift = twelve.report["shift"]
    assert shift["benchmarks"] == 12
    assert shift["ratio"] == pytest.approx(1.09, abs=0.01)
    result.stdout.fnmatch_lines(["*the machine as a whole is * % slower than*"])
    worst = next(r for r in twelve.report["results"] if "[3]" in r["benchmark"])
    main = next(j for j in worst["judgements"] if j["gated"])
    # nothing is subtracted
    assert main["comparison"]["ratio"] == pytest.approx(1.5, abs=0.02)
    assert main["comparison"]["q_value"] >= main["comparison"]["p_identity"]


def test_a_faster_machine_is_told_and_what_is_slower_all_the_same_is_red(twelve):
    twelve.device({named(3): {"factor": 1.3}, "*": {"factor": 0.94}}, salt=1)
    result = twelve.run(*FEW)
    assert result.ret == 1
    outcomes = twelve.outcomes
    assert outcomes["benches/bench_a.py::bench_many[3]"] == (
        "regressed",
        "confirmed-without-base",
    )
    result.stdout.fnmatch_lines(["*the machine as a whole is * % faster than*"])


@pytest.fixture
def committed(one):
    one.adopt("benches")

    def commit(message="more"):
        git = ["git", "-c", "user.name=n", "-c", "user.email=e@x"]
        for command in (["init", "-q"], ["add", "."]):
            subprocess.run([*git, *command], check=True, cwd=one.path)
        subprocess.run(
            [*git, "commit", "-q", "--allow-empty", "-m", message],
            check=True,
            cwd=one.path,
        )

    # what the device does is no part of the tree
    ignored = "fake-device.json\n__pycache__/\n.pytest_cache/\n"
    (one.path / ".gitignore").write_text(ignored)
    commit("first")
    one.commit = commit
    return one


def again(project, salt, **law):
    project.device({"*": law}, salt=salt)
    result = project.run(*FEW)
    return result, project.report["results"][0]


def test_a_commit_is_not_run_until_it_is_green(committed):
    slow_at_first = {str(run): {"factor": 1.5} for run in (1, 2, 3)}
    _, first = again(committed, 1, runs=slow_at_first)
    assert committed.outcomes[BENCH] == ("inconclusive", "unconfirmed")
    assert "attempt" not in first

    # luck this time: alone these runs would be unchanged
    result, second = again(committed, 2)
    assert committed.outcomes[BENCH][0] == "inconclusive"
    assert (second["attempt"], second["earlier_runs"]) == (2, 8)
    assert len(second["runs"]["iterations"]) == 11
    assert committed.report["cost"]["runs"] == 3
    result.stdout.fnmatch_lines(["attempt 2 on this commit: 8 runs of earlier*"])
    assert (
        subprocess.check_output(["git", "status", "--porcelain"], cwd=committed.path)
        == b""
    )

    # a new commit is a new start
    committed.commit()
    _, third = again(committed, 3)
    assert committed.outcomes[BENCH][0] == "unchanged"
    assert "attempt" not in third


def test_what_was_red_stays_red_by_all_its_evidence(committed):
    assert again(committed, 1, factor=1.08)[0].ret == 1
    result, second = again(committed, 2, factor=1.08)
    assert result.ret == 1
    assert len(second["confirmation"]["iterations"]) == 10


def test_a_memory_that_cannot_be_read_is_one_line_and_no_loss(committed):
    again(committed, 1)
    memory = committed.path / ".perfgate" / "attempts.json"
    memory.write_text(memory.read_text()[:80])
    result, found = again(committed, 2)
    assert result.ret == 0
    assert "attempt" not in found
    result.stdout.fnmatch_lines(["note: earlier attempts are not counted: *"])
    assert json.loads(memory.read_text())["schema_version"] == 1
    assert again(committed, 3)[1]["attempt"] == 2


@pytest.mark.parametrize(("slowdown", "code"), [("50%", 1), ("0%", 0)])
def test_a_planted_slowdown_is_no_attempt(committed, slowdown, code):
    committed.device(salt=1)
    assert committed.run(f"--perfgate-slowdown={slowdown}", *FEW).ret == code
    assert not (committed.path / ".perfgate" / "attempts.json").exists()
    result, found = again(committed, 2)
    assert result.ret == 0
    assert "attempt" not in found


def test_creep_past_the_anchor_is_red_and_its_budget_can_be_set(one):
    one.adopt("benches")
    tree = json.loads(one.baseline().read_text())
    baseline = tree["benchmarks"][BENCH]
    baseline["anchor"] = json.loads(json.dumps(baseline["sessions"][0]))
    for column in baseline["anchor"]["runs"]["statistics"]["latency"].values():
        column[:] = [[value / 1.3, se] for value, se in column]
    one.baseline().write_text(json.dumps(tree))
    one.device(salt=1)
    result = one.run(*FEW)
    assert result.ret == 1, result.stdout.str()
    assert one.outcomes[BENCH] == ("regressed", "crept-past-anchor")
    result.stdout.fnmatch_lines(["*latency?median vs anchor 1.3*allowed 1.15*"])
    one.device(salt=2)
    assert one.run("--perfgate-anchor-budget=50%", *FEW).ret == 0
    one.bench(
        "import pytest\n"
        "@pytest.mark.perfgate(anchor_budget={'median': '40%'})\n"
        "def bench_one(perfgate):\n    perfgate(lambda: None)\n"
    )
    assert one.run(*FEW).ret == 0


def test_an_update_says_how_small_a_slowdown_will_be_seen(one):
    one.device({"*": {"run_sd": 0.08}})
    result = one.record("benches")
    result.stdout.fnmatch_lines(
        ["*sees slowdowns from * % on, budget 5 %", "*would miss a slowdown of twice*"]
    )
