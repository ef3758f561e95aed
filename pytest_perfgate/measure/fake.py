"""A device with a virtual clock, driven by a script: exact and instant.

Real worker processes measure real benchmark files with it, and every number is
known beforehand; no real time enters any of them. Results are marked `fake`.

The script is JSON::

    {"key": "fake",
     "hardware": {"device": "fake"},
     "software": {},
     "salt": 0,
     "benchmarks": {
       "benches/bench_a.py::*": {"seconds": 0.001, "run_sd": 0.005,
                                 "iteration_sd": 0.01, "factor": 1.0,
                                 "runs": {"4": {"factor": 1.2,
                                                "disturbed": true,
                                                "disturbed_blocks": [0, 2],
                                                "steady": false,
                                                "gpu": {"throttled": 0.2}}},
                                 "gpu": {"sm_mhz": 1980},
                                 "factor_from": "mylib.core:SLOWNESS",
                                 "parts": {"first": 5.0},
                                 "device": 0.9, "peak_memory": 4096},
       "*": {"values": [0.001, 0.002]}}}

The first pattern (fnmatch, or the id itself) that fits a benchmark id governs
it; without one a piece of work takes a millisecond. Every key is optional.

`seconds`
    What one piece of work takes: a call, a round without stages, a stage, a
    chunk of a generation; a phase of a training step takes a fifth of it.
`run_sd`, `iteration_sd`
    Standard deviations of the log: between runs, and within one.
`factor`, `runs`
    Multiplies every duration; `runs` adds to it by the number of the run, and
    says whether that run is disturbed or never steady. `disturbed_blocks`
    counts every measured block from 0, those that are repeated, too.
`gpu`
    Without it nobody tells of a GPU's health. `sm_mhz`, `last_sm_mhz` (where it
    does not hold), `temperature_c`, `warmed_c`, `pcie_width`; `throttled` and `power_capped`, shares of the time;
    `foreign`, names of processes of others that come during the run; `lost` and
    `blind`, after so many readings; `xid`, the number of an error that the driver
    reports once. That of a run is laid over the benchmark's.
`machine`, beside `benchmarks`
    What the manager finds before the first run: `foreign` processes and `busy_s`
    until they are gone, `hot_s` until it has cooled, `throttled_s`, `full_s` until
    there is more than a GiB of memory, `lost`.
`factor_from`
    `module:attribute` of the code under test: a number that multiplies too, read
    anew for each measurement, so that two trees of one library take the times
    that stand in them.
`parts`
    The share of `seconds` that a part takes: `call`, `round`, `stage:NAME`,
    `phase:NAME`, `first` (chunk), `chunk`, and `loader`: a batch of a training
    step's loader, which without it takes next to nothing.
`values`
    Seconds of the pieces of work in turn, from the first measured one on, over
    and over, in place of `seconds` and the two deviations.
`device`
    The share of a call's time that the device is busy: gives `device_time`.
`period`
    The share of a call's time that it takes in a queue kept full: gives
    `device_period`.
`flush`
    The share of a call's time that it takes where the cache was flushed before it;
    a flush itself takes 50 µs. Without it there is no cache to flush.
`hidden`
    The same where the launches are hidden: with `hide_launch`. Without it no
    launch can be.
`enqueue`
    The share of a call's time after which the host has handed all work over.
`peak_memory`
    Bytes.

The n-th piece of work of a part takes the same time whenever benchmark id, run,
salt and script are the same: its randomness is a hash of these.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, fields
from fnmatch import fnmatchcase
from importlib import import_module
from math import exp
from pathlib import Path
from statistics import NormalDist
from typing import Any

from pytest_perfgate.errors import UsageError
from pytest_perfgate.measure.cpu_guard import Reading
from pytest_perfgate.measure.device import Hidden, Pipelined, Timed
from pytest_perfgate.measure.fake_gpu import FakeGpu, GpuScript, MachineScript
from pytest_perfgate.measure.flushing import Flush
from pytest_perfgate.measure.memory import MemoryUse
from pytest_perfgate.measure.on_gpu import OnGpu, on_gpu

_PHASE_SHARE = 0.2
_FLUSH_NS = 50_000
_NORMAL = NormalDist()


@dataclass(frozen=True, slots=True, kw_only=True)
class RunScript:
    """What is peculiar to one run."""

    factor: float = 1.0
    disturbed: bool = False
    disturbed_blocks: tuple[int, ...] = ()
    steady: bool = True
    gpu: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchmarkScript:
    """The law of one benchmark's durations."""

    seconds: float = 0.001
    run_sd: float = 0.0
    iteration_sd: float = 0.0
    factor: float = 1.0
    runs: Mapping[str, RunScript] = field(default_factory=dict)
    factor_from: str = ""
    parts: Mapping[str, float] = field(default_factory=dict)
    values: tuple[float, ...] = ()
    device: float | None = None
    period: float | None = None
    hidden: float | None = None
    enqueue: float | None = None
    flush: float | None = None
    peak_memory: int | None = None
    gpu: Mapping[str, Any] = field(default_factory=dict)

    def share(self, part: str) -> float:
        usual = _PHASE_SHARE if part.startswith("phase:") else 1.0
        if part == "first":
            usual = self.parts.get("chunk", 1.0)
        if part == "loader":
            usual = 0.0
        return self.parts.get(part, usual)


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """A whole script, checked."""

    key: str = "fake"
    hardware: Mapping[str, Any] = field(default_factory=lambda: {"device": "fake"})
    software: Mapping[str, Any] = field(default_factory=dict)
    salt: int = 0
    benchmarks: Mapping[str, BenchmarkScript] = field(default_factory=dict)
    machine: MachineScript | None = None

    def governing(self, benchmark: str) -> BenchmarkScript:
        for pattern, script in self.benchmarks.items():
            if pattern == benchmark or fnmatchcase(benchmark, pattern):
                return script
        return BenchmarkScript()


