"""Values for the tests of what is stored."""

import json
import types
from pathlib import Path

import pytest

from pytest_perfgate.measured import (
    METRICS,
    Health,
    Measurement,
    Metric,
    OperatorUse,
    Plan,
    Profile,
    Samples,
)
from pytest_perfgate.model import (
    Baseline,
    BaselineFile,
    BenchmarkResult,
    Comparison,
    Difference,
    Environment,
    Judgement,
    Outcome,
    Reason,
    Report,
    RunStatistic,
    RunSummary,
    Session,
    Shift,
    Verdict,
)

BENCHMARK = "benches/bench_llm.py::bench_prefill"
GOLDEN = Path(__file__).parents[2] / "golden"
LAUNCHES = Metric(name="kernel_launches", unit="1", definition="count/1", exact=True)


def a_plan(**changes):
    fields = {
        "iterations": 200,
        "warmup": 12,
        "seed": 7,
        "batch_size": 8,
        "device": "cuda:0",
        "workload": "5f1d",
    }
    return Plan(**{**fields, **changes})


def an_environment(**changes):
    fields = {
        "key": "nvidia-h200",
        "hardware": {"gpu": "NVIDIA H200", "gpus": 1, "clock_mhz": 1980.5, "mig": None},
        "software": {"torch": "2.13.0", "driver": "570.86", "tf32": False},
    }
    return Environment(**{**fields, **changes})


def a_run(scale=1.0, **changes):
    fields = {
        "iterations": 200,
        "statistics": {
            "latency": {
                "median": RunStatistic(value=0.00123457 * scale, se=1.2e-06),
                "p99": RunStatistic(value=0.0015 * scale, se=3e-05),
            },
            "peak_memory": {"max": RunStatistic(value=85899345920.0)},
            "kernel_launches": {"max": RunStatistic(value=1234567.0)},
        },
        "clock_tick_s": 1e-09,
        "samples": {"peak_memory": 1, "kernel_launches": 1},
    }
    return RunSummary(**{**fields, **changes})


def a_session(**changes):
    fields = {
        "time": "2026-11-02T09:30:00Z",
        "commit": "0123abc",
        "environment_digest": "8d1f00c2aa17",
        "runs": (a_run(), a_run(1.5), a_run(drift={"latency": 0.03}, steady=False)),
    }
    return Session(**{**fields, **changes})


def a_profile():
    return Profile(
        operators={"aten::addmm": OperatorUse(count=2, self_s=0.00125)},
        kernels={"gemm": OperatorUse(count=4, self_s=0.5)},
        operators_s=0.002,
        kernels_s=0.75,
    )


def a_baseline(**changes):
    session = a_session()
    fields = {
        "plan": a_plan(),
        "metrics": {
            "latency": METRICS["latency"],
            "peak_memory": METRICS["peak_memory"],
            "kernel_launches": LAUNCHES,
        },
        "sessions": (session,),
        "anchor": session,
        "sketch": {"latency": (0.0011, 0.0012, 0.0016)},
        "counts": {"kernel_launches": 1234567},
    }
    return Baseline(**{**fields, **changes})


def a_file(**benchmarks):
    return BaselineFile(
        environment=an_environment(), benchmarks=benchmarks or {BENCHMARK: a_baseline()}
    )


def a_full_file():
    """Return a file in which every optional key is there."""
    elsewhere = an_environment(software={"torch": "2.12.1", "driver": None})
    first = a_session(commit=None, runs=(a_run(2.0), a_run(2.1, alone=True)))
    moved = a_baseline(
        anchor=first,
        environment=elsewhere,
        plan=a_plan(threads=4),
        profile=a_profile(),
    )
    return BaselineFile(
        environment=an_environment(),
        benchmarks={BENCHMARK: a_baseline(), BENCHMARK + "[αβ|1]": moved},
    )


