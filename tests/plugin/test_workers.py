"""What happens to a worker costs one benchmark, and is told."""

import contextlib
import os
import signal
import time
from pathlib import Path

import pytest

HAZARDS = """
import ctypes, os, signal, subprocess, sys, time
from pathlib import Path
import pytest

ARMED = Path(__file__).with_name("armed")


def armed():
    return ARMED.exists()


def bench_fine(perfgate):
    perfgate(int)


def bench_segfault(perfgate):
    if armed():
        ctypes.string_at(0)
    perfgate(int)


def bench_kill(perfgate):
    if armed():
        os.kill(os.getpid(), signal.SIGKILL)
    perfgate(int)


def bench_exit(perfgate):
    if armed():
        os._exit(0)
    perfgate(int)


def bench_quit(perfgate):
    if armed():
        pytest.exit("enough for all")
    perfgate(int)


@pytest.mark.perfgate(timeout=1)
def bench_hang(perfgate):
    if armed():
        time.sleep(60)  # the line that hangs
    perfgate(int)


def bench_stray(perfgate):
    if armed():
        child = subprocess.Popen(["sleep", "60"])
        with open("stray", "a") as file:
            file.write(f"{child.pid}\\n")
        child.returncode = 0  # nobody waits for it, and nobody is warned
    perfgate(int)


def bench_fork(perfgate):
    if armed() and os.fork() == 0:
        with open("forked", "a") as file:
            file.write(f"{os.getpid()}\\n")
        return  # and falls back into pytest
    perfgate(int)


@pytest.mark.parametrize("n", range(3))
def bench_witness(perfgate, n):
    with open("witness", "a") as file:
        file.write(f"{os.getpid()}\\n")
    perfgate(int)


def bench_noise(perfgate):
    if armed():
        for descriptor in (1, 2):
            os.write(descriptor, b"\\xff\\x00 raw \\x1b[31m bytes\\n")
        sys.__stdout__.write("unhooked\\n")
        subprocess.run(["echo", "a child"], check=True)
    perfgate(int)


def bench_once(perfgate):
    if armed() and not os.path.exists("been"):
        Path("been").touch()
        ctypes.string_at(0)
    perfgate(int)
"""


