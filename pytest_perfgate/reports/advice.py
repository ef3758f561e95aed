"""What to do next: for each reason that asks for something, one way out."""

import re
from collections import Counter
from dataclasses import dataclass

from pytest_perfgate.model import (
    BenchmarkResult,
    Difference,
    Outcome,
    Reason,
    Report,
    Verdict,
)
from pytest_perfgate.reports.escape import one_line
from pytest_perfgate.reports.words import GREEN, LOOKS

UPDATE = "`pytest --perfgate --perfgate-update`"
_MOST_FIELDS = 6
_MOST_RUNS = 60
"""Advised: beyond it a session takes hours, and the machine changes meanwhile."""
_NEEDED_RUNS = re.compile(r"needs ([\d,]+) runs")

_ACCEPT = f"if the change is wanted, record it with {UPDATE}"
_TOO_NOISY = (
    "more runs alone will not settle it: compare base and change side by side "
    "(`--perfgate-against REF`), use a quieter machine, or set a larger budget"
)

_CLOCKS = (
    "the GPU ran at another clock than for the baseline: see to its cooling and power, "
    "or lock its clocks for both (`--perfgate-lock-clocks`)"
)

ADVICE: dict[Reason, str] = {
    Reason.FLAGGED: "not confirmed by fresh runs yet; measure again before acting on it",
    Reason.CONFIRMED_WITHOUT_BASE: (
        "to settle it, let the base code be measured beside it: "
        f"`pytest --perfgate --perfgate-confirm REF`; {_ACCEPT}"
    ),
    Reason.CONFIRMED: (
        f"the base code was measured beside it on this machine; {_ACCEPT}"
    ),
    Reason.OVER_LIMIT: "make it faster, or change the limit where it is set",
    Reason.COUNT_OVER_BUDGET: f"an exact count has no noise to blame; {_ACCEPT}",
    Reason.CREPT: (
        "each step was within its budget, and together they are not: look at what "
        f"came in since the anchor session; if it was worth it, record it with {UPDATE}"
    ),
    Reason.TOO_NOISY: _TOO_NOISY,
    Reason.AT_BUDGET: (
        "the change lies at the budget itself: allow more runs "
        "(`--perfgate-runs 3:24`), or set the budget that you mean"
    ),
    Reason.TOO_FEW_TAIL_SAMPLES: (
        "raise `--perfgate-iterations` to what it needs and record that plan with "
        + UPDATE
    ),
    Reason.TOO_FEW_RUNS: "allow more runs: `--perfgate-runs 3:12`, or more time",
    Reason.NOT_STEADY: (
        f"give it a longer warm-up (`--perfgate-warmup N`) and record that with {UPDATE}"
    ),
    Reason.DISTURBED: "stop what else runs on this machine, and run again",
    Reason.MACHINE_WIDE_SHIFT: (
        "most benchmarks moved together, which is a machine's doing more often than "
        "a commit's: look at clocks, cooling and neighbours, and run again; if it stays, "
        "let the base code be measured beside it with `--perfgate-confirm REF`"
    ),
    Reason.RESOLUTION: (
        "the clock is too coarse for so short a call: take several calls for a sample, "
        "`@pytest.mark.perfgate(inner_loop=100)`, and record that with " + UPDATE
    ),
    Reason.UNCONFIRMED: (
        "fresh runs did not prove the slowdown: nothing needs doing, unless they look "
        "slow as well; then run again on a quieter machine"
    ),
    Reason.OUT_OF_TIME: (
        "let the session run to its end: where `--perfgate-max-total` ended it, "
        "raise that, or run fewer benchmarks at a time"
    ),
    Reason.SUSPECT: (
        "it looks slower, and that could not be confirmed: let the base code settle "
        "it with `--perfgate-confirm REF`, or run again with `--perfgate-runs 3:24`"
    ),
    Reason.BODY_RAISED: "correct the benchmark; its failure has the text",
    Reason.NOT_A_NUMBER: (
        "a sample was NaN, infinite, or not positive: correct what the benchmark records"
    ),
    Reason.NOTHING_MEASURED: (
        "call the fixture in the body, as in `perfgate(fn, *args)` or `benchmark(fn)`, "
        "or rename the test"
    ),
    Reason.CRASHED: "its process died twice in the same place; its failure has the text",
    Reason.METRIC_ABSENT: (
        "a budget or a limit names a metric that was not measured: correct the name"
    ),
    Reason.UNIT_DIFFERS: (
        "a budget or a limit is in another unit than its metric: write it in the unit "
        "that the detail names"
    ),
    Reason.TRACED: (
        "a tracer or a debugger was on, so every number is wrong: run without it "
        "(coverage: `--no-cov`)"
    ),
    Reason.BASELINE_CORRUPT: (
        "restore the file from version control, or delete it and record it anew with "
        + UPDATE
    ),
    Reason.SCHEMA_TOO_NEW: "upgrade pytest-perfgate: a newer one wrote the baseline",
    Reason.NOTHING_STORED: f"record what this machine measures with {UPDATE}",
    Reason.HARDWARE_DIFFERS: (
        f"run on the hardware of the baseline, or record this one with {UPDATE}"
    ),
    Reason.PLAN_DIFFERS: (
        f"undo the change of the benchmark, or record it as it is now with {UPDATE}"
    ),
    Reason.METRIC_DIFFERS: (
        "the metric is defined in another way than in the baseline: "
        f"record it anew with {UPDATE}"
    ),
    Reason.BUSY: "another process uses the device: stop it, and run again",
    Reason.THROTTLED: "the device was slowed down: see to power and cooling, run again",
    Reason.DEVICE_LOST: (
        "the driver gave the GPU up, or reported an error of it (XID): reset it or "
        "restart the machine, and run again"
    ),
    Reason.WORKER_LOST: "run again; its log is in the report's folder",
    Reason.TIMED_OUT: "raise `--perfgate-timeout`, or make the benchmark shorter",
    Reason.BASE_NOT_MEASURED: (
        "the base code was not measured, and the detail says why: install the package "
        "in editable mode, or build the base tree with `--perfgate-base-setup`"
    ),
    Reason.NOT_IN_BASE: (
        "it is new, and so is what it measures: once merged there is a base to measure"
    ),
    Reason.GONE: (
        "if it was removed or renamed on purpose, say so with `perfgate baselines prune BENCHMARK` "
        "or `perfgate baselines rename OLD NEW`; otherwise bring it back"
    ),
    Reason.SKIPPED_NOW: (
        "a benchmark that has a baseline was skipped: run it, or accept that with "
        "`perfgate baselines prune BENCHMARK`"
    ),
}
"""Every reason that can stand with an outcome that is not green."""

