"""A regression shows in time and in cycles; what shows in time alone is a clock's."""

import math

import pytest

from pytest_perfgate.gate.budgets import Budget
from pytest_perfgate.gate.clocks import Clocks, compare_clocks, is_clocked
from pytest_perfgate.gate.evidence import Sides
from pytest_perfgate.gate.looks import Look
from pytest_perfgate.gate.policy import Gate
from pytest_perfgate.gate.readings import State, read
from pytest_perfgate.measured import METRICS, Metric
from pytest_perfgate.model import Outcome, Reason

LAST = Look(final_runs=12)


@pytest.fixture
def judge(make):
    """Judge candidate runs so much slower than the baseline's, by the median."""

    def run(ratio, *, before=None, now=None, metric="latency", budget=0.05, **gate):
        key = f"{metric}__median"
        center = 1 / ratio if metric == "throughput" else ratio
        base = make.noisy(key, 10, sd=0.001, device=before or {})
        fresh = make.noisy(key, 12, center=center, sd=0.001, seed=1, device=now or {})
        sides = Sides(baseline=(base,), candidate=fresh)
        limit = Budget(value=budget, absolute=gate.pop("absolute", False))
        return read(
            METRICS[metric], Gate(statistic="median", budget=limit, **gate), sides, LAST
        )

    return run


def mhz(value):
    return {"sm_clock_mhz": value}


def test_slower_in_time_alone_is_a_difference_of_clocks(judge):
    found = judge(1.08, before=mhz(1980), now=mhz(1830))
    assert found.judgement.outcome is Outcome.INCONCLUSIVE
    assert found.judgement.reason is Reason.DISTURBED
    assert found.state is State.OPEN
    assert found.judgement.verdict.detail == (
        "a difference of clocks, not a regression: "
        "+8.0 % in time, -0.2 % in cycles (1980 → 1830 MHz)"
    )


@pytest.mark.parametrize("now", [1980, 1830, 2100])
def test_slower_in_cycles_is_a_regression_whatever_the_clocks_do(judge, now):
    found = judge(1.30, before=mhz(1980), now=mhz(now))
    assert found.judgement.reason is Reason.FLAGGED


def test_without_clocks_on_both_sides_time_alone_counts(judge):
    for before, now in ((None, None), (None, mhz(1500)), (mhz(1980), None)):
        assert judge(1.08, before=before, now=now).judgement.reason is Reason.FLAGGED
    assert judge(1.08, before=mhz(0), now=mhz(1500)).state is State.FLAGGED


def test_a_rate_is_explained_by_clocks_as_a_time_is(judge):
    found = judge(1.08, before=mhz(1980), now=mhz(1830), metric="throughput")
    assert found.judgement.reason is Reason.DISTURBED


def test_a_budget_in_the_metric_s_own_unit_knows_no_cycles(judge):
    found = judge(1.08, before=mhz(1980), now=mhz(1830), absolute=True)
    assert found.judgement.reason is Reason.FLAGGED


@pytest.mark.parametrize(
    ("metric", "clocked"),
    [
        (METRICS["latency"], True),
        (METRICS["device_time"], True),
        (Metric(name="throughput", unit="tokens/s"), True),
        (METRICS["cpu_time"], False),
        (METRICS["loader_wait"], False),
        (METRICS["loader_rate"], False),
        (METRICS["peak_memory"], False),
        (Metric(name="hits", unit="1"), False),
    ],
)
def test_in_which_metrics_a_gpu_has_a_part(metric, clocked):
    assert is_clocked(metric) is clocked


@pytest.mark.parametrize(
    ("before", "now", "words"),
    [
        ({"sw_power_cap_share": 0.1}, {"sw_power_cap_share": 0.35}, "10% → 35%"),
        ({"pcie_width": 16}, {"pcie_width": 8}, "PCIe width 16 → 8"),
        ({"pcie_generation": 5}, {"pcie_generation": 1}, "PCIe generation 5 → 1"),
    ],
)
def test_what_is_odd_keeps_from_red_where_no_clock_is_known(judge, before, now, words):
    found = judge(1.3, before=before, now=now)
    assert found.judgement.reason is Reason.DISTURBED
    assert words in found.judgement.verdict.detail
    # and keeps nothing from green
    assert judge(1.0, before=before, now=now).judgement.outcome is Outcome.UNCHANGED


def test_a_power_cap_that_the_clock_bears_out_is_no_excuse(judge):
    before = {"sw_power_cap_share": 0.1, "sm_clock_mhz": 1980}
    now = {"sw_power_cap_share": 0.9, "sm_clock_mhz": 1900}
    assert judge(1.3, before=before, now=now).judgement.reason is Reason.FLAGGED


def test_a_narrower_link_is_one_though_the_cycles_are_more(judge):
    before = {"pcie_width": 16, "sm_clock_mhz": 1980}
    now = {"pcie_width": 8, "sm_clock_mhz": 1980}
    found = judge(1.3, before=before, now=now)
    assert found.judgement.verdict.detail == "not the code alone: PCIe width 16 → 8"


def test_a_wider_link_and_less_power_cap_are_not_odd(make):
    before = (make.run(device={"pcie_width": 8, "sw_power_cap_share": 0.5}),)
    now = (make.run(device={"pcie_width": 16, "sw_power_cap_share": 0.55}),)
    assert compare_clocks(before, now) == Clocks()


def test_a_higher_clock_hides_no_loss(judge):
    found = judge(1.0, before=mhz(1700), now=mhz(1980))
    assert found.judgement.reason is Reason.DISTURBED
    assert found.judgement.verdict.detail == (
        "a difference of clocks hides it: "
        "+0.0 % in time, +16.5 % in cycles (1700 → 1980 MHz)"
    )


def test_a_clock_a_little_higher_hides_nothing(judge):
    assert judge(1.0, before=mhz(1960), now=mhz(1980)).judgement.outcome == "unchanged"
    assert judge(1.0, before=mhz(1920), now=mhz(1980)).judgement.outcome == "unchanged"


def test_a_gain_by_clocks_alone_is_none_of_the_code(judge):
    found = judge(0.93, before=mhz(1840), now=mhz(1980))
    assert found.judgement.outcome is Outcome.UNCHANGED
    assert judge(0.8, before=mhz(1840), now=mhz(1980)).judgement.outcome == "improved"
    assert judge(0.93).judgement.outcome is Outcome.IMPROVED


def test_the_clock_of_a_side_is_its_median_run_s(make):
    before = tuple(make.run(device=mhz(clock)) for clock in (1980, 1980, 300))
    now = (*(make.run(device=mhz(clock)) for clock in (1500, 1800, 1600)), make.run())
    clocks = compare_clocks(before, now)
    assert (clocks.before_mhz, clocks.now_mhz) == (1980, 1600)
    assert clocks.shift == pytest.approx(math.log(1600 / 1980))