def read_script(path: Path) -> Script:
    """Read and check a script.

    Raises
    ------
    UsageError
        It cannot be read, is not JSON, or has a key that means nothing.
    """
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"fake device script {path}: {error}") from error
    return parse_script(raw, where=str(path))


def parse_script(raw: Mapping[str, Any], *, where: str = "fake device") -> Script:
    """Make a script of parsed JSON; unknown keys are refused by name."""
    _check_keys(raw, Script, where=where)
    _check_mapping(raw.get("benchmarks", {}), where=f"{where}: benchmarks")
    laws = {
        pattern: _law(law, where=f"{where}: {pattern}")
        for pattern, law in raw.get("benchmarks", {}).items()
    }
    machine = raw.get("machine")
    if machine is not None:
        _check_keys(machine, MachineScript, where=f"{where}: machine")
        machine = MachineScript(**machine)
    return Script(**{**raw, "benchmarks": laws, "machine": machine})


def _law(raw: Mapping[str, Any], *, where: str) -> BenchmarkScript:
    _check_keys(raw, BenchmarkScript, where=where)
    _check_mapping(raw.get("runs", {}), where=f"{where}: runs")
    for run in raw.get("runs", {}).values():
        _check_keys(run, RunScript, where=where)
    for part in (raw, *raw.get("runs", {}).values()):
        _check_keys(part.get("gpu", {}), GpuScript, where=f"{where}: gpu")
    runs = {str(run): RunScript(**given) for run, given in raw.get("runs", {}).items()}
    return BenchmarkScript(
        **{**raw, "runs": runs, "values": tuple(raw.get("values", ()))}
    )


def _read(place: str) -> float:
    """Return the number that stands at `module:attribute`; 1 where none is named."""
    if not place:
        return 1.0
    module, _, attribute = place.partition(":")
    try:
        return float(getattr(import_module(module), attribute))
    except (ImportError, AttributeError, TypeError, ValueError) as error:
        raise UsageError(f"fake device: factor_from={place!r}: {error}") from error


def _check_mapping(raw: object, *, where: str) -> None:
    if not isinstance(raw, Mapping):
        raise UsageError(f"{where}: {raw!r:.60} is not an object of keys and values")


def _check_keys(raw: Mapping[str, Any], kind: type, *, where: str) -> None:
    _check_mapping(raw, where=where)
    known = {entry.name for entry in fields(kind)}
    unknown = sorted(set(raw) - known)
    if unknown:
        raise UsageError(f"{where}: {unknown[0]!r} is none of {sorted(known)}")


