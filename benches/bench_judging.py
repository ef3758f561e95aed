"""What judging costs: a report of so many metrics, ten stored runs against twelve.

A benchmark of this report has four metrics, as one that times a model's inference has:
latency with its median, floor and P99, throughput, peak memory and CPU time. Every tenth
is slower than its baseline by more than its budget.
"""

import random

import pytest

from pytest_perfgate.gate.judge import judge_benchmark
from pytest_perfgate.gate.looks import Look
from pytest_perfgate.gate.policy import resolve_policy
from pytest_perfgate.measured import METRICS, Plan
from pytest_perfgate.model import Baseline, Outcome, RunStatistic, RunSummary, Session

STATISTICS = {
    "latency": ("median", "floor", "p99"),
    "throughput": ("mean",),
    "peak_memory": ("max",),
    "cpu_time": ("median",),
}
PLAN = Plan(iterations=400, warmup=10)
BASELINE_RUNS, CANDIDATE_RUNS = 10, 12
SLOW, SLOW_EVERY = 1.2, 10
DRAWN = 50


def make_run(draw, factor):
    """Draw one run; a higher throughput is better, all else is better lower."""

    def one(metric):
        slower = 1 / factor if metric == "throughput" else factor
        return RunStatistic(value=slower * draw.lognormvariate(0.0, 0.01), se=0.002)

    return RunSummary(
        iterations=PLAN.iterations,
        statistics={
            metric: {name: one(metric) for name in names}
            for metric, names in STATISTICS.items()
        },
    )


def make_case(draw, *, slow):
    """Give what is stored of a benchmark, and its new runs."""
    stored = tuple(make_run(draw, 1.0) for _ in range(BASELINE_RUNS))
    session = Session(time="", commit=None, environment_digest="", runs=stored)
    baseline = Baseline(
        plan=PLAN,
        metrics={name: METRICS[name] for name in STATISTICS},
        sessions=(session,),
        anchor=session,
    )
    factor = SLOW if slow else 1.0
    return baseline, tuple(make_run(draw, factor) for _ in range(CANDIDATE_RUNS))


def judge_all(cases, metrics):
    policy = resolve_policy("bench")
    look = Look(index=2, comparisons=metrics)
    return [
        judge_benchmark(
            policy=policy, baseline=baseline, candidate=candidate, look=look
        )
        for baseline, candidate in cases
    ]


def measure(perfgate, metrics):
    draw = random.Random(metrics)  # noqa: S311 (the same draws every time)
    count = metrics // len(STATISTICS)
    drawn = [make_case(draw, slow=index % SLOW_EVERY == 0) for index in range(DRAWN)]
    cases = drawn * (count // DRAWN)  # the judge remembers nothing of a case
    judged = perfgate(judge_all, cases, metrics)
    red = sum(one.verdict.outcome is Outcome.REGRESSED for one in judged)
    assert red == count // SLOW_EVERY


@pytest.mark.perfgate(iterations=5, warmup=1)
def bench_one_thousand_metrics(perfgate):
    measure(perfgate, 1_000)


@pytest.mark.perfgate(iterations=1, warmup=1)
def bench_ten_thousand_metrics(perfgate):
    measure(perfgate, 10_000)
