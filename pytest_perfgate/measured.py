"""What is measured, as frozen values: metrics, plans, and what a process sends.

A value that exists is valid: each class checks itself at birth and raises
`ValueError` naming the field and the value. Seconds, bytes and fractions
inside; conversion happens in `units` and at the doors of the instruments.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from pytest_perfgate.outcomes import Better, Reason


def check(condition: bool, owner: object, name: str, value: object) -> None:  # noqa: FBT001 (reads as a sentence)
    if not condition:
        raise ValueError(f"{type(owner).__name__}.{name}={value!r} is not allowed")


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """What is measured; numbers of two definitions are never compared."""

    name: str
    unit: str
    better: Better = Better.LOWER
    definition: str = ""
    """Names how the number is made, with a version: `host-synchronised/1`. What
    it holds for alone stands behind an `@`: `leaf-operators/1@cpu torch 2.13.0`."""
    exact: bool = False
    """A deterministic count: compared exactly, one run is enough."""

    def __post_init__(self) -> None:
        check(bool(self.name), self, "name", self.name)

    @property
    def of_rounds(self) -> bool:
        """Whether a sample is the mean call of a round, as pytest-benchmark takes it.

        Its P99 is one of rounds, not of calls.
        """
        return self.definition.startswith("round-mean/")

    @property
    def made(self) -> str:
        """How the number is made, whatever it holds for."""
        return self.definition.partition("@")[0]

    @property
    def holds_for(self) -> str:
        """For what alone the number holds; empty where it is comparable as it is."""
        return self.definition.partition("@")[2]


UNSTABLE = "unstable"
"""A count that differed between two calls holds for nothing."""


def _timing(name: str, definition: str) -> Metric:
    return Metric(name=name, unit="s", definition=definition)


METRICS: Mapping[str, Metric] = {
    metric.name: metric
    for metric in (
        _timing("latency", "host-synchronised/1"),
        _timing("device_time", "event-span/1"),
        _timing("step_time", "host-synchronised/1"),
        _timing("ttft", "submit-to-first-token/1"),
        _timing("tpot", "per-token-after-first-chunk/1"),
        _timing("e2e", "submit-to-last-token/1"),
        _timing("cpu_time", "process-per-iteration/1"),
        _timing("first_call", "first-iteration/1"),
        Metric(
            name="throughput",
            unit="1/s",
            better=Better.HIGHER,
            definition="work-over-wall/1",
        ),
        Metric(name="peak_memory", unit="B", definition="allocated-peak/1"),
        Metric(name="data_share", unit="1", definition="one-minus-fixed-over-loaded/1"),
        _timing("loader_wait", "blocked-in-next/1"),
        Metric(
            name="loader_rate",
            unit="1/s",
            better=Better.HIGHER,
            definition="loader-alone/1",
        ),
    )
}
"""The metrics known by name. Stages (`stage:NAME`), training phases
(`phase:NAME`) and recorded numbers bring their own `Metric`."""

ROUND_LATENCY = _timing("latency", "round-mean/1")
"""What stands in for `latency` where pytest-benchmark measures."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Samples:
    """The per-iteration values of one metric in one run.

    A metric that has one value a run (throughput, peak memory) has one sample.
    """

    metric: Metric
    values: tuple[float, ...]

    def __post_init__(self) -> None:
        check(bool(self.values), self, "values", self.values)
        for index, value in enumerate(self.values):
            check(math.isfinite(value), self, f"values[{index}]", value)


