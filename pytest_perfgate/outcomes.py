"""The closed sets of words: directions, outcomes, reasons.

`model` hands them on, so that the rest of the project knows one place.
"""

from enum import StrEnum


class Better(StrEnum):
    """The direction of a metric."""

    LOWER = "lower"
    HIGHER = "higher"


class Outcome(StrEnum):
    """What became of a benchmark; `docs/verdicts.md` tells each one's story."""

    UNCHANGED = "unchanged"
    IMPROVED = "improved"
    REGRESSED = "regressed"
    ERROR = "error"
    INCONCLUSIVE = "inconclusive"
    NO_BASELINE = "no-baseline"
    INCOMPARABLE = "incomparable"
    INVALID = "invalid"
    MISSING = "missing"
    SKIPPED = "skipped"
    RECORDED = "recorded"
    """Under `--perfgate-update`: stored, not judged; exit code 0."""


class Reason(StrEnum):
    """Why: a closed set of codes, each with its own heading in the docs."""

    # unchanged, improved, regressed
    WITHIN_BUDGET = "within-budget"
    FASTER = "faster"
    FASTER_BEYOND_BUDGET = "faster-beyond-budget"
    CHANGED_WORK = "changed-work"
    FLAGGED = "flagged"
    CONFIRMED_WITHOUT_BASE = "confirmed-without-base"
    CONFIRMED = "confirmed"
    OVER_LIMIT = "over-limit"
    WITHIN_LIMIT = "within-limit"
    COUNT_OVER_BUDGET = "count-over-budget"
    CREPT = "crept-past-anchor"
    COUNT_EQUAL = "count-within-budget"
    # inconclusive
    TOO_NOISY = "too-noisy"
    AT_BUDGET = "at-budget"
    TOO_FEW_TAIL_SAMPLES = "too-few-tail-samples"
    TOO_FEW_RUNS = "too-few-runs"
    NOT_STEADY = "not-steady"
    DISTURBED = "disturbed"
    MACHINE_WIDE_SHIFT = "machine-wide-shift"
    RESOLUTION = "resolution"
    UNCONFIRMED = "unconfirmed"
    OUT_OF_TIME = "out-of-time"
    SUSPECT = "suspect"
    # error
    BODY_RAISED = "body-raised"
    NOT_A_NUMBER = "not-a-number"
    NOTHING_MEASURED = "nothing-measured"
    CRASHED = "crashed"
    METRIC_ABSENT = "metric-absent"
    UNIT_DIFFERS = "unit-differs"
    TRACED = "traced"
    BASELINE_CORRUPT = "baseline-corrupt"
    SCHEMA_TOO_NEW = "schema-too-new"
    # no-baseline, incomparable, invalid, missing, skipped
    NOTHING_STORED = "nothing-stored"
    NOT_IN_BASE = "not-in-base"
    HARDWARE_DIFFERS = "hardware-differs"
    PLAN_DIFFERS = "plan-differs"
    METRIC_DIFFERS = "metric-differs"
    BUSY = "busy"
    THROTTLED = "throttled"
    DEVICE_LOST = "device-lost"
    WORKER_LOST = "worker-lost"
    TIMED_OUT = "timed-out"
    BASE_NOT_MEASURED = "base-not-measured"
    GONE = "gone"
    SKIPPED_NOW = "skipped-now"
    SKIPPED = "skipped"
    NOT_GATED = "not-gated"
    # recorded
    FIRST_SESSION = "first-session"
    SESSION_ADDED = "session-added"
    REPLACED = "replaced"


class ClueKind(StrEnum):
    """What an explanation speaks of."""

    OUTPUT = "output"
    COUNT = "count"
    KERNEL = "kernel"
    OPERATOR = "operator"
    BOUND = "bound"
    """Whether the host or the GPU decides how long a call takes."""
    CLOCK = "clock"
    ENVIRONMENT = "environment"
    COMMIT = "commit"
    NOTE = "note"
    """What could not be compared, or told apart."""
