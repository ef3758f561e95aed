import pytest

from pytest_perfgate.gate.budgets import Budget
from pytest_perfgate.gate.evidence import recorded_detectable
from pytest_perfgate.gate.looks import Look

RELATIVE = Budget(value=0.05)


def seen(make, *sessions, budget=RELATIVE, final_runs=12):
    return recorded_detectable(
        sessions,
        make.metric("latency"),
        "median",
        budget=budget,
        look=Look(final_runs=final_runs),
    )


def test_what_a_baseline_lets_the_gate_see(make):
    runs = make.noisy("latency__median", 10, sd=0.01)
    assert seen(make, runs) == pytest.approx(0.07, abs=0.001)
    assert seen(make, runs, final_runs=3) > seen(make, runs)
    assert seen(make, runs, budget=Budget(value=0.1)) > 0.1


@pytest.mark.parametrize(
    ("values", "budget"),
    [
        ([1.0, 1.1], RELATIVE),
        ([1.0, 1.1, 0.0], RELATIVE),
        ([1.0, 1.1, 0.9], Budget(value=1.0, absolute=True)),
    ],
)
def test_a_baseline_that_does_not_tell(make, values, budget):
    assert seen(make, make.runs("latency__median", values), budget=budget) is None
