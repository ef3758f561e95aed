"""The check for machines with a GPU: its arithmetic, and what it says without one."""

import contextlib
import importlib.util
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from pytest_perfgate.measure import cuda, operators, peaks
from pytest_perfgate.measure.device import Hidden, Pipelined, Timed
from pytest_perfgate.measure.flops import Flops
from pytest_perfgate.measure.health import DeviceReading, GpuProcess
from pytest_perfgate.measure.nvml import device_names
from pytest_perfgate.measure.traces import Event, Trace
from pytest_perfgate.measured import METRICS, Health, Measurement, Plan, Samples
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

    numbers = "torch.bfloat16"
    several = 20
    name = "cuda:0"

    def __init__(
        self,
        *,
        planted=1.0,
        extra_launches=0,
        back=False,
        flushed=1.5,
        leak=0,
        waits=True,
        launch_us=5,
        own_wait=False,
        aside_in_span=False,
        graph=1.0,
        gap_us=0,
        late=1.0,
    ):
        self.flushed, self.leak, self.held = flushed, leak, 77
        self.calls = {
            self.product: 1,
            self.products: 20,
            self.many_tiny: 200,
            self.replay: 10 * graph,
            self.one_tiny: 1,
        }
        self.gap_us, self.late = gap_us, late
        self.device = self
        self.telemetry = self
        self.slowdown = 0.0
        self.planted = planted
        self.extra = extra_launches
        self.readings = [1.0, 0.5 if back else 1.5]
        self.waits, self.launch_us, self.own_wait = waits, launch_us, own_wait
        self.aside_in_span = aside_in_span
        self.torch = SimpleNamespace(cuda=self, randn=lambda *_, **__: MATRIX)

    def product(self):
        pass

    def products(self):
        pass

    def many_tiny(self):
        pass

    def one_tiny(self):
        pass

    def read_back(self):
        pass

    def replay(self):
        pass

    def synchronize(self):
        pass

    def side_stream(self):
        return contextlib.nullcontext()

    # what torch.cuda has for graphs

    CUDAGraph = Stream = current_stream = lambda self: self
    stream = graph = lambda self, _: contextlib.nullcontext()

    def wait_stream(self, stream):
        pass

    def get_device_name(self, name):
        return f"GPU {name}"

    # the device

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
        kernels = self.calls.get(call, 20) * inner
        each_us = 2 if call in {self.many_tiny, self.one_tiny} else 200
        each_us *= self.flushed if flush else 1
        launch_us = self.launch_us * kernels
        span_us = max(launch_us, each_us * kernels) * (1 + self.slowdown)
        host_us = span_us + 5 if self.waits else launch_us
        if call not in self.calls and not self.aside_in_span:
            span_us = 5
        if call == self.one_tiny:
            span_us += self.gap_us * inner if inner > 1 else 3
        return Timed(
            host_ns=[int(host_us * 1e3)] * count,
            device_ns=[span_us * 1e3] * count,
            result=None,
            enqueue_ns=[launch_us * 1000] * count,
        )

    def pipelined(self, call, *, count, own_ns):
        del own_ns
        period_ns = 5_000 if call == self.one_tiny else 200_000
        return Pipelined(
            period_ns=[float(period_ns)] * count, wall_ns=period_ns * count
        )

    def hidden(self, call, *, count, own_ns, hold_ns):
        del call, own_ns
        return Hidden(
            period_ns=[2e3 if hold_ns else 5e3] * count,
            handed_ns=round(5_000 * count * (self.late if hold_ns else 1)),
            held_ns=hold_ns,
        )

    def timed(self, call, count=50, flush=None, inner=1):
        return self.time_calls(call, count=count, inner=inner, flush=flush)

    def trace(self, call):
        number = int(self.calls.get(call, 20)) + self.extra
        runtime = {"category": "cuda_runtime", "at_us": 0.0}
        launches = [Event(name="cudaLaunchKernel", **runtime)] * number
        waits = [Event(name="cudaDeviceSynchronize", **runtime)] * self.own_wait
        if call == self.read_back:
            waits += [
                Event(name="cudaStreamSynchronize", **runtime),
                Event(
                    category="gpu_memcpy",
                    name="Memcpy DtoH (Device -> Pinned)",
                    at_us=0.0,
                    size_bytes=4,
                ),
            ]
        kernels = [
            Event(
                category="kernel",
                name="k",
                at_us=0.0,
                lasts_us=2.0 if call == self.one_tiny else 200.0,
            )
        ] * number
        return Trace(events=(*launches, *waits, *kernels))

    def read(self, *, processes):
        assert processes
        return DeviceReading(
            time_s=0.0,
            sm_mhz=1980.0,
            throttled_s={"sw_power_cap": self.readings.pop(0)},
            processes=(GpuProcess(pid=7, name="other"),),
        )


