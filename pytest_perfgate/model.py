"""What is judged and what comes of it, as frozen values.

A value that exists is valid: each class checks itself at birth and raises
`ValueError` naming the field and the value. Seconds, bytes and fractions
inside; conversion happens in `units` and at the doors of the instruments.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from pytest_perfgate.measured import (
    Metric,
    Plan,
    Profile,
    SlowIterations,
    check,
    check_share,
)

# handed on: who speaks of a verdict finds its words here
from pytest_perfgate.outcomes import Better as Better  # noqa: PLC0414 (handed on)
from pytest_perfgate.outcomes import ClueKind as ClueKind  # noqa: PLC0414 (handed on)
from pytest_perfgate.outcomes import Outcome as Outcome  # noqa: PLC0414 (handed on)
from pytest_perfgate.outcomes import Reason as Reason  # noqa: PLC0414 (handed on)


@dataclass(frozen=True, slots=True, kw_only=True)
class Twin:
    """How a run differs from its twin, turn by turn: what a pair is judged by."""

    log_ratio: float
    """Median over neighbouring turns of log(this run's ÷ its twin's)."""
    se: float = 0.0
    """Of that median, within the pair."""

    def __post_init__(self) -> None:
        check(math.isfinite(self.log_ratio), self, "log_ratio", self.log_ratio)
        check(math.isfinite(self.se) and self.se >= 0, self, "se", self.se)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStatistic:
    """One number a run, with its within-run standard error (same unit)."""

    value: float
    se: float = 0.0
    twin: Twin | None = None
    """Where it was measured in turns with the run of the other tree."""

    def __post_init__(self) -> None:
        check(math.isfinite(self.value), self, "value", self.value)
        check(math.isfinite(self.se) and self.se >= 0, self, "se", self.se)


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
        check_share(self, "enqueue_share", self.enqueue_share)
        check(self.iterations >= 1, self, "iterations", self.iterations)

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
        check(bool(self.runs), self, "runs", self.runs)


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
        check(bool(self.sessions), self, "sessions", self.sessions)

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
        check(
            self.share is None or math.isfinite(self.share), self, "share", self.share
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """What changed together with a benchmark: possible causes, the strongest first."""

    lines: tuple[Clue, ...]

    def __post_init__(self) -> None:
        check(bool(self.lines), self, "lines", self.lines)

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
