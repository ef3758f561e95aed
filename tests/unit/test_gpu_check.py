"""The check for machines with a GPU: its arithmetic, and what it says without one."""

import contextlib
import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_perfgate.measure.device import Timed
from pytest_perfgate.measure.health import DeviceReading, GpuProcess
from pytest_perfgate.measure.nvml import device_names
from pytest_perfgate.measure.traces import Event, Trace
from pytest_perfgate.model import METRICS, Health, Measurement, Plan, Samples
from pytest_perfgate.store import encode_measurement

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "gpu_check.py"


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("gpu_check", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    sys.modules["gpu_check"] = module  # its dataclasses look themselves up
    spec.loader.exec_module(module)
    yield module
    del sys.modules["gpu_check"]


@pytest.mark.parametrize(
    ("seen", "status"),
    [(105.0, "ok"), (95.0, "ok"), (111.0, "FAILED"), (0.0, "FAILED")],
)
def test_one_figure_is_held_against_another(script, seen, status):
    check = script.near("x", seen, 100.0, 0.10, "µs")
    assert check.status == status
    assert f"{seen:.6g} µs against 100 µs" in check.figures


def test_nothing_is_near_to_nothing(script):
    assert script.near("x", 1.0, 0.0, 0.10, "µs").status == "FAILED"


def test_all_conditions_must_hold(script):
    assert script.holds("x", "", True, True).status == "ok"
    assert script.holds("x", "", True, False).status == "FAILED"


def test_counters_that_go_back_or_vanish(script):
    first = {"a": 1.0, "b": 2.0, "c": 3.0}
    assert script.decreased(first, {"a": 1.0, "b": 1.5}) == ["b", "c"]
    assert script.decreased(first, first) == []


def make(script, *statuses):
    return [
        script.Check(name=f"check-{index}", status=status, figures="f", took_s=1.5)
        for index, status in enumerate(statuses)
    ]


def test_a_line_a_check_and_their_number_last(script):
    text = script.table(make(script, "ok", "FAILED", "skipped", "ok"))
    assert text.splitlines() == [
        "check-0  ok          1.5 s",
        "check-1  FAILED      1.5 s",
        "check-2  skipped     1.5 s",
        "check-3  ok          1.5 s",
        "2 ok, 1 FAILED, 1 skipped",
    ]


@pytest.mark.parametrize(
    ("statuses", "code"),
    [(["ok"], 0), (["ok", "skipped"], 0), (["ok", "FAILED"], 1), (["skipped"], 1)],
)
def test_what_was_not_seen_to_be_well_is_no_success(script, statuses, code):
    assert script.exit_code(make(script, *statuses)) == code


def test_what_is_written(script):
    text = script.as_json(make(script, "ok", "FAILED"), {"gpu": "G"})
    content = json.loads(text)
    assert content["exit_code"] == 1
    assert content["machine"] == {"gpu": "G"}
    assert [check["status"] for check in content["checks"]] == ["ok", "FAILED"]


def test_of_other_processes_only_the_number_is_kept(script):
    reading = {"sm_mhz": 1980.0, "processes": [{"pid": 7, "name": "secret"}]}
    assert script.without_names(reading) == {"sm_mhz": 1980.0, "processes": 1}
    assert script.without_names({"processes": None}) == {"processes": None}


def test_a_check_that_raises_has_failed_and_says_so(script, capsys):
    def broken():
        raise RuntimeError("no kernel\nimage")

    check = script.attempt("x", broken)
    assert (check.status, check.figures) == ("FAILED", "RuntimeError: no kernel")
    assert capsys.readouterr().out == "x: FAILED: RuntimeError: no kernel\n"


def make_runs(*medians):
    spread = (0.998, 0.999, 1.0, 1.001, 1.002) * 20
    return [tuple(median * each for each in spread) for median in medians]


def test_the_gate_judges_runs(script):
    base = make_runs(1.0, 1.003, 0.997, 1.002, 0.998, 1.0)
    assert script.judged("a", base[::2], base[1::2], red=False).status == "ok"
    slowed = make_runs(1.1, 1.103, 1.097)
    seen = script.judged("a", base, slowed, red=True)
    assert seen.status == "ok"
    assert seen.figures == (
        "6 runs against 3: regressed, medians +10.0% at a budget of 5%"
    )
    assert script.judged("a", base, slowed, red=False).status == "FAILED"
    assert script.judged("a", base[::2], base[1::2], red=True).status == "FAILED"


def test_runs_are_read_from_what_workers_wrote(script, tmp_path):
    samples = (Samples(metric=METRICS["latency"], values=(0.1, 0.2)),)
    for run in (1, 2):
        made = Measurement(
            benchmark="b",
            nodeid="b",
            run=run,
            plan=Plan(iterations=2, warmup=0),
            samples=samples,
            health=Health(),
            clock_tick_s=1e-9,
        )
        record = {"kind": "measured", "measurement": encode_measurement(made)}
        text = "".join(
            f"00000000 1 {json.dumps(each)}\n" for each in ({"kind": "hello"}, record)
        )
        (tmp_path / f"run-00{run}.records.jsonl").write_text(text)
    assert script.read_runs(tmp_path) == [(0.1, 0.2), (0.1, 0.2)]


# -- the checks themselves, on a GPU that is made of numbers


class Believed:
    """A bench whose GPU takes 200 µs a product, and the host 5 µs a launch."""

    def __init__(
        self, *, planted=1.0, extra_launches=0, back=False, flushed=1.5, leak=0
    ):
        self.flushed, self.leak, self.held = flushed, leak, 77
        self.calls = {self.product: 1, self.products: 20, self.many_tiny: 200}
        self.device = self
        self.telemetry = self
        self.slowdown = 0.0
        self.planted = planted
        self.extra = extra_launches
        self.readings = [1.0, 0.5 if back else 1.5]

    def product(self):
        pass

    def products(self):
        pass

    def many_tiny(self):
        pass

    def synchronize(self):
        pass

    def begin(self, benchmark, *, run, slowdown):
        self.slowdown = slowdown * self.planted

    def half_the_cache(self):
        return self.product

    def allocated(self):
        return self.held

    @contextlib.contextmanager
    def flushing(self):
        yield "a flush"
        self.held += self.leak

    def time_calls(self, call, *, count, inner, flush=None):
        kernels = self.calls[call]
        each_us = 2 if call == self.many_tiny else 200
        each_us *= self.flushed if flush else 1
        launch_us = 5 * kernels
        span_us = max(launch_us, each_us * kernels) * (1 + self.slowdown)
        return Timed(
            host_ns=[int((span_us + 5) * 1e3)] * count,
            device_ns=[span_us * 1e3] * count,
            result=None,
            enqueue_ns=[launch_us * 1000] * count,
        )

    def timed(self, call, count=50, flush=None):
        return self.time_calls(call, count=count, inner=1, flush=flush)

    def trace(self, call):
        number = self.calls[call] + self.extra
        launches = [
            Event(category="cuda_runtime", name="cudaLaunchKernel", at_us=0.0)
        ] * number
        kernels = [
            Event(category="kernel", name="k", at_us=0.0, lasts_us=200.0)
        ] * number
        return Trace(events=(*launches, *kernels))

    def read(self, *, processes):
        assert processes
        return DeviceReading(
            time_s=0.0,
            sm_mhz=1980.0,
            throttled_s={"sw_power_cap": self.readings.pop(0)},
            processes=(GpuProcess(pid=7, name="other"),),
        )


def test_checks_of_a_gpu_that_is_well(script, tmp_path):
    file = tmp_path / "driver.json"
    checks = [
        script.against_profiler(Believed()),
        script.host_waits(Believed()),
        script.host_bound(Believed()),
        script.launches(Believed()),
        script.cache_flush(Believed()),
        script.planted(Believed(), 0.05),
        script.planted(Believed(), 0.10),
        script.health(Believed(), file),
    ]
    assert [check.status for check in checks] == ["ok"] * 8, checks
    assert [each["processes"] for each in json.loads(file.read_text())] == [1, 1]
    assert "other" not in file.read_text()


def test_checks_of_a_gpu_that_is_not(script):
    checks = [
        script.against_profiler(Believed(extra_launches=5)),
        script.launches(Believed(extra_launches=1)),
        script.cache_flush(Believed(flushed=1.04)),
        script.cache_flush(Believed(leak=1)),
        script.planted(Believed(planted=0.0), 0.05),
        script.planted(Believed(planted=2.0), 0.10),
        script.health(Believed(back=True), None),
    ]
    assert [check.status for check in checks] == ["FAILED"] * 7, checks


@pytest.mark.skipif(bool(device_names()), reason="this machine has a GPU")
def test_without_a_gpu_it_says_so_and_checks_nothing(tmp_path):
    file = tmp_path / "seen.json"
    command = [sys.executable, str(SCRIPT), "--json", str(file)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 5
    assert ended.stdout == ""
    assert ended.stderr.startswith("no GPU, nothing checked: device 'cuda:0' cannot")
    assert not file.exists()