_ACCEPTABLE = frozenset(
    {
        Reason.CONFIRMED,
        Reason.CONFIRMED_WITHOUT_BASE,
        Reason.COUNT_OVER_BUDGET,
        Reason.CREPT,
        Reason.NOTHING_STORED,
        Reason.HARDWARE_DIFFERS,
        Reason.PLAN_DIFFERS,
        Reason.METRIC_DIFFERS,
    }
)
"""Where the runs of the report itself can become the baseline."""
_OF_REPORT = ", or take it from this report: `perfgate accept REPORT`"


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One line of `what to do next`."""

    outcome: Outcome
    reason: Reason
    count: int
    text: str


def advice(result: BenchmarkResult) -> str:
    """Say what to do about one benchmark; empty where its outcome is green."""
    if result.absorbed or result.verdict.outcome in GREEN:
        return ""
    return _advise(result.verdict.reason, (result,), told=bool(result.verdict.detail))


def next_steps(report: Report) -> tuple[Step, ...]:
    """Say what to do, once for each outcome and reason present, worst first."""
    groups: dict[tuple[Outcome, Reason], list[BenchmarkResult]] = {}
    for result in report.results:
        if not result.absorbed and result.verdict.outcome not in GREEN:
            key = (result.verdict.outcome, result.verdict.reason)
            groups.setdefault(key, []).append(result)
    rank = {outcome: index for index, outcome in enumerate(LOOKS)}
    return tuple(
        Step(
            outcome=outcome,
            reason=reason,
            count=len(results),
            text=_advise(reason, tuple(results)),
        )
        for (outcome, reason), results in sorted(
            groups.items(), key=lambda group: (rank[group[0][0]], -len(group[1]))
        )
    )


def needed_runs(verdict: Verdict) -> int | None:
    """Read the N of `needs N runs` from a verdict's detail."""
    found = _NEEDED_RUNS.search(verdict.detail)
    return int(found.group(1).replace(",", "")) if found else None


def _advise(
    reason: Reason, results: tuple[BenchmarkResult, ...], *, told: bool = False
) -> str:
    """Advise on results of one reason; `told` where the detail is shown beside it."""
    if reason is Reason.TOO_NOISY:
        return _more_runs(results)
    if all("difference of clocks" in result.verdict.detail for result in results):
        return _CLOCKS
    text = ADVICE.get(reason, f"see docs/verdicts.md#{reason}")
    # half of a pair is no baseline
    if reason in _ACCEPTABLE and not any(result.base_runs for result in results):
        text += _OF_REPORT
    fields = differing_fields(results)
    if results[0].verdict.outcome is Outcome.INCOMPARABLE and fields and not told:
        return f"{fields}: {text}"
    return text


def _more_runs(results: tuple[BenchmarkResult, ...]) -> str:
    """Name a number of runs that settles something; hundreds are no advice."""
    needed = [needed_runs(result.verdict) for result in results]
    within = [runs for runs in needed if runs is not None and runs <= _MOST_RUNS]
    if not within:
        return _TOO_NOISY
    rest = len(needed) - len(within)
    return (
        f"allow more runs (`--perfgate-runs 3:{max(within)}`), use a quieter machine, "
        "or set a larger budget"
        + (f"; more runs alone will not settle {rest} of them" if rest else "")
    )


def differing_fields(results: tuple[BenchmarkResult, ...]) -> str:
    """List the fields that forbid a comparison, the most frequent first.

    `device: H100 → H200; threads: 4 → 8`
    """
    found = Counter(
        difference_text(difference)
        for result in results
        for difference in result.differences
        if difference.forbids
    )
    shown = [text for text, _ in found.most_common(_MOST_FIELDS)]
    rest = len(found) - len(shown)
    return "; ".join(shown) + (f"; and {rest} more" if rest else "")


def difference_text(difference: Difference) -> str:
    """Write `field: baseline → candidate`."""
    return one_line(
        f"{difference.field}: {difference.baseline} → {difference.candidate}"
    )