class Matrix:
    def __matmul__(self, other):
        return self


MATRIX = Matrix()


@pytest.fixture
def counted(monkeypatch):
    """Let a product count so many operations, and reach such a share of the peak."""

    def make(*, total=2 * 8192**3, share=0.7):
        flops = Flops()
        flops.by_kind["matmul", "bfloat16"] = total
        monkeypatch.setattr(
            operators, "dispatched", lambda call: SimpleNamespace(flops=flops)
        )
        monkeypatch.setattr(peaks, "utilisation", lambda *_: share)

    return make


def test_checks_of_a_gpu_that_is_well(script, tmp_path, counted):
    counted()
    file = tmp_path / "driver.json"
    seen = [
        (title, look()) for title, look in script.looks_at(Believed(), snapshot=file)
    ]
    assert [check.status for _, check in seen] == ["ok"] * 14, seen
    assert [check.name for _, check in seen] == [title for title, _ in seen]
    assert [each["processes"] for each in json.loads(file.read_text())] == [1, 1]
    assert "other" not in file.read_text()


@pytest.mark.parametrize(
    ("look", "fault"),
    [
        ("against_profiler", {"extra_launches": 5}),
        ("host_waits", {"waits": False}),
        ("launches", {"extra_launches": 1}),
        ("waits", {"own_wait": True}),
        ("host_bound", {"launch_us": 1}),
        ("host_bound", {"launch_us": 190}),
        ("other_stream", {"aside_in_span": True}),
        ("other_stream", {"waits": False}),
        ("against_graph", {"graph": 1.2}),
        ("short_calls", {"gap_us": 4}),
        ("hidden_launches", {"late": 1.3}),
        ("cache_flush", {"flushed": 1.04}),
        ("cache_flush", {"leak": 1}),
    ],
)
def test_a_planted_fault_is_seen(script, look, fault):
    assert getattr(script, look)(Believed(**fault)).status == "FAILED"
    assert getattr(script, look)(Believed()).status == "ok"


def test_faults_of_health_and_of_planted_slowdowns(script):
    checks = [
        script.planted(Believed(planted=0.0), 0.05),
        script.planted(Believed(planted=2.0), 0.10),
        script.health(Believed(back=True), None),
    ]
    assert [check.status for check in checks] == ["FAILED"] * 3, checks
    lower_clock = script.planted(Believed(planted=1.3), 0.10)
    assert lower_clock.status == "ok"


@pytest.mark.parametrize(
    ("says", "status"),
    [
        ({"total": 2 * 8192**3 - 1}, "FAILED"),
        ({"share": 0.2}, "FAILED"),
        ({"share": 1.01}, "FAILED"),
        ({"share": "not in the table"}, "skipped"),
        ({"share": "not in the table", "total": 1}, "FAILED"),
    ],
)
def test_faults_of_operations_and_peaks(script, counted, says, status):
    counted(**says)
    assert script.utilised(Believed()).status == status


