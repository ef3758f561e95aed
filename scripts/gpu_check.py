"""Check on a machine with a GPU what no machine without one can show.

Timing is held against torch's profiler and against a captured graph, counts against
a trace, planted slowdowns against the clock, operations against the table of peaks,
and identical code against itself through the whole gate. Takes under four minutes.

    python scripts/gpu_check.py [--json PATH] [--snapshot PATH] [--seconds 220]

Exit code 0 where all is well, 1 where a check failed, 5 without a GPU.

What computes on the GPU does so in a process of its own, which writes down each check
as it ends: a GPU that hangs, or a crash, costs the check that it was in and those
behind it. The JSON is written after every check, whatever comes later; a signal that
ends the script is a check that failed.
"""

import argparse
import contextlib
import json
import math
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from pytest_perfgate.api import compare
from pytest_perfgate.errors import DeviceUnavailable
from pytest_perfgate.measure.device import resolve_device
from pytest_perfgate.measure.flushing import Flush
from pytest_perfgate.measure.lengthening import calls_needed
from pytest_perfgate.model import Outcome
from pytest_perfgate.store import decode_measurement
from pytest_perfgate.workloads.hidden import HOLD_MARGIN

ROOT = Path(__file__).resolve().parent.parent
NO_GPU = 5
OK, FAILED, SKIPPED = "ok", "FAILED", "skipped"
FULL_S = 220.0
SPAN_TOLERANCE, GRAPH_TOLERANCE = 0.10, 0.10
"""Of the kernels' time: launches and waits are next to nothing of four milliseconds,
and the clock may differ by a few per cent from one pass to the next."""
PLANTED = (0.05, 0.10)
PLANTED_TOLERANCE = 0.4
"""Of what was planted. The slowdown is a number of cycles, found out with the clock of
a GPU that has just begun, and under load the clock may be a third lower."""
SESSION = (
    "--perfgate",
    "benches/bench_encoder.py",
    "-k",
    "1-short",
    "--perfgate-max-time=0.2",
    "--perfgate-on-missing=warn",
)
BUDGET = 0.05
MOST_PRODUCTS = 20
PRODUCTS_S = 4e-3
SESSION_S = 60.0
"""Without so much time left, no session of the gate is begun."""
DEVICE_S = 100.0
"""For all that is looked at without the gate."""
EACH_S = 25.0
"""For one look at the GPU; most take a second."""
PATIENCE_S = 10.0
"""For a process to end once it was asked to."""
HOST_BOUND = 0.8
LEAST_MFU = 0.3
QUEUED = 150
FLOOR = 0.9
"""Of a kernel's own time: a profiler makes it no shorter than it is."""
FLUSHED = 1.05
"""A sum of numbers that the cache could hold takes at least so many times as long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One thing that was looked at, and what was seen."""

    name: str
    status: str
    figures: str
    took_s: float = 0.0


# -- what is pure


def near(name: str, seen: float, wanted: float, tolerance: float, unit: str) -> Check:
    """Hold one number against another; both are shown."""
    off = abs(seen / wanted - 1) if wanted else float("inf")
    return Check(
        name=name,
        status=OK if off <= tolerance else FAILED,
        figures=f"{seen:.6g} {unit} against {wanted:.6g} {unit} "
        f"({off:.1%} apart, {tolerance:.0%} allowed)",
    )


def holds(name: str, figures: str, *conditions: bool) -> Check:
    """Pass where all conditions do."""
    return Check(name=name, status=OK if all(conditions) else FAILED, figures=figures)


def decreased(first: dict[str, float], last: dict[str, float]) -> list[str]:
    """Name the counters that went back, or vanished."""
    return [name for name, value in first.items() if last.get(name, -1.0) < value]


def table(checks: Sequence[Check]) -> str:
    """One line a check, and a last one that counts them."""
    widest = max((len(check.name) for check in checks), default=0)
    lines = [
        f"{check.name:<{widest}}  {check.status:<7}  {check.took_s:6.1f} s"
        for check in checks
    ]
    counts = ", ".join(
        f"{sum(check.status == status for check in checks)} {status}"
        for status in (OK, FAILED, SKIPPED)
    )
    return "\n".join([*lines, counts])