HOT, FLUSH = CACHES = ("hot", "flush")


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How a benchmark is run; fixed when its baseline is recorded."""

    iterations: int
    warmup: int
    inner_loop: int = 1
    seed: int = 0
    batch_size: int | None = None
    threads: int | None = None
    device: str = "cpu"
    workload: str = ""
    """Digest of kind, shapes and types of what is called; of rounds that
    pytest-benchmark makes, the options they are made by."""
    cache: str = HOT
    """What a call finds in the device's cache: what the one before left there
    (`hot`), or nothing of its own (`flush`)."""

    def __post_init__(self) -> None:
        check(self.iterations >= 1, self, "iterations", self.iterations)
        check(self.warmup >= 0, self, "warmup", self.warmup)
        check(self.inner_loop >= 1, self, "inner_loop", self.inner_loop)
        check(self.cache in CACHES, self, "cache", self.cache)


HOST_BOUND = 0.8
"""Where so much of a call's latency goes by before the GPU has been given all its
work, the host decides how long the call takes."""


def check_share(owner: object, name: str, value: float | None) -> None:
    fits = value is None or (math.isfinite(value) and value >= 0)
    check(fits, owner, name, value)


UNFIT = frozenset({Reason.BUSY, Reason.THROTTLED, Reason.DEVICE_LOST})
"""Why a run says nothing at all, as told by the device itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """Evidence from outside the samples that a run was disturbed."""

    blocks: int = 0
    disturbed_blocks: int = 0
    repeated_blocks: int = 0
    """Disturbed blocks that were discarded and measured again."""
    cpu_share: float | None = None
    """CPU time ÷ wall time over the measured blocks."""
    involuntary_switches: int | None = None
    disturbed: bool = False
    steady: bool = True
    """False where the warm-up never settled within its bound."""
    evidence: tuple[str, ...] = ()
    unfit: Reason | None = None
    """Why the run is not to be used at all; None where it may be."""
    device: Mapping[str, float] = field(default_factory=dict)
    """What the driver told of the GPU meanwhile: `sm_clock_mhz` and the like."""

    def __post_init__(self) -> None:
        check(self.unfit is None or self.unfit in UNFIT, self, "unfit", self.unfit)


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorUse:
    """What one call has of an operator or a kernel."""

    count: int
    self_s: float
    """Time in it, without what it calls: of the host or, for a kernel, of the GPU."""

    def __post_init__(self) -> None:
        check(self.count >= 0, self, "count", self.count)
        fits = math.isfinite(self.self_s) and self.self_s >= 0
        check(fits, self, "self_s", self.self_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """Where the time of one call goes, as a profiler saw it after timing.

    Made to be compared with another one: what came, went or grew. Its times hold
    what the profiler itself costs, and are no measurement.
    """

    operators: Mapping[str, OperatorUse]
    """By name, those that take longest."""
    kernels: Mapping[str, OperatorUse] = field(default_factory=dict)
    """Likewise: kernels, copies and fills of the GPU."""
    operators_s: float = 0.0
    """Of all operators together, those left out included."""
    kernels_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SlowIteration:
    """One iteration that took far longer than its run's others."""

    index: int
    at_s: float
    """Measured time of the run before it."""
    value_s: float
    known: tuple[str, ...] = ()
    """What is known of the block it lies in."""

    def __post_init__(self) -> None:
        check(self.index >= 0, self, "index", self.index)
        for name in ("at_s", "value_s"):
            value = getattr(self, name)
            check(math.isfinite(value) and value >= 0, self, name, value)


@dataclass(frozen=True, slots=True, kw_only=True)
class SlowIterations:
    """The iterations of one run that took longer than `beyond_s`."""

    run: int
    beyond_s: float
    rule: str
    """What the bound is: `2 × P99`, `5 × median`."""
    count: int
    worst: tuple[SlowIteration, ...]
    """The slowest of them, slowest first."""

    def __post_init__(self) -> None:
        check(bool(self.worst), self, "worst", self.worst)
        check(self.count >= len(self.worst), self, "count", self.count)


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """What one process measured of one benchmark: the record a worker sends."""

    benchmark: str
    nodeid: str
    run: int
    plan: Plan
    samples: tuple[Samples, ...]
    health: Health = Health()
    clock_tick_s: float = 0.0
    output: Mapping[str, float] = field(default_factory=dict)
    """What came out, by shape and type: the mean magnitude of an array, the
    number of tokens of replies, whose digest is in the name."""
    alone: bool = False
    remarks: tuple[str, ...] = ()
    turns: tuple[int, ...] = ()
    """Iterations of each turn, where another process measured in between."""
    profile: Profile | None = None
    slow: SlowIterations | None = None
    """None where no iteration stood out."""
    enqueue_share: float | None = None
    """Share of the median call's latency after which the GPU had been given all its
    work; None where the host does not hand work over, or nobody saw it."""

    def __post_init__(self) -> None:
        check_share(self, "enqueue_share", self.enqueue_share)
        check(all(count >= 1 for count in self.turns), self, "turns", self.turns)
