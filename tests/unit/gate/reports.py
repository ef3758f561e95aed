"""Reports in as few words as a test of merging needs."""

from dataclasses import replace

from pytest_perfgate.gate.legs import Part
from pytest_perfgate.measured import METRICS
from pytest_perfgate.model import (
    BenchmarkResult,
    Comparison,
    Environment,
    Judgement,
    Outcome,
    Reason,
    Report,
    RunStatistic,
    RunSummary,
    Verdict,
)

REASONS = {
    Outcome.UNCHANGED: Reason.WITHIN_BUDGET,
    Outcome.IMPROVED: Reason.FASTER,
    Outcome.REGRESSED: Reason.CONFIRMED,
    Outcome.ERROR: Reason.BODY_RAISED,
    Outcome.INCONCLUSIVE: Reason.TOO_NOISY,
    Outcome.NO_BASELINE: Reason.NOTHING_STORED,
    Outcome.INCOMPARABLE: Reason.HARDWARE_DIFFERS,
    Outcome.INVALID: Reason.WORKER_LOST,
    Outcome.MISSING: Reason.GONE,
    Outcome.SKIPPED: Reason.SKIPPED,
    Outcome.RECORDED: Reason.FIRST_SESSION,
}
RATIOS = {Outcome.REGRESSED: 1.5, Outcome.IMPROVED: 0.8}
RUN = RunSummary(
    iterations=100, statistics={"latency": {"median": RunStatistic(value=1.0)}}
)


def environment(key="h1", **software):
    return Environment(key=key, hardware={"gpu": key}, software=software)


def judgement(outcome=Outcome.UNCHANGED, reason=None, *, ratio=None, p=None, **changes):
    ratio = ratio or RATIOS.get(outcome, 1.0)
    compared = Comparison(
        baseline=1.0,
        candidate=ratio,
        ratio=ratio,
        low=ratio,
        high=ratio,
        p_identity=p or (1e-9 if outcome is Outcome.REGRESSED else 0.5),
        baseline_runs=10,
        candidate_runs=3,
        spread=0.01,
        detectable=0.06,
    )
    fields = {
        "metric": METRICS["latency"],
        "statistic": "median",
        "verdict": Verdict(outcome=outcome, reason=reason or REASONS[outcome]),
        "budget": 0.05,
        "comparison": compared,
    }
    return Judgement(**(fields | changes))


def result(name="b", outcome=Outcome.UNCHANGED, reason=None, **changes):
    """Give one benchmark's result, with a judgement where its outcome has one."""
    judged = outcome in {Outcome.UNCHANGED, Outcome.IMPROVED, Outcome.REGRESSED}
    measured = judged or outcome in {Outcome.INCONCLUSIVE, Outcome.RECORDED}
    fields = {
        "benchmark": name,
        "nodeid": name,
        "verdict": Verdict(outcome=outcome, reason=reason or REASONS[outcome]),
        "judgements": (judgement(outcome, reason),) if judged else (),
        "runs": (RUN, RUN, RUN) if measured else (),
    }
    return BenchmarkResult(**(fields | changes))


def report(*results, exit_code=0, **changes):
    fields = {
        "created": "2026-11-02T09:30:00Z",
        "commit": "abc",
        "environment": environment(),
        "results": results,
        "exit_code": exit_code,
        "summary": "what it says of itself",
    }
    return Report(**(fields | changes))


def part(*results, source="one/report.json", **changes):
    return Part(source=source, report=report(*results, **changes))


def renamed(one, source, **changes):
    return Part(source=source, report=replace(one.report, **changes))