def exit_code(checks: Sequence[Check]) -> int:
    """Fail where anything failed, or where nothing was seen to be well."""
    failed = any(check.status == FAILED for check in checks)
    return int(failed or not any(check.status == OK for check in checks))


def as_json(checks: Sequence[Check], machine: dict[str, Any]) -> str:
    content = {
        "schema": "gpu-check/1",
        "machine": machine,
        "exit_code": exit_code(checks),
        "checks": [asdict(check) for check in checks],
    }
    return json.dumps(content, indent=2) + "\n"


def without_names(reading: dict[str, Any]) -> dict[str, Any]:
    """Keep of other processes only how many there were."""
    processes = reading.get("processes")
    count = None if processes is None else len(processes)
    return {**reading, "processes": count}


def read_runs(folder: Path) -> list[tuple[float, ...]]:
    """Read the latencies that each worker of a session wrote down."""
    found = []
    for file in sorted(folder.glob("*.records.jsonl")):
        for line in file.read_text(encoding="utf-8").splitlines():
            record = json.loads(line.split(" ", 2)[2])  # behind a checksum and a length
            if record["kind"] == "measured":
                series = decode_measurement(record["measurement"]).samples
                found += [s.values for s in series if s.metric.name == "latency"]
    return found


def judged(
    name: str,
    base: Sequence[Sequence[float]],
    candidate: Sequence[Sequence[float]],
    *,
    red: bool,
) -> Check:
    """Let the gate judge runs; `red` says whether it has to see a regression."""
    judgement = compare(base, candidate, budget=BUDGET)
    ratio = statistics.median(map(statistics.median, candidate)) / statistics.median(
        map(statistics.median, base)
    )
    figures = (
        f"{len(base)} runs against {len(candidate)}: {judgement.outcome.value}, "
        f"medians {ratio - 1:+.1%} at a budget of {BUDGET:.0%}"
    )
    return holds(name, figures, (judgement.outcome is Outcome.REGRESSED) is red)


def attempt(name: str, look: Callable[[], Check]) -> Check:
    """Make one check; what it raises is a failure that says so."""
    started = time.monotonic()
    try:
        found = look()
    except Exception as error:  # noqa: BLE001 (the checks after this one are to be made, too)
        text = f"{type(error).__name__}: {error}".splitlines()[0]
        found = Check(name=name, status=FAILED, figures=text)
    took_s = time.monotonic() - started
    print(f"{found.name}: {found.status}: {found.figures}", flush=True)
    return Check(**{**asdict(found), "took_s": round(took_s, 2)})


# -- what needs a GPU


