"""The machine before a session: waited for, refused, held."""

import os

import pytest

from pytest_perfgate.measure.device_lock import DeviceLock

ONE = "benches/bench_a.py::bench_one"


def test_others_that_leave_in_time_are_waited_for(stored):
    stored.device(salt=1, machine={"busy_s": 30})
    result = stored.run()
    assert result.ret == 0, result.stdout.str()
    result.stdout.fnmatch_lines(
        ["note: waiting up to 60 s: process * (python train.py) computes on the GPU"]
    )


@pytest.mark.parametrize(
    ("machine", "reason", "words"),
    [
        ({"busy_s": 90}, "busy", "(python train.py) computes on the GPU after 60 s"),
        ({"hot_s": 90}, "throttled", "the GPU is 0 °C below the limit at which it slo"),
        ({"throttled_s": 90}, "throttled", "held down: hardware thermal slowdown"),
        ({"lost": True}, "device-lost", "the driver has lost the GPU (GPU is lost)"),
    ],
)
def test_an_unfit_machine_measures_nothing(stored, machine, reason, words):
    stored.device(salt=1, machine=machine)
    result = stored.run()
    assert result.ret == 12
    assert stored.outcomes == {ONE: ("invalid", reason)}
    verdict = stored.report["results"][0]["verdict"]
    assert words in verdict["detail"]
    assert list(stored.records()) == []  # not one worker was started
    result.stdout.fnmatch_lines(["nothing was measured (1 not validly measured)*"])


@pytest.fixture
def hungry(one):
    """A benchmark that took three GiB when it was recorded, and one more for CUDA."""
    one.bench("def bench_one(perfgate):\n    perfgate.inference(int)\n")
    law = {"*": {"peak_memory": 3 << 30}}
    one.device(law)
    one.adopt("benches")
    return lambda **machine: one.device(law, salt=1, machine=machine) or one


def test_memory_is_waited_for_as_a_baseline_tells(hungry):
    project = hungry(full_s=30)
    result = project.run("--perfgate-runs=3:3")
    assert result.ret == 0, result.stdout.str()
    result.stdout.fnmatch_lines(
        ["note: waiting up to 60 s: a benchmark took 4.00 GiB when*"]
    )


def test_too_little_memory_measures_nothing(hungry):
    project = hungry(full_s=90)
    assert project.run("--perfgate-runs=3:3").ret == 12
    assert project.outcomes == {ONE: ("invalid", "busy")}
    assert project.report["results"][0]["verdict"]["detail"].endswith(
        "a benchmark took 4.00 GiB when it was recorded, and 1.00 GiB of the GPU's "
        "memory is free after 60 s"
    )


def test_an_unfit_machine_records_nothing(one):
    one.device(machine={"busy_s": 90})
    assert one.run("--perfgate-update").ret == 12
    assert not one.baseline().exists()


@pytest.fixture
def on_cpu(one, monkeypatch):
    """A project that is measured on the processor itself."""
    monkeypatch.delenv("_PERFGATE_FAKE")
    one.options = ("--perfgate-device=cpu", "--perfgate-on-missing=warn")
    one.options += ("--perfgate-runs=3:3", "--perfgate-iterations=20")
    return one


@pytest.fixture
def hold():
    """Hold the lock of the processor in this process."""
    locks = []

    def take(environ):
        locks.append(DeviceLock("cpu", environ=environ))
        assert locks[-1].acquire(patience_s=0) is None

    yield take
    for lock in locks:
        lock.release()


def test_two_sessions_on_one_device_wait_for_each_other(on_cpu, hold):
    hold(dict(os.environ))  # not this process's own: as another user's session
    result = on_cpu.run(*on_cpu.options, "--perfgate-max-total=0.01")
    assert result.ret == 12
    assert on_cpu.outcomes == {ONE: ("invalid", "busy")}
    told = on_cpu.report["results"][0]["verdict"]["detail"]
    assert f"held for 0 s by process {os.getpid()} of " in told
    result.stdout.fnmatch_lines(
        [f"perfgate: waiting up to 0 s for the device, held by process {os.getpid()} *"]
    )


def test_a_session_inside_a_session_is_let_through(on_cpu, hold):
    hold(os.environ)
    result = on_cpu.run(*on_cpu.options)
    assert result.ret in {0, 13}, result.stdout.str()
    assert on_cpu.outcomes[ONE][0] == "no-baseline"
    assert "_PERFGATE_HELD" in os.environ  # the holder's, still


def test_the_lock_is_free_again_after_a_session(on_cpu):
    on_cpu.run(*on_cpu.options)
    assert "_PERFGATE_HELD" not in os.environ
    lock = DeviceLock("cpu")
    assert lock.acquire(patience_s=0) is None
    lock.release()


def test_a_device_that_cannot_be_locked_is_measured_and_noted(
    on_cpu, monkeypatch, tmp_path
):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("_PERFGATE_LOCKS", str(tmp_path / "file"))
    result = on_cpu.run(*on_cpu.options)
    assert on_cpu.outcomes[ONE][0] == "no-baseline"
    result.stdout.fnmatch_lines(["note: the device could not be locked (*"])


def test_there_are_no_clocks_to_lock_on_a_processor(on_cpu):
    result = on_cpu.run(*on_cpu.options, "--perfgate-lock-clocks")
    assert result.ret == 4
    result.stderr.fnmatch_lines(
        ["*--perfgate-lock-clocks: cpu has no clocks of a GPU*"]
    )