def alive(pid):
    """Whether a process runs; one that waits to be reaped does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in "ZX"


def eventually(condition, within_s=60.0):
    """Look until something is so; False if it does not come."""
    end = time.monotonic() + within_s
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


def pids(path):
    return [int(line) for line in path.read_text().split()]


@pytest.fixture(scope="module")
def hazards(make_spawned):
    """One session in which everything happens."""
    project = make_spawned("hazards")
    file = project.bench(HAZARDS, "benches/bench_h.py")
    project.adopt("benches")
    project.device(salt=1)
    (project.path / "witness").unlink()
    file.with_name("armed").touch()
    project.run("--perfgate-runs=3:3", "benches")
    return project


def outcome(project, name):
    return project.outcomes[f"benches/bench_h.py::{name}"]


def result(project, name):
    return next(r for r in project.report["results"] if r["benchmark"].endswith(name))


@pytest.mark.parametrize(
    "name",
    [
        "bench_fine",
        "bench_stray",
        "bench_fork",
        "bench_witness[0]",
        "bench_witness[1]",
        "bench_witness[2]",
        "bench_noise",
        "bench_once",
    ],
)
def test_the_others_are_judged(hazards, name):
    assert outcome(hazards, name) == ("unchanged", "within-budget")


@pytest.mark.parametrize(
    ("name", "how"),
    [
        ("bench_segfault", "SIGSEGV"),
        ("bench_kill", "SIGKILL"),
        ("bench_exit", "exit code 0"),
        ("bench_quit", "ended its worker's session"),
    ],
)
def test_the_same_crash_twice_is_an_error(hazards, name, how):
    assert outcome(hazards, name) == ("error", "crashed")
    found = result(hazards, name)
    assert found["verdict"]["detail"] == f"2 runs: {how}, {how}"
    assert f"error: crashed (2 runs: {how}, {how})\n  benches/bench_h.py::{name}" in (
        hazards.output
    )


def test_a_crash_shows_its_stack(hazards):
    text = result(hazards, "bench_segfault")["text"]
    line = HAZARDS.split("\n").index("        ctypes.string_at(0)") + 1
    assert f'bench_h.py", line {line} in bench_segfault' in text
    assert f"line {line} in bench_segfault" in hazards.output


def test_a_hang_twice_is_invalid_and_shows_where(hazards):
    assert outcome(hazards, "bench_hang") == ("invalid", "timed-out")
    line = (
        HAZARDS.split("\n").index("        time.sleep(60)  # the line that hangs") + 1
    )
    assert f"line {line} in bench_hang" in hazards.output


def test_a_crash_that_does_not_come_back_costs_a_run(hazards):
    (said,) = result(hazards, "bench_once")["discarded"]
    assert said.endswith("SIGSEGV")
    assert len(result(hazards, "bench_once")["runs"]["iterations"]) == 3


def test_the_exit_code_is_that_of_the_worst(hazards):
    assert hazards.code == 1
    assert hazards.report["exit_code"] == 1


def test_no_process_outlives_the_session(hazards):
    workers = [r["pid"] for r in hazards.records() if r["kind"] == "hello"]
    strays = pids(hazards.path / "stray")
    forked = pids(hazards.path / "forked")
    assert len(workers) > 8
    assert len(strays) >= 3 <= len(forked)
    assert eventually(lambda: not any(map(alive, workers + strays + forked)))


def test_a_forked_child_goes_no_further_than_its_benchmark(hazards):
    workers = {r["pid"] for r in hazards.records() if r["kind"] == "hello"}
    assert set(pids(hazards.path / "witness")) <= workers


def test_raw_bytes_go_to_the_log_and_not_to_the_terminal(hazards):
    assert "\x1b[31m bytes" not in hazards.output
    runs = hazards.path / ".perfgate" / "last" / "runs"
    logs = b"".join(path.read_bytes() for path in runs.glob("*.log"))
    assert b"INTERNALERROR" not in logs


def test_a_hang_alone_ends_the_session_as_invalid(project):
    project.bench(
        "import time\n"
        "def bench_hang(perfgate):\n    time.sleep(60)\n"
        "def bench_fine(perfgate):\n    perfgate(int)\n"
    )
    result = project.run(
        "--perfgate-timeout=1500ms",
        "--perfgate-on-missing=warn",
        "--perfgate-runs=3:3",
        "benches",
    )
    assert result.ret == 12
    assert project.outcomes["benches/bench_a.py::bench_hang"] == (
        "invalid",
        "timed-out",
    )
    result.stdout.fnmatch_lines(["*invalid: timed-out*"])


def test_what_only_the_manager_collects_is_not_dropped(project):
    project.bench(
        "import os, pytest\n"
        "@pytest.mark.parametrize('n', [os.getpid()])\n"
        "def bench_odd(perfgate, n):\n    perfgate(int)\n"
        "def bench_fine(perfgate):\n    perfgate(int)\n"
    )
    result = project.run("--perfgate-on-missing=warn", "--perfgate-runs=3:3", "benches")
    odd = f"benches/bench_a.py::bench_odd[{os.getpid()}]"
    assert (result.ret, project.outcomes[odd]) == (12, ("invalid", "worker-lost"))
    result.stdout.fnmatch_lines(["*not collected by the worker*"])


def test_workers_that_cannot_start_say_why(one):
    one.bench(
        "import os\n"
        "if '_PERFGATE_TASK' in os.environ:\n"
        "    raise RuntimeError('no licence for a second process')\n",
        "conftest.py",
    )
    result = one.run("--perfgate-runs=3:3", "benches")
    assert result.ret == 3
    result.stdout.fnmatch_lines(
        ["perfgate: no benchmark began in a worker process*", "*no licence for*"]
    )


def test_what_a_benchmark_starts_is_no_worker(one):
    one.bench(
        "import os\n"
        "def bench_one(perfgate):\n"
        "    perfgate(lambda: None)\n"
        "    assert not [name for name in os.environ if 'TASK' in name]\n"
    )
    one.run("--perfgate-runs=3:3", "--perfgate-on-missing=warn", "benches")
    assert list(one.outcomes.values()) == [("no-baseline", "nothing-stored")]


# -- the end comes from outside

SLOW_SECOND_RUN = """
import time
from pathlib import Path