class Bench:
    """Calls on one GPU, and the device that times them."""

    def __init__(self, name: str) -> None:
        import torch

        from pytest_perfgate.measure.cuda import open_cuda

        self.torch = torch
        self.device = open_cuda(name)
        # cards before Ampere compute bfloat16 without their fast units
        fast = torch.cuda.is_bf16_supported(including_emulation=False)
        self.numbers = torch.bfloat16 if fast else torch.float16
        self.left = torch.randn(4096, 4096, device=name, dtype=self.numbers)
        self.tiny = torch.ones(1, device=name)
        one_ns = statistics.median(self.timed(self.product, 5).host_ns)
        self.several = min(math.ceil(PRODUCTS_S * 1e9 / one_ns), MOST_PRODUCTS)

    def product(self) -> Any:  # noqa: ANN401 (a tensor)
        return self.left @ self.left

    def products(self) -> None:
        """Compute long enough for a launch or a wait to be next to nothing."""
        for _ in range(self.several):
            self.product()

    def many_tiny(self) -> None:
        for _ in range(200):
            self.tiny.add_(1)

    def one_tiny(self) -> None:
        self.tiny.add_(1)

    def read_back(self) -> float:
        return float(self.tiny.add_(1).item())

    def half_the_cache(self) -> Callable[[], object]:
        """Return what adds up numbers that fill half of the L2 cache."""
        known = self.torch.cuda.get_device_properties(self.device.name)
        numbers = self.torch.randn(known.L2_cache_size // 8, device=self.device.name)
        return numbers.sum

    def side_stream(self) -> Any:  # noqa: ANN401 (a context manager, to be entered often)
        return self.torch.cuda.stream(self.torch.cuda.Stream())

    def allocated(self) -> int:
        return int(self.torch.cuda.memory_allocated(self.device.name))

    def timed(
        self,
        call: Callable[[], object],
        count: int = 50,
        flush: Flush | None = None,
        inner: int = 1,
    ) -> Any:  # noqa: ANN401 (Timed)
        self.device.time_calls(call, count=5, inner=inner, flush=flush)
        return self.device.time_calls(call, count=count, inner=inner, flush=flush)

    def trace(self, call: Callable[[], object]) -> Any:  # noqa: ANN401 (Trace)
        from pytest_perfgate.measure.profiling import trace_of

        look = partial(trace_of, call, on_gpu=True, wait=self.device.synchronize)
        look()  # the first one warms the profiler
        return look()


def against_profiler(bench: Bench) -> Check:
    """Hold the span between events against the kernels in a trace."""
    span_us = statistics.median(bench.timed(bench.products).device_ns) / 1e3
    kernels = [e for e in bench.trace(bench.products).events if e.category == "kernel"]
    busy_us = sum(event.lasts_us for event in kernels)
    return near("events-profiler", span_us, busy_us, SPAN_TOLERANCE, "µs")


def host_waits(bench: Bench) -> Check:
    """Hold the host's latency against the device's span, which lies in it."""
    timed = bench.timed(bench.product)
    host_us = statistics.median(timed.host_ns) / 1e3
    span_us = statistics.median(timed.device_ns) / 1e3
    figures = f"latency {host_us:.1f} µs, device {span_us:.1f} µs"
    return holds("latency-waits", figures, host_us >= span_us > 0)


def against_graph(bench: Bench) -> Check:
    """Hold one product in a full queue against a tenth of a captured graph of ten."""
    torch = bench.torch
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        bench.product()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(10):
            bench.product()
    whole = statistics.median(bench.timed(graph.replay, 20).device_ns) / 1e4
    period = bench.device.pipelined(bench.product, count=50, own_ns=0).period_ns
    one = statistics.median(period) / 1e3
    return near("events-graph", one, whole, GRAPH_TOLERANCE, "µs")


def host_bound(bench: Bench) -> Check:
    """Look whether tiny kernels are bound by the host, and a large product is not."""

    def share(call: Callable[[], object]) -> float:
        timed = bench.timed(call, 20)
        pairs = zip(timed.enqueue_ns, timed.host_ns, strict=True)
        return statistics.median(handed / whole for handed, whole in pairs)

    tiny, large = share(bench.many_tiny), share(bench.product)
    figures = f"200 tiny kernels {tiny:.0%}, a product of 4096² {large:.0%}"
    return holds("host-bound", figures, tiny >= HOST_BOUND > large)


def launches(bench: Bench) -> Check:
    """Count the launches and kernels of two hundred operators."""
    trace = bench.trace(bench.many_tiny)
    figures = f"{trace.kernel_launches} launches and {trace.kernels} kernels of 200"
    return holds("launches", figures, trace.kernel_launches == 200 == trace.kernels)


def waits(bench: Bench) -> Check:
    """Look whether a number read back is one wait and one copy, and else there is none."""
    quiet, read = bench.trace(bench.many_tiny), bench.trace(bench.read_back)
    number, size = read.copies("d2h")
    figures = (
        f"{quiet.syncs} waits without a read; with one {read.syncs} waits and "
        f"{number} copies of {size} bytes"
    )
    seen = (quiet.syncs, quiet.copies("d2h")[0], read.syncs, number, size)
    return holds("waits", figures, seen == (0, 0, 1, 1, 4), quiet.watched)


def other_stream(bench: Bench) -> Check:
    """Look whether work on a stream that nobody joins is in the latency alone."""
    side = bench.side_stream()

    def aside() -> None:
        with side:
            bench.products()

    timed = bench.timed(aside, 20)
    host_us = statistics.median(timed.host_ns) / 1e3
    span_us = statistics.median(timed.device_ns) / 1e3
    events = [e for e in bench.trace(aside).events if e.category == "kernel"]
    busy_us = sum(event.lasts_us for event in events)
    figures = (
        f"kernels {busy_us:.0f} µs, span {span_us:.0f} µs, latency {host_us:.0f} µs"
    )
    allowed = 1 - SPAN_TOLERANCE
    return holds(
        "other-stream",
        figures,
        span_us < 0.5 * busy_us,
        host_us >= allowed * busy_us > 0,
    )


def kernel_us(bench: Bench, call: Callable[[], object]) -> float:
    """Say how long the one kernel of a call takes by itself."""
    kernels = [e for e in bench.trace(call).events if e.category == "kernel"]
    return statistics.median(event.lasts_us for event in kernels)


def short_calls(bench: Bench) -> Check:
    """Hold a tiny kernel alone between events against as many as a sample has."""
    own_us = kernel_us(bench, bench.one_tiny)
    alone_us = statistics.median(bench.timed(bench.one_tiny).device_ns) / 1e3
    inner = calls_needed(alone_us / 1e6)
    spans_ns = bench.timed(bench.one_tiny, inner=inner).device_ns
    each_us = statistics.median(spans_ns) / 1e3 / inner
    figures = (
        f"a kernel of {own_us:.2f} µs spans {alone_us:.2f} µs alone, {each_us:.2f} µs "
        f"in a row of {inner}"
    )
    return holds("short-calls", figures, FLOOR * own_us <= each_us <= alone_us)


def hidden_launches(bench: Bench) -> Check:
    """Hold tiny kernels in a queue that is ready against one that is being filled."""
    own_us = kernel_us(bench, bench.one_tiny)
    call, count = bench.one_tiny, QUEUED
    filled = bench.device.pipelined(call, count=count, own_ns=0)
    tried = bench.device.hidden(call, count=count, own_ns=0, hold_ns=0.0)
    hold_ns = tried.handed_ns * HOLD_MARGIN
    ready = bench.device.hidden(call, count=count, own_ns=0, hold_ns=hold_ns)
    filled_us = statistics.median(filled.period_ns) / 1e3
    ready_us = statistics.median(ready.period_ns) / 1e3
    figures = (
        f"a kernel of {own_us:.2f} µs comes every {filled_us:.2f} µs, and every "
        f"{ready_us:.2f} µs where {ready.handed_ns / 1e3:.0f} µs of launching are "
        f"hidden behind {ready.held_ns / 1e3:.0f}"
    )
    ahead = ready.handed_ns < ready.held_ns
    as_long = FLOOR * own_us <= ready_us <= filled_us
    return holds("launches-hidden", figures, ahead, as_long)


def cache_flush(bench: Bench) -> Check:
    """Add up numbers that fit into the L2 cache, hot and with it flushed."""
    add_up = bench.half_the_cache()
    hot_us = statistics.median(bench.timed(add_up).device_ns) / 1e3
    held = bench.allocated()
    with bench.device.flushing() as flush:
        cold_us = statistics.median(bench.timed(add_up, flush=flush).device_ns) / 1e3
    left = bench.allocated() - held
    figures = (
        f"a sum over half the L2 cache {hot_us:.1f} µs hot, {cold_us:.1f} µs flushed; "
        f"{left} bytes left behind"
    )
    return holds("cache-flush", figures, cold_us > FLUSHED * hot_us, left == 0)


def planted(bench: Bench, share: float) -> Check:
    """Plant a slowdown in every second turn and look at the ratio of medians."""
    spans: dict[float, list[float]] = {0.0: [], share: []}
    for turn in range(20):
        order = (0.0, share) if turn % 2 else (share, 0.0)
        for slowdown in order:
            bench.device.begin("check", run=0, slowdown=slowdown)
            timed = bench.device.time_calls(bench.products, count=10, inner=1)
            spans[slowdown] += timed.host_ns
    bench.device.begin("check", run=0, slowdown=0.0)
    ratio = statistics.median(spans[share]) / statistics.median(spans[0.0])
    name = f"planted-{share:.0%}"
    return near(name, ratio, 1 + share, PLANTED_TOLERANCE * share, "times")


def health(bench: Bench, snapshot: Path | None) -> Check:
    """Ask the driver before and after some work; its counters may only grow."""
    telemetry = bench.device.telemetry
    if telemetry is None:
        raise RuntimeError("nobody tells of this GPU's health")
    first = telemetry.read(processes=True)
    for _ in range(200):
        bench.product()
    bench.device.synchronize()
    last = telemetry.read(processes=True)
    if snapshot is not None:
        seen = [without_names(asdict(reading)) for reading in (first, last)]
        snapshot.write_text(json.dumps(seen, indent=2) + "\n", encoding="utf-8")
    back = decreased(dict(first.throttled_s), dict(last.throttled_s))
    figures = (
        f"SM {last.sm_mhz} MHz, {last.temperature_c} °C, {last.power_w} W, "
        f"{len(last.throttled_s)} counters, gone back: {back or 'none'}"
    )
    told = not (last.blind or last.lost)
    return holds("health", figures, told, last.sm_mhz is not None, not back)


def utilised(bench: Bench) -> Check:
    """Count a large product's operations and hold its rate against the peak."""
    from pytest_perfgate.measure.operators import dispatched
    from pytest_perfgate.measure.peaks import utilisation

    size = 8192
    kind = {"device": bench.device.name, "dtype": bench.numbers}
    left, right = (bench.torch.randn(size, size, **kind) for _ in range(2))

    def product() -> object:
        return left @ right

    flops = dispatched(product).flops
    bench.timed(product, 20)
    piped = bench.device.pipelined(product, count=50, own_ns=0)
    per_call_s = piped.wall_ns / 1e9 / 50
    share = utilisation(flops, bench.device.name, per_call_s)
    counted = flops.total == 2 * size**3
    figures = (
        f"{flops.total:,} operations, {flops.total / per_call_s / 1e12:.0f} TFLOP/s"
    )
    if isinstance(share, str):
        status = SKIPPED if counted else FAILED
        return Check(name="mfu", status=status, figures=f"{figures}; {share}")
    figures = f"{figures}, mfu {share:.2f}"
    return holds("mfu", figures, counted, LEAST_MFU < share <= 1.0)


def gate_runs(count: int, limit_s: float, *more: str) -> list[tuple[float, ...]]:
    """Let the gate measure one of our benchmarks; give each process's latencies."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pytest", *SESSION, *more]
        command += [f"--perfgate-runs={count}:{count}"]
        command += ["--perfgate-report", f"{folder}/report"]
        command += ["--perfgate-baselines", f"{folder}/none"]
        said = Path(folder) / "output"
        with said.open("w", encoding="utf-8") as output:
            code = bounded(command, limit_s, stdout=output, stderr=output)
        found = read_runs(Path(folder) / "report" / "runs")
        told = said.read_text(encoding="utf-8", errors="replace")
    if code or len(found) < count:
        last = (told.strip().splitlines() or ["no output"])[-1].strip("= ")
        ended = (
            f"not at its end after {limit_s:.0f} s" if code is None else f"exit {code}"
        )
        raise RuntimeError(f"{len(found)} of {count} runs, {ended}: {last}")
    return found[:count]


def same_code(runs: list[tuple[float, ...]], limit_s: float) -> Check:
    """Judge six processes of the same code, every second one against the others."""
    runs += gate_runs(6, limit_s)
    return judged("same-code", runs[::2], runs[1::2], red=False)


def slowed_code(runs: list[tuple[float, ...]], limit_s: float) -> Check:
    """Judge three processes with a slowdown against six without."""
    slowed = gate_runs(3, limit_s, "--perfgate-slowdown=10%")
    return judged("slowed-code-10%", runs, slowed, red=True)


def looks_at(
    bench: Bench, snapshot: Path | None
) -> list[tuple[str, Callable[[], Check]]]:
    """List what is looked at without the gate, what matters most first."""
    return [
        ("events-profiler", lambda: against_profiler(bench)),
        ("latency-waits", lambda: host_waits(bench)),
        ("launches", lambda: launches(bench)),
        ("waits", lambda: waits(bench)),
        ("host-bound", lambda: host_bound(bench)),
        ("other-stream", lambda: other_stream(bench)),
        ("health", lambda: health(bench, snapshot)),
        ("mfu", lambda: utilised(bench)),
        *(
            (f"planted-{share:.0%}", partial(planted, bench, share))
            for share in PLANTED
        ),
        ("short-calls", lambda: short_calls(bench)),
        ("launches-hidden", lambda: hidden_launches(bench)),
        ("cache-flush", lambda: cache_flush(bench)),
        ("events-graph", lambda: against_graph(bench)),
    ]


def look_at_device(name: str, notes: Path, snapshot: Path | None) -> int:
    """Make the checks in this process; write each down as it begins and as it ends."""
    with notes.open("a", encoding="utf-8") as file:

        def note(**what: object) -> None:
            file.write(json.dumps(what) + "\n")
            file.flush()

        def made(title: str, look: Callable[[], Check]) -> Check:
            note(begun=title)
            with alarm(EACH_S):
                check = attempt(title, look)
            note(check=asdict(check))
            return check

        opened: list[Bench] = []

        def setup() -> Check:
            opened.append(Bench(name))
            note(machine=machine_of(opened[0]))
            kind = str(opened[0].numbers).removeprefix("torch.")
            figures = f"{opened[0].several} products of 4096² in {kind} a call"
            return Check(name="setup", status=OK, figures=figures)

        made("setup", setup)
        for bench in opened:
            for title, look in looks_at(bench, snapshot):
                made(title, look)
    return 0


def machine_of(bench: Bench) -> dict[str, Any]:
    torch = bench.torch
    return {
        "gpu": torch.cuda.get_device_name(bench.device.name),
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
    }


# -- what keeps it in bounds


@contextlib.contextmanager
def alarm(seconds: float) -> Iterator[None]:
    """Raise in what takes longer; what hangs in the driver is ended from outside."""

    def late(number: int, frame: object) -> None:
        del number, frame
        raise TimeoutError(f"not done after {seconds:.0f} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


def bounded(command: Sequence[str], limit_s: float, **streams: Any) -> int | None:  # noqa: ANN401 (files)
    """Run a command and return its exit code; None where it had to be ended."""
    process = subprocess.Popen(command, cwd=ROOT, **streams)
    try:
        return process.wait(timeout=limit_s)
    except subprocess.TimeoutExpired:
        return None
    finally:
        end(process)


def end(process: "subprocess.Popen[bytes]") -> None:
    """Ask it to end, and a while later no longer ask."""
    for ask in (process.terminate, process.kill):
        if process.poll() is None:
            ask()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=PATIENCE_S)


@dataclass(slots=True, kw_only=True)
class Log:
    """What was seen so far; written down whenever there is more."""

    path: Path | None
    checks: list[Check] = field(default_factory=list)
    machine: dict[str, Any] = field(default_factory=dict)

    def add(self, *checks: Check) -> None:
        self.checks += checks
        self.write()

    def write(self) -> None:
        if self.path is not None:
            text = as_json(self.checks, self.machine)
            self.path.write_text(text, encoding="utf-8")

    def skip(self, name: str, figures: str) -> None:
        print(f"{name}: {SKIPPED}: {figures}", flush=True)
        self.add(Check(name=name, status=SKIPPED, figures=figures))


def read_notes(notes: Path, ended: str, log: Log) -> None:
    """Take over what the process noted; a check it did not end has failed."""
    begun = ""
    with contextlib.suppress(FileNotFoundError):
        for line in notes.read_text(encoding="utf-8").splitlines():
            with contextlib.suppress(ValueError):  # the last one may be torn
                note = json.loads(line)
                begun = note.get("begun", "" if "check" in note else begun)
                log.machine |= note.get("machine", {})
                log.checks += [Check(**note["check"])] if "check" in note else []
    if begun or not log.checks:
        name = begun or "setup"
        print(f"{name}: {FAILED}: {ended}", flush=True)
        log.checks.append(Check(name=name, status=FAILED, figures=ended))
    log.write()


def check_device(log: Log, name: str, limit_s: float, snapshot: Path | None) -> None:
    """Let a process of its own look at the GPU, and see to it that it ends."""
    with tempfile.TemporaryDirectory() as folder:
        notes = Path(folder) / "notes"
        command = [sys.executable, str(Path(__file__).resolve())]
        command += ["--device", name, "--notes", str(notes)]
        command += ["--snapshot", str(snapshot.absolute())] if snapshot else []
        ended = "the process ended in it"
        try:
            code = bounded(command, limit_s)
            late = (
                f"the GPU does not answer, or is slow: not done after {limit_s:.0f} s"
            )
            ended = late if code is None else f"{ended}, exit {code}"
        finally:
            read_notes(notes, ended, log)


def check_gate(log: Log, ends: float) -> None:
    """Let the gate judge our own code, while there is time."""
    runs: list[tuple[float, ...]] = []
    for title, judge in (("same-code", same_code), ("slowed-code-10%", slowed_code)):
        left_s = ends - time.monotonic()
        if left_s < SESSION_S:
            log.skip(title, f"{left_s:.0f} s left, {SESSION_S:.0f} s needed")
        elif title != "same-code" and not runs:
            log.skip(title, "there are no runs to hold it against")
        else:
            log.add(attempt(title, partial(judge, runs, left_s)))


class Ended(BaseException):
    """Somebody wants this script to end."""


def stop(number: int, frame: object) -> None:
    del frame
    raise Ended(f"ended by {signal.Signals(number).name}")


def all_checks(log: Log, name: str, *, ends: float, snapshot: Path | None) -> None:
    """Make them all; sessions of the gate last, in what is left of the time."""
    left_s = max(ends - time.monotonic(), 0.0)
    try:
        check_device(log, name, min(DEVICE_S, left_s), snapshot)
        check_gate(log, ends)
    except (Ended, KeyboardInterrupt) as why:
        text = str(why) or "ended by SIGINT"
        log.add(Check(name="whole", status=FAILED, figures=text))


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path, help="write what was seen to this file")
    parser.add_argument("--snapshot", type=Path, help="write the driver's readings")
    parser.add_argument("--seconds", type=float, default=FULL_S, help="time to spend")
    parser.add_argument("--device", help=argparse.SUPPRESS)
    parser.add_argument("--notes", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    ends = time.monotonic() + given.seconds
    if given.notes is not None:
        return look_at_device(given.device, given.notes, given.snapshot)
    try:
        name = resolve_device("cuda:0")
    except DeviceUnavailable as obstacle:
        print(f"no GPU, nothing checked: {obstacle}", file=sys.stderr)
        return NO_GPU
    signal.signal(signal.SIGTERM, stop)
    log = Log(path=given.json)
    log.write()  # a path that cannot be written to is better known now
    all_checks(log, name, ends=ends, snapshot=given.snapshot)
    print(table(log.checks))
    return exit_code(log.checks)


if __name__ == "__main__":
    sys.exit(main())