def a_measurement(**changes):
    fields = {
        "benchmark": BENCHMARK,
        "nodeid": BENCHMARK,
        "run": 3,
        "plan": a_plan(),
        "samples": (
            Samples(metric=METRICS["latency"], values=(0.1 + 0.2, 1 / 3, 1e-300)),
            Samples(metric=LAUNCHES, values=(12.0,)),
        ),
        "health": Health(blocks=4, cpu_share=0.97, evidence=("a neighbour ran",)),
        "clock_tick_s": 1e-9,
        "output": {"float32[8,10]": 0.25},
        "alone": True,
        "remarks": ("eager",),
        "profile": a_profile(),
    }
    return Measurement(**{**fields, **changes})


def a_verdict(outcome=Outcome.UNCHANGED, reason=Reason.WITHIN_BUDGET, detail=""):
    return Verdict(outcome=outcome, reason=reason, detail=detail)


def a_comparison(**changes):
    fields = {
        "baseline": 0.00123457,
        "candidate": 0.00142,
        "ratio": 1.1502,
        "low": 1.12,
        "high": 1.18,
        "p_identity": 1e-9,
        "baseline_runs": 10,
        "candidate_runs": 6,
        "spread": 0.011,
        "detectable": 0.065,
        "q_value": 3e-9,
    }
    return Comparison(**{**fields, **changes})


def a_result(**changes):
    regressed = a_verdict(Outcome.REGRESSED, Reason.CONFIRMED, "1.15×")
    fields = {
        "benchmark": BENCHMARK,
        "nodeid": BENCHMARK,
        "verdict": regressed,
        "judgements": (
            Judgement(
                metric=METRICS["latency"],
                statistic="median",
                verdict=regressed,
                budget=0.05,
                bound="5 %",
                comparison=a_comparison(),
                remarks=("baseline is 40 days old",),
            ),
            Judgement(
                metric=METRICS["latency"],
                statistic="median",
                verdict=a_verdict(Outcome.SKIPPED, Reason.NOT_GATED),
                budget=0.15,
                bound="15 %",
                gated=False,
                comparison=a_comparison(ratio=1.2, low=1.17, high=1.23),
                anchor=True,
            ),
        ),
        "runs": (a_run(), a_run(1.1)),
        "confirmation": (a_run(1.2),),
        "plan": a_plan(),
        "differences": (
            Difference(field="torch", baseline="2.12", candidate="2.13", forbids=False),
        ),
        "discarded": ("run 4: the worker was lost",),
        "remarks": ("two runs were repeated",),
        "attempt": 2,
        "earlier_runs": 1,
    }
    return BenchmarkResult(**{**fields, **changes})


def a_report(**changes):
    bare = BenchmarkResult(
        benchmark="benches/bench_llm.py::bench_gone",
        nodeid="benches/bench_llm.py::bench_gone",
        verdict=a_verdict(Outcome.MISSING, Reason.GONE),
        judgements=(
            Judgement(
                metric=LAUNCHES,
                statistic="max",
                verdict=a_verdict(Outcome.NO_BASELINE, Reason.NOTHING_STORED),
                gated=False,
            ),
        ),
    )
    fields = {
        "created": "2026-11-02T09:41:12Z",
        "commit": "0123abc",
        "environment": an_environment(),
        "results": (a_result(), bare),
        "exit_code": 1,
        "summary": "1 regressed, 1 missing",
        "policy": {"budget": "5%"},
        "cost": {"seconds": 61.25, "runs": 6.0},
        "shift": Shift(ratio=1.021, benchmarks=14, share=0.93),
    }
    return Report(**{**fields, **changes})


@pytest.fixture(name="make")
def make_values():
    """Give the factories of this module under one name."""
    made = {name: value for name, value in globals().items() if name.startswith("a")}
    return types.SimpleNamespace(
        **made, BENCHMARK=BENCHMARK, GOLDEN=GOLDEN, LAUNCHES=LAUNCHES
    )


@pytest.fixture
def spoil():
    """Give a function that sets one value deep inside JSON text."""

    def change(text, path, value):
        tree = json.loads(text)
        target = tree
        for key in path[:-1]:
            target = target[key]
        if value is ...:
            del target[path[-1]]
        else:
            target[path[-1]] = value
        return json.dumps(tree)

    return change