def bench_a(perfgate):
    if Path("been").exists():
        Path("waiting").touch()
        time.sleep(60)
    perfgate(lambda: None)
    Path("been").touch()
"""


@pytest.fixture
def waiting(one):
    """A project with baselines, whose next session hangs in its second run."""
    one.adopt("benches")
    one.bench(SLOW_SECOND_RUN.replace("bench_a", "bench_one"))
    return one


def reach_second_run(project, *arguments):
    """Start a session and return it when its second run is under way."""
    process = project.start(*arguments, "--perfgate-runs=3:3", "benches")
    hangs = project.path / "waiting"
    assert eventually(lambda: hangs.exists() or process.poll() is not None)
    assert process.poll() is None
    return process


def last_worker(project):
    return [r["pid"] for r in project.records() if r["kind"] == "hello"][-1]


@pytest.mark.parametrize(
    ("kind", "more"),
    [
        (signal.SIGINT, []),
        (signal.SIGINT, ["--perfgate-update"]),
        (signal.SIGTERM, []),
        (signal.SIGTERM, ["--perfgate-update"]),
    ],
    ids=["Ctrl-C", "Ctrl-C in an update", "SIGTERM", "SIGTERM in an update"],
)
def test_the_end_from_outside_keeps_what_was_measured_and_touches_no_baseline(
    waiting, kind, more
):
    before = waiting.texts("baselines")
    process = reach_second_run(waiting, *more)
    process.send_signal(kind)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 2, output
    assert eventually(lambda: not alive(last_worker(waiting)))
    assert waiting.report["interrupted"] is True
    assert waiting.report["exit_code"] == 2
    assert "interrupted; so far" in output
    assert ("ended by SIGTERM" in output) is (kind is signal.SIGTERM)
    assert [m.run for m in waiting.measurements()] == [1]
    assert list(waiting.outcomes.values()) == [("inconclusive", "out-of-time")]
    assert waiting.texts("baselines") == before


def test_workers_die_with_the_manager(waiting):
    process = reach_second_run(waiting)
    worker = last_worker(waiting)
    assert alive(worker)
    process.kill()
    process.communicate(timeout=60)
    assert eventually(lambda: not alive(worker))


def test_workers_that_start_without_their_manager_end(one):
    one.bench(
        "import os, time\n"
        "from pathlib import Path\n"
        "if '_PERFGATE_TASK' in os.environ:\n"
        "    Path('pid.tmp').write_text(str(os.getpid()))\n"
        "    Path('pid.tmp').rename('pid')\n"
        "    while not Path('go').exists():\n"
        "        time.sleep(0.01)\n",
        "conftest.py",
    )
    process = one.start("benches")
    assert eventually((one.path / "pid").exists)
    (worker,) = pids(one.path / "pid")
    process.kill()
    process.communicate(timeout=60)
    (one.path / "go").touch()
    assert eventually(lambda: not alive(worker))
    assert [record["kind"] for record in one.records()] == []


def test_when_the_time_is_up_nothing_counts_as_passed(stored):
    result = stored.run("--perfgate-max-total=1ms", "benches")
    assert result.ret == 5  # nothing was measured
    assert list(stored.outcomes.values()) == [("inconclusive", "out-of-time")]
    result.assert_outcomes()
    result.stdout.fnmatch_lines(["*out-of-time*", "*nothing was measured*"])


def test_when_the_time_is_up_what_is_undecided_says_so(waiting):
    result = waiting.run("--perfgate-max-total=3s", "benches")
    assert list(waiting.outcomes.values()) == [("inconclusive", "out-of-time")]
    assert result.ret == 0
    result.assert_outcomes()
    result.stdout.fnmatch_lines(["*1 of at least 3 runs*"])


def test_a_second_session_in_the_same_folder_is_refused(waiting):
    first = reach_second_run(waiting)
    with contextlib.ExitStack() as stack:
        stack.callback(first.communicate, timeout=60)
        stack.callback(first.kill)
        second = waiting.run("--perfgate-runs=3:3", "benches")
    assert second.ret == 3
    second.stdout.fnmatch_lines([f"*in use by the session of process {first.pid}*"])