@pytest.mark.parametrize(
    ("fast", "one_ms", "kind", "several"),
    [(True, 0.2, "bfloat16", 20), (True, 0.5, "bfloat16", 8), (False, 35, "half", 1)],
)
def test_what_is_computed_fits_the_gpu(
    script, monkeypatch, fast, one_ms, kind, several
):
    """Else a card of seven years ago would take minutes over it."""

    class Device:
        def time_calls(self, call, *, count, inner, flush):
            call()
            return Timed(
                host_ns=[int(one_ms * 1e6)] * count, device_ns=None, result=None
            )

    made = []
    torch = SimpleNamespace(
        cuda=SimpleNamespace(is_bf16_supported=lambda *, including_emulation: fast),
        bfloat16="bfloat16",
        float16="half",
        randn=lambda *_, device, dtype: made.append((device, dtype)) or MATRIX,
        ones=lambda *_, device: None,
    )
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setattr(cuda, "open_cuda", lambda name: Device())
    bench = script.Bench("cuda:0")
    assert bench.several == several
    assert made == [("cuda:0", kind)]


# -- whatever happens, what was seen is kept


def look_at(script, monkeypatch, tmp_path, bench):
    """Look at a GPU as the process does that the script starts for it."""
    monkeypatch.setattr(script, "Bench", bench)
    notes = tmp_path / "notes"
    assert script.look_at_device("cuda:0", notes, None) == 0
    log = script.Log(path=tmp_path / "seen.json")
    script.read_notes(notes, "unused", log)
    return log


def test_one_check_that_fails_costs_no_other(script, monkeypatch, tmp_path, counted):
    counted()

    def broken(bench):
        raise RuntimeError("no kernel image")

    monkeypatch.setattr(script, "launches", broken)
    monkeypatch.setattr(script, "machine_of", lambda bench: {"gpu": "G"})
    log = look_at(script, monkeypatch, tmp_path, lambda name: Believed())
    statuses = {check.name: check.status for check in log.checks}
    assert statuses.pop("launches") == "FAILED"
    assert set(statuses.values()) == {"ok"}
    assert len(statuses) == 14
    written = json.loads((tmp_path / "seen.json").read_text())
    assert written["machine"] == {"gpu": "G"}
    assert written["exit_code"] == 1


def test_a_gpu_without_memory_is_a_check_that_failed(script, monkeypatch, tmp_path):
    def full(name):
        raise MemoryError("out of memory")

    (check,) = look_at(script, monkeypatch, tmp_path, full).checks
    assert (check.name, check.status) == ("setup", "FAILED")
    assert check.figures == "MemoryError: out of memory"


def test_a_check_that_takes_too_long_is_ended(script):
    with pytest.raises(TimeoutError, match="not done after 0 s"), script.alarm(0.01):
        signal.pause()
    assert signal.getsignal(signal.SIGALRM) is signal.SIG_DFL


OK = {"name": "a", "status": "ok", "figures": "f", "took_s": 1.0}


@pytest.mark.parametrize(
    ("lines", "seen"),
    [
        (None, ["setup: FAILED: exit -9"]),
        (['{"begun": "a"}'], ["a: FAILED: exit -9"]),
        (['{"begun": "a"}', json.dumps({"check": OK})], ["a: ok: f"]),
        (
            ['{"begun": "a"}', json.dumps({"check": OK}), '{"begun": "b"}', '{"che'],
            ["a: ok: f", "b: FAILED: exit -9"],
        ),
    ],
)
def test_what_a_process_that_died_had_noted(script, tmp_path, lines, seen):
    notes = tmp_path / "notes"
    if lines is not None:
        notes.write_text("\n".join(lines))
    log = script.Log(path=tmp_path / "seen.json")
    script.read_notes(notes, "exit -9", log)
    assert [f"{c.name}: {c.status}: {c.figures}" for c in log.checks] == seen
    written = json.loads((tmp_path / "seen.json").read_text())
    assert len(written["checks"]) == len(seen)


