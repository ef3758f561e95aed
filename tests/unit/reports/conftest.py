"""Reports to render: one of each outcome, hostile names, none at all, thousands."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_perfgate.measured import METRICS, Metric, Plan
from pytest_perfgate.model import (
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
    Verdict,
)

GOLDEN = Path(__file__).parents[2] / "golden"
OUTCOMES = {
    Outcome.REGRESSED: Reason.CONFIRMED_WITHOUT_BASE,
    Outcome.ERROR: Reason.BODY_RAISED,
    Outcome.INVALID: Reason.TIMED_OUT,
    Outcome.INCOMPARABLE: Reason.HARDWARE_DIFFERS,
    Outcome.MISSING: Reason.GONE,
    Outcome.NO_BASELINE: Reason.NOTHING_STORED,
    Outcome.INCONCLUSIVE: Reason.TOO_NOISY,
    Outcome.IMPROVED: Reason.FASTER_BEYOND_BUDGET,
    Outcome.UNCHANGED: Reason.WITHIN_BUDGET,
    Outcome.SKIPPED: Reason.SKIPPED,
    Outcome.RECORDED: Reason.FIRST_SESSION,
}


def _comparison(ratio, baseline=812e-6, spread=0.01, **changes):
    numbers = {
        "baseline": baseline,
        "candidate": baseline * ratio,
        "ratio": ratio,
        "low": ratio * 0.97,
        "high": ratio * 1.035,
        "p_identity": 1e-6 if ratio > 1.05 else 0.4,
        "baseline_runs": 10,
        "candidate_runs": 12,
        "spread": spread,
        "detectable": 0.061,
    }
    return Comparison(**(numbers | changes))


def _judgement(metric, statistic, outcome, reason, ratio=None, **changes):
    numbers = {"budget": 0.05, "gated": True, "comparison": None, "detail": ""}
    given = numbers | changes
    if ratio is not None and given["comparison"] is None:
        given["comparison"] = _comparison(ratio)
    detail = given.pop("detail")
    return Judgement(
        metric=METRICS[metric] if isinstance(metric, str) else metric,
        statistic=statistic,
        verdict=Verdict(outcome=outcome, reason=reason, detail=detail),
        **given,
    )


def _result(name, outcome, reason=None, *, detail="", **rest):
    return BenchmarkResult(
        benchmark=name,
        nodeid=name,
        verdict=Verdict(
            outcome=outcome, reason=reason or OUTCOMES[outcome], detail=detail
        ),
        **rest,
    )


def _run(value):
    return RunSummary(
        iterations=350,
        statistics={
            "latency": {
                "median": RunStatistic(value=value, se=value / 500),
                "p99": RunStatistic(value=value * 1.3, se=value / 50),
            }
        },
    )


def _report(results, **changes):
    report = Report(
        created="2026-10-09T08:30:00Z",
        commit="3f1c2ab90d1e7c55aa0e6d0f4b7c8d9e0f1a2b3c",
        environment=Environment(
            key="nvidia-h200",
            hardware={"device": "NVIDIA H200", "count": 1},
            software={"torch": "2.13.0", "driver": "570.86"},
        ),
        results=tuple(results),
        exit_code=1,
        summary="perfgate: 1 of 11 benchmarks regressed; exit code 1",
        policy={"budget": "5%", "runs": "3:12"},
        cost={"runs": 36.0, "seconds": 182.4},
    )
    return replace(report, **changes)


def _regressed():
    reason = Reason.CONFIRMED_WITHOUT_BASE
    return _result(
        "benches/bench_gemm.py::bench_bf16[4096]",
        Outcome.REGRESSED,
        judgements=(
            _judgement("latency", "median", Outcome.REGRESSED, reason, 1.421),
            _judgement(
                "latency",
                "p99",
                Outcome.INCONCLUSIVE,
                Reason.TOO_NOISY,
                1.2,
                budget=0.1,
                detail="needs 31 runs",
            ),
            _judgement(
                "device_time", "median", Outcome.UNCHANGED, Reason.WITHIN_BUDGET, 1.001
            ),
            _judgement(
                "throughput",
                "mean",
                Outcome.SKIPPED,
                Reason.NOT_GATED,
                gated=False,
                budget=None,
                comparison=_comparison(1.4, baseline=9800.0, candidate=7000.0),
            ),
        ),
        runs=tuple(_run(1.15e-3 * factor) for factor in (0.99, 1.0, 1.01)),
        confirmation=tuple(_run(1.16e-3 * factor) for factor in (0.99, 1.0, 1.01)),
        plan=Plan(iterations=350, warmup=20, device="cuda"),
        differences=(
            Difference(
                field="torch", baseline="2.12.0", candidate="2.13.0", forbids=False
            ),
        ),
    )


def _inconclusive():
    return _result(
        "benches/bench_attention.py::bench_flash[seq=16384-heads=32-causal]",
        Outcome.INCONCLUSIVE,
        detail="needs 14 runs",
        judgements=(
            _judgement(
                "latency",
                "median",
                Outcome.INCONCLUSIVE,
                Reason.TOO_NOISY,
                1.034,
                detail="needs 14 runs",
                remarks=("variability changed",),
            ),
        ),
        runs=(_run(8.4e-4), _run(9.1e-4)),
    )


def _plain(name, outcome, ratio):
    reason = OUTCOMES[outcome]
    judgement = _judgement("latency", "median", outcome, reason, ratio)
    return _result(
        name, outcome, judgements=(judgement,), runs=(_run(8e-4 * ratio),) * 3
    )


def _each_outcome():
    return (
        _plain(
            "benches/bench_norm.py::bench_layer_norm[1024]", Outcome.UNCHANGED, 1.003
        ),
        _plain("benches/bench_norm.py::bench_rms_norm[1024]", Outcome.IMPROVED, 0.81),
        _regressed(),
        _result(
            "benches/bench_llm.py::bench_prefill",
            Outcome.ERROR,
            detail="in 3 of 3 runs",
            text="benches/bench_llm.py:41: in bench_prefill\n    assert out.isfinite().all()\n"
            "AssertionError: assert False",
        ),
        _inconclusive(),
        _result(
            "benches/bench_llm.py::bench_decode",
            Outcome.NO_BASELINE,
            detail="nvidia-h200",
            runs=tuple(_run(2.4e-3 * factor) for factor in (0.99, 1.0, 1.02)),
        ),
        _result(
            "benches/bench_llm.py::bench_chat",
            Outcome.INCOMPARABLE,
            differences=(
                Difference(
                    field="device",
                    baseline="NVIDIA H100",
                    candidate="NVIDIA H200",
                    forbids=True,
                ),
                Difference(
                    field="driver", baseline="550", candidate="570", forbids=False
                ),
            ),
        ),
        _result(
            "benches/bench_io.py::bench_loader",
            Outcome.INVALID,
            detail="after 300 s, in run 2",
            discarded=("run 2 not used: timed out after 300 s",),
        ),
        _result("benches/bench_io.py::bench_old_loader", Outcome.MISSING),
        _result("benches/bench_io.py::bench_windows_only", Outcome.SKIPPED),
        _result("benches/bench_io.py::bench_new_loader", Outcome.RECORDED),
    )


_HOSTILE_NAMES = (
    "benches/bench_a.py::bench[a|b|`rm -rf`]",
    "benches/bench_a.py::bench[line\nbreak\r\n| x | y |]",
    "benches/bench_a.py::bench[矩阵乘法-大きい行列]",
    "benches/bench_a.py::bench[" + "x" * 200 + "]",
    "benches/" + "deep/" * 40 + "bench_a.py::bench_with_a_long_name[4096]",
    "benches/bench_a.py::bench[<script>alert(1)</script><img src=x onerror=y>]",
    "benches/bench_a.py::bench[@octocat #12 **bold** [l](http://x) http://evil.example]",
    "benches/bench_a.py::bench[\u202etxt.exe\u2066\u200b\x1b[31mred\x07]",
    "benches/bench_a.py::bench[{{ 7*7 }}{% raw %}]",
)


def _hostile():
    return (
        *(_plain(name, Outcome.REGRESSED, 1.2) for name in _HOSTILE_NAMES),
        _result(
            "benches/bench_a.py::bench_raises",
            Outcome.ERROR,
            detail="ValueError: | pipes |\nand <b>lines</b> @octocat",
            text="ValueError: | pipes |\n\x1b[31mand\x1b[0m <b>lines</b> `x` @octocat",
            remarks=("a remark | with a pipe",),
        ),
    )


def _thousands():
    regressed = [
        _plain(f"benches/bench_big.py::bench[{i}]", Outcome.REGRESSED, 1.06 + 0.25 * i)
        for i in range(60)
    ]
    unchanged = [
        _plain(
            f"benches/bench_big.py::bench_ok[{i}]", Outcome.UNCHANGED, 1.0 + i * 1e-6
        )
        for i in range(2940)
    ]
    return (*unchanged, *regressed)


@pytest.fixture
def make_report():
    return _report


@pytest.fixture
def make_result():
    return _result


@pytest.fixture
def make_judgement():
    return _judgement


@pytest.fixture
def make_comparison():
    return _comparison


@pytest.fixture
def make_plain():
    """Make a benchmark with one judged statistic."""
    return _plain


@pytest.fixture
def make_run():
    return _run


@pytest.fixture
def each_outcome():
    return _report(_each_outcome())


@pytest.fixture
def hostile():
    return _report(
        _hostile(), summary="perfgate: 9 of 10 benchmarks regressed; exit code 1"
    )


@pytest.fixture
def empty():
    return _report(
        (), exit_code=5, summary="perfgate: nothing was measured; exit code 5", cost={}
    )


@pytest.fixture(scope="session")
def thousands():
    summary = "perfgate: 60 of 3,000 benchmarks regressed; exit code 1"
    return _report(_thousands(), summary=summary)


@pytest.fixture
def assert_golden():
    """Compare with a file under tests/golden.

    `PERFGATE_WRITE_GOLDEN=1` writes the files anew, to be read in the diff.
    """

    def check(name, text):
        path = GOLDEN / name
        if os.environ.get("PERFGATE_WRITE_GOLDEN"):
            path.write_text(text, encoding="utf-8")
        assert text == path.read_text(encoding="utf-8"), f"{path} differs"

    return check


@pytest.fixture
def energy():
    """A metric that the package does not know by name."""
    return Metric(name="energy", unit="J", definition="board-counter/1")


@pytest.fixture
def launches():
    """An exact count."""
    return Metric(name="kernel_launches", unit="1", exact=True, definition="count/1")