class FakeDevice:
    """Calls what it is given once, and then moves its clock by the script."""

    name = "fake"
    fake = True
    tick_s = 1e-9
    stretches = True

    def __init__(self, script: Script) -> None:
        self.script = script
        self._clock_ns = 0
        self._kept_waiting_ns = 0
        self._calls: OnGpu | None = None
        self._stages_in_round = False
        self._block = -1
        self.begin("", run=0, slowdown=0.0)

    @classmethod
    def from_file(cls, path: Path) -> "FakeDevice":
        return cls(read_script(path))

    def begin(self, benchmark: str, *, run: int, slowdown: float) -> None:
        self._law = self.script.governing(benchmark)
        self._this_run = self._law.runs.get(str(run), RunScript())
        self._seed = f"{self.script.salt}\0{benchmark}\0{run}"
        run_sd = 0.0 if self._law.values else self._law.run_sd
        self._factor = (
            self._law.factor
            * self._this_run.factor
            # the code under test may not be there before the first benchmark
            * (_read(self._law.factor_from) if benchmark else 1.0)
            * (1.0 + slowdown)
            * exp(run_sd * self._deviate("run"))
        )
        self._restart("warm-up")

    def measuring(self) -> None:
        self._block = -1
        self._restart("measured")

    @property
    def telemetry(self) -> FakeGpu | None:
        gpu = {**self._law.gpu, **self._this_run.gpu}
        return FakeGpu(GpuScript(**gpu), self.now_ns) if gpu else None

    def _restart(self, phase: str) -> None:
        self._phase = phase
        self._done: Counter[str] = Counter()

    def now_ns(self) -> int:
        return self._clock_ns

    def synchronize(self) -> None:
        """Wait for nothing: the virtual clock has no work behind it."""

    def flushing(self) -> AbstractContextManager[Flush | None]:
        if self._law.flush is None:
            return nullcontext()
        # a processor that waits is busy
        return nullcontext(
            Flush(fill=self._flush, now_ns=self.now_ns, cpu_ns=self.now_ns)
        )

    def _flush(self) -> None:
        self._clock_ns += _FLUSH_NS

    def time_calls(
        self,
        call: Callable[[], object],
        *,
        count: int,
        inner: int,
        flush: Flush | None = None,
    ) -> Timed:
        times = []
        cold = 1.0 if flush is None else self._law.flush or 1.0
        result = None
        for _ in range(count):
            result = None
            if flush is not None:
                flush()
            started = self._clock_ns
            result = call()
            self._advance("call", times=inner * cold)
            times.append(self._clock_ns - started)
        share = self._law.device
        busy = None if share is None else [duration * share for duration in times]
        handed = self._law.enqueue
        enqueued = None if handed is None else [round(t * handed) for t in times]
        if busy is not None and enqueued is not None:
            self._calls = on_gpu(times, enqueued, busy)
        return Timed(host_ns=times, device_ns=busy, result=result, enqueue_ns=enqueued)

    def stretch(self, own_ns: int, part: str) -> None:
        del own_ns  # what is real is not looked at
        if part == "round" and self._stages_in_round:
            self._stages_in_round = False
            return
        self._stages_in_round = part.startswith("stage:")
        self._advance(part)

    def mark(self) -> int:
        return self._clock_ns

    def span_s(self, first: object, second: object) -> float:
        if not isinstance(first, int) or not isinstance(second, int):
            raise TypeError(f"{first!r}, {second!r} are not marks of this device")
        return (second - first) / 1e9

    def reading(self, *, closing: bool) -> Reading:
        if not closing:
            self._block += 1
            self._calls = None
        return Reading(
            wall_ns=self._clock_ns,
            cpu_ns=self._clock_ns,
            delays_ns={"main": self._kept_waiting_ns},
            calls=self._calls,
        )

    def settled(self) -> bool:
        return self._this_run.steady

    def allocator_state(self) -> object:
        return None

    def pipelined(
        self, call: Callable[[], object], *, count: int, own_ns: int
    ) -> Pipelined | None:
        share = self._law.period
        if share is None:
            return None
        del own_ns  # the script has it
        started, periods = self._clock_ns, []
        for _ in range(count):
            call()
            before = self._clock_ns
            self._advance("call", times=share)
            periods.append(float(self._clock_ns - before))
        return Pipelined(period_ns=periods, wall_ns=self._clock_ns - started)

    @property
    def queues(self) -> bool:
        return self._law.period is not None

    def hidden(
        self, call: Callable[[], object], *, count: int, own_ns: int, hold_ns: float
    ) -> Hidden | None:
        share = self._law.hidden
        if share is None:
            return None
        del own_ns  # the script has it
        handed_ns = round(count * self._law.seconds * (self._law.enqueue or 0.0) * 1e9)
        self._clock_ns += round(max(hold_ns, handed_ns))
        periods = []
        for _ in range(count):
            call()
            before = self._clock_ns
            self._advance("call", times=share)
            periods.append(float(self._clock_ns - before))
        return Hidden(period_ns=periods, handed_ns=handed_ns, held_ns=hold_ns)

    def peak_memory(self, call: Callable[[], object]) -> MemoryUse:
        del call
        peak = self._law.peak_memory
        return MemoryUse(values={} if peak is None else {"peak_memory": peak})

    def _advance(self, part: str, *, times: float = 1) -> None:
        step = max(1, round(self._seconds(part) * times * 1e9))
        self._clock_ns += step
        run = self._this_run
        if run.disturbed or self._block in run.disturbed_blocks:
            self._kept_waiting_ns += step // 2

    def _seconds(self, part: str) -> float:
        index = self._done[part]
        self._done[part] += 1
        law = self._law
        if law.values:
            return law.values[index % len(law.values)] * self._factor
        noise = law.iteration_sd and self._deviate(f"{self._phase}\0{part}\0{index}")
        return (
            law.seconds * law.share(part) * self._factor * exp(law.iteration_sd * noise)
        )

    def _deviate(self, what: str) -> float:
        """Draw a standard normal deviate that depends on nothing but its name."""
        digest = hashlib.blake2b(f"{self._seed}\0{what}".encode(), digest_size=8)
        uniform = (int.from_bytes(digest.digest(), "big") + 0.5) / 2**64
        return _NORMAL.inv_cdf(min(max(uniform, 1e-16), 1 - 1e-16))
