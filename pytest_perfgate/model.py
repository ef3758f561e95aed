"""The words of the domain as frozen values.

A value that exists is valid: each class checks itself at birth and raises
`ValueError` naming the field and the value. Seconds, bytes and fractions
inside; conversion happens in `units` and at the doors of the instruments.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

# handed on: who speaks of a verdict finds its words here
from pytest_perfgate.outcomes import Better as Better  # noqa: PLC0414 (handed on)
from pytest_perfgate.outcomes import ClueKind as ClueKind  # noqa: PLC0414 (handed on)
from pytest_perfgate.outcomes import Outcome as Outcome  # noqa: PLC0414 (handed on)
from pytest_perfgate.outcomes import Reason as Reason  # noqa: PLC0414 (handed on)


def _check(condition: bool, owner: object, name: str, value: object) -> None:  # noqa: FBT001 (reads as a sentence)
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
        _check(bool(self.name), self, "name", self.name)

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
        _check(bool(self.values), self, "values", self.values)
        for index, value in enumerate(self.values):
            _check(math.isfinite(value), self, f"values[{index}]", value)


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
        _check(self.iterations >= 1, self, "iterations", self.iterations)
        _check(self.warmup >= 0, self, "warmup", self.warmup)
        _check(self.inner_loop >= 1, self, "inner_loop", self.inner_loop)
        _check(self.cache in CACHES, self, "cache", self.cache)


HOST_BOUND = 0.8
"""Where so much of a call's latency goes by before the GPU has been given all its
work, the host decides how long the call takes."""


def _check_share(owner: object, name: str, value: float | None) -> None:
    fits = value is None or (math.isfinite(value) and value >= 0)
    _check(fits, owner, name, value)


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
        _check(self.unfit is None or self.unfit in UNFIT, self, "unfit", self.unfit)


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorUse:
    """What one call has of an operator or a kernel."""

    count: int
    self_s: float
    """Time in it, without what it calls: of the host or, for a kernel, of the GPU."""

    def __post_init__(self) -> None:
        _check(self.count >= 0, self, "count", self.count)
        fits = math.isfinite(self.self_s) and self.self_s >= 0
        _check(fits, self, "self_s", self.self_s)


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
        _check(self.index >= 0, self, "index", self.index)
        for name in ("at_s", "value_s"):
            value = getattr(self, name)
            _check(math.isfinite(value) and value >= 0, self, name, value)


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
        _check(bool(self.worst), self, "worst", self.worst)
        _check(self.count >= len(self.worst), self, "count", self.count)


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
        _check_share(self, "enqueue_share", self.enqueue_share)
        _check(all(count >= 1 for count in self.turns), self, "turns", self.turns)


@dataclass(frozen=True, slots=True, kw_only=True)
class Twin:
    """How a run differs from its twin, turn by turn: what a pair is judged by."""

    log_ratio: float
    """Median over neighbouring turns of log(this run's ÷ its twin's)."""
    se: float = 0.0
    """Of that median, within the pair."""

    def __post_init__(self) -> None:
        _check(math.isfinite(self.log_ratio), self, "log_ratio", self.log_ratio)
        _check(math.isfinite(self.se) and self.se >= 0, self, "se", self.se)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStatistic:
    """One number a run, with its within-run standard error (same unit)."""

    value: float
    se: float = 0.0
    twin: Twin | None = None
    """Where it was measured in turns with the run of the other tree."""

    def __post_init__(self) -> None:
        _check(math.isfinite(self.value), self, "value", self.value)
        _check(math.isfinite(self.se) and self.se >= 0, self, "se", self.se)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSummary:
    """One run of one benchmark as the gate sees it."""

    iterations: int
    statistics: Mapping[str, Mapping[str, RunStatistic]]
    """By metric name, then by statistic name."""
    drift: Mapping[str, float] = field(default_factory=dict)
    """By metric: log(last third ÷ first third) where a trend was proven."""
    clock_tick_s: float = 0.0
    disturbed: bool = False
    steady: bool = True
    alone: bool = False
    samples: Mapping[str, int] = field(default_factory=dict)
    """By metric: how many values it had, where not one an iteration."""
    device: Mapping[str, float] = field(default_factory=dict)
    """What the driver told of the GPU during the run: `sm_clock_mhz` (median
    over the blocks) and the like; empty where there is no driver."""
    output: Mapping[str, float] = field(default_factory=dict)
    """`Measurement.output`."""
    enqueue_share: float | None = None
    """As of its measurement: what makes it host-bound, from `HOST_BOUND` on."""

    def __post_init__(self) -> None:
        _check_share(self, "enqueue_share", self.enqueue_share)
        _check(self.iterations >= 1, self, "iterations", self.iterations)

    def get(self, metric: str, statistic: str) -> RunStatistic | None:
        return self.statistics.get(metric, {}).get(statistic)


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """The fingerprint of a machine and its software.

    `hardware` decides comparability; `software` is reported as a possible
    cause of a change, for an upgrade that slows the code is what the gate is
    for.
    """

    key: str
    """Names the folder of the baselines: `nvidia-h200`, `amd-epyc-7b13-2c`."""
    hardware: Mapping[str, str | int | float | bool | None]
    software: Mapping[str, str | int | float | bool | None] = field(
        default_factory=dict
    )
    fake: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One field in which two environments or plans differ."""

    field: str
    baseline: str
    candidate: str
    forbids: bool
    """True where it makes the numbers incomparable."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """Runs made together at one time on one machine."""

    time: str
    """ISO 8601 in UTC."""
    commit: str | None
    environment_digest: str
    runs: tuple[RunSummary, ...]

    def __post_init__(self) -> None:
        _check(bool(self.runs), self, "runs", self.runs)


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """What is stored of one benchmark."""

    plan: Plan
    metrics: Mapping[str, Metric]
    sessions: tuple[Session, ...]
    anchor: Session
    """The first session since the last deliberate reset."""
    sketch: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    """By metric: quantiles of the newest session's samples, for plots."""
    counts: Mapping[str, int] = field(default_factory=dict)
    environment: Environment | None = None
    """Where it was recorded, if elsewhere than its file's environment says."""
    profile: Profile | None = None
    """Of the newest session, where its code uses torch."""

    def __post_init__(self) -> None:
        _check(bool(self.sessions), self, "sessions", self.sessions)

    @property
    def runs(self) -> tuple[RunSummary, ...]:
        return tuple(run for session in self.sessions for run in session.runs)


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselineFile:
    """The baselines of one benchmark file on one kind of hardware."""

    environment: Environment
    benchmarks: Mapping[str, Baseline]


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Numbers only: what the data say about one statistic.

    Ratios are oriented so that above 1 is worse, whatever the direction.
    """

    baseline: float
    candidate: float
    ratio: float
    low: float
    high: float
    """The interval whose bounds the verdict was read from."""
    p_identity: float
    """One-sided p-value of "not worse"."""
    baseline_runs: int
    candidate_runs: int
    spread: float
    """Pooled standard deviation between runs, of the log."""
    detectable: float | None
    """Smallest slowdown seen with 95 % probability at the last look."""
    absolute: bool = False
    """True where a budget is absolute: `ratio`, `low`, `high`, `spread` and
    `detectable` are then differences in the metric's own unit."""
    q_value: float | None = None
    """`p_identity` in the light of all others of the session, for information:
    the share of false alarms if everything this clear were called slower."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Outcome and reason code; `detail` completes the sentence."""

    outcome: Outcome
    reason: Reason
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """One statistic of one metric, judged (or only shown)."""

    metric: Metric
    statistic: str
    verdict: Verdict
    budget: float | None = None
    gated: bool = True
    comparison: Comparison | None = None
    bound: str = ""
    """The budget or limit in words: `5 %`, `+0`, `<= 150 ms`."""
    remarks: tuple[str, ...] = ()
    anchor: bool = False
    """True where it is held against the anchor session, for slow creep."""

    @property
    def outcome(self) -> Outcome:
        return self.verdict.outcome

    @property
    def reason(self) -> Reason:
        return self.verdict.reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Clue:
    """One thing that differs between baseline and candidate."""

    kind: ClueKind
    text: str
    """The whole of it in words, both sides included."""
    old: str = ""
    new: str = ""
    share: float | None = None
    """Of the slowdown, where that can be computed; above 1 others made up for it."""

    def __post_init__(self) -> None:
        _check(
            self.share is None or math.isfinite(self.share), self, "share", self.share
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """What changed together with a benchmark: possible causes, the strongest first."""

    lines: tuple[Clue, ...]

    def __post_init__(self) -> None:
        _check(bool(self.lines), self, "lines", self.lines)

    def strongest(self, most: int) -> tuple[Clue, ...]:
        """Choose a few lines, of as many kinds as there are, in their order."""
        first: dict[ClueKind, Clue] = {}
        for line in self.lines:
            first.setdefault(line.kind, line)
        rest = [line for line in self.lines if line not in first.values()]
        chosen = [*first.values(), *rest][:most]
        return tuple(line for line in self.lines if line in chosen)


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchmarkResult:
    """One benchmark's place in a report."""

    benchmark: str
    nodeid: str
    verdict: Verdict
    judgements: tuple[Judgement, ...] = ()
    runs: tuple[RunSummary, ...] = ()
    confirmation: tuple[RunSummary, ...] = ()
    """Fresh runs, made after it was flagged."""
    base_runs: tuple[RunSummary, ...] = ()
    """The other halves of `runs`, where they were made in pairs."""
    base_confirmation: tuple[RunSummary, ...] = ()
    """The other halves of `confirmation`, likewise."""
    plan: Plan | None = None
    differences: tuple[Difference, ...] = ()
    discarded: tuple[str, ...] = ()
    """Runs that were not used, or not whole, each with its reason; also disturbed
    ones that were used for want of others."""
    remarks: tuple[str, ...] = ()
    text: str = ""
    """What a body or a crash said, for `error` and `invalid`."""
    attempt: int = 1
    """How often this commit was judged against this baseline, this time included."""
    earlier_runs: int = 0
    """How many of `runs`, the first ones, were made by earlier attempts."""
    absorbed: bool = False
    """Its test is expected to fail, so that it does not fail the session."""
    metrics: Mapping[str, Metric] = field(default_factory=dict)
    """The definitions of what its runs measured."""
    longest_warmup: int = 0
    """Of its runs, where that is longer than the plan's: without a stored plan
    each run finds its own."""
    environment: Environment | None = None
    """Where it was measured, if elsewhere than its report's environment says."""
    profile: Profile | None = None
    """Of the candidate, to be held against that of its baseline."""
    explanation: Explanation | None = None
    slow: tuple[SlowIterations, ...] = ()
    """Of its runs, where iterations stood out; the worst few of each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shift:
    """How far the machine as a whole moved between baseline and now."""

    ratio: float
    """The median benchmark's; above 1 is worse."""
    benchmarks: int
    share: float
    """How many of them moved this way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BaseCode:
    """The code of the past that a session measured beside the candidate."""

    ref: str
    """As the user named it."""
    commit: str
    """The merge base of it and HEAD."""
    overlaid: tuple[str, ...] = ()
    """What the base tree got from the candidate: benchmarks and settings."""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The complete result of one session of the gate."""

    created: str
    commit: str | None
    environment: Environment | None
    results: tuple[BenchmarkResult, ...]
    exit_code: int
    summary: str
    """The outcome in words: the last line a person reads."""
    policy: Mapping[str, str] = field(default_factory=dict)
    """The options the session was judged by, as given."""
    cost: Mapping[str, float] = field(default_factory=dict)
    interrupted: bool = False
    shift: Shift | None = None
    problem: str = ""
    """What failed that is no benchmark's verdict; it has its part in the exit code."""
    notes: tuple[str, ...] = ()
    """For people: what they should know of how the results came about."""
    base: BaseCode | None = None