PAUSE = "import signal; signal.pause()"
DEAF = f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); {PAUSE}"


@pytest.mark.parametrize("program", [PAUSE, DEAF])
def test_a_process_that_hangs_is_ended(script, monkeypatch, program):
    monkeypatch.setattr(script, "PATIENCE_S", 0.2)
    assert script.bounded([sys.executable, "-c", program], 0.2) is None


def test_a_process_that_ends_says_how(script):
    assert script.bounded([sys.executable, "-c", "raise SystemExit(3)"], 60.0) == 3


def test_a_gpu_that_hangs_costs_what_is_behind_it(script, monkeypatch, tmp_path):
    def bounded(command, limit_s):
        notes = Path(command[command.index("--notes") + 1])
        notes.write_text(json.dumps({"check": OK}) + '\n{"begun": "b"}\n')
        assert command[1] == str(SCRIPT)
        assert limit_s == 100.0

    monkeypatch.setattr(script, "bounded", bounded)
    log = script.Log(path=None)
    script.check_device(log, "cuda:0", 100.0, tmp_path / "driver.json")
    assert [check.status for check in log.checks] == ["ok", "FAILED"]
    assert "does not answer, or is slow" in log.checks[1].figures


def test_a_signal_ends_it_with_all_that_was_seen(script, monkeypatch, tmp_path):
    def interrupted(log, *_):
        log.add(script.Check(**OK))
        os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(script, "resolve_device", lambda spec: spec)
    monkeypatch.setattr(script, "check_device", interrupted)
    monkeypatch.setattr(script, "check_gate", lambda *_: pytest.fail("went on"))
    before = signal.getsignal(signal.SIGTERM)
    file = tmp_path / "seen.json"
    try:
        assert script.main(["--json", str(file)]) == 1
    finally:
        signal.signal(signal.SIGTERM, before)
    written = json.loads(file.read_text())["checks"]
    assert [(check["name"], check["status"]) for check in written] == [
        ("a", "ok"),
        ("whole", "FAILED"),
    ]
    assert written[1]["figures"] == "ended by SIGTERM"


def test_the_gate_is_left_out_where_there_is_no_time(script, monkeypatch):
    monkeypatch.setattr(script, "same_code", lambda *_: pytest.fail("begun"))
    log = script.Log(path=None)
    script.check_gate(log, script.time.monotonic() + 59)
    assert [check.status for check in log.checks] == ["skipped", "skipped"]


def test_without_runs_nothing_slowed_is_tried(script, monkeypatch):
    def broken(runs, limit_s):
        raise RuntimeError("no runs")

    monkeypatch.setattr(script, "same_code", broken)
    monkeypatch.setattr(script, "slowed_code", lambda *_: pytest.fail("begun"))
    log = script.Log(path=None)
    script.check_gate(log, script.time.monotonic() + 9_999)
    assert [check.status for check in log.checks] == ["FAILED", "skipped"]


def test_a_session_of_the_gate_that_hangs_says_so(script, monkeypatch):
    def bounded(command, limit_s, *, stdout, stderr):
        assert stdout is stderr
        report = Path(command[command.index("--perfgate-report") + 1])
        assert not report.exists()  # a session refuses a folder that is not its own
        stdout.write("collected 1 item\n\n")

    monkeypatch.setattr(script, "bounded", bounded)
    with pytest.raises(RuntimeError, match="0 of 6 runs, not at its end after 70 s"):
        script.gate_runs(6, 70.0)


@pytest.mark.skipif(bool(device_names()), reason="this machine has a GPU")
def test_without_a_gpu_it_says_so_and_checks_nothing(tmp_path):
    file = tmp_path / "seen.json"
    command = [sys.executable, str(SCRIPT), "--json", str(file)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 5
    assert ended.stdout == ""
    assert ended.stderr.startswith("no GPU, nothing checked: device 'cuda:0' cannot")
    assert not file.exists()
