from dataclasses import replace

import pytest

from pytest_perfgate.gate.counting import count_comparisons
from pytest_perfgate.gate.judge import Look
from pytest_perfgate.gate.policy import resolve_policy
from pytest_perfgate.measured import METRICS, ROUND_LATENCY, Metric
from pytest_perfgate.model import Outcome, Reason

MEDIAN = "latency__median"
FIRST = Look(index=0, last=False)
SECOND = Look(index=1, last=False)
LAST = Look(index=2, last=True)


@pytest.fixture
def baseline(make):
    return make.baseline(make.noisy(MEDIAN, 10))


def of(judged, statistic="median", metric="latency"):
    found = [
        one
        for one in judged.judgements
        if one.statistic == statistic and one.metric.name == metric
    ]
    assert len(found) == 1, judged.judgements
    return found[0]


# one statistic ----------------------------------------------------------------


def test_identical_code_is_unchanged_at_the_first_look(make, baseline):
    judged = make.judge(baseline, make.noisy(MEDIAN, 3, seed=1), look=FIRST)
    assert judged.verdict.outcome is Outcome.UNCHANGED
    assert judged.verdict.reason is Reason.WITHIN_BUDGET
    assert judged.decided
    assert not judged.flagged


def test_the_numbers_are_those_of_the_runs(make, baseline):
    judged = make.judge(baseline, make.noisy(MEDIAN, 12, center=1.02, seed=1))
    found = of(judged)
    comparison = found.comparison
    assert comparison.baseline == pytest.approx(1.0)
    assert comparison.candidate == pytest.approx(1.02)
    assert comparison.ratio == pytest.approx(1.02)
    assert comparison.low < comparison.ratio < comparison.high < 1.05
    assert (comparison.baseline_runs, comparison.candidate_runs) == (10, 12)
    assert comparison.spread == pytest.approx(0.01, rel=0.01)
    # (sessions are taken to differ by a quarter of the spread each)
    assert comparison.detectable == pytest.approx(0.07, abs=0.002)
    assert (found.budget, found.bound, found.gated) == (0.05, "5 %", True)


def test_a_slowdown_is_flagged_at_the_first_look_and_wants_confirmation(make, baseline):
    judged = make.judge(baseline, make.noisy(MEDIAN, 3, center=1.2, seed=1), look=FIRST)
    assert judged.verdict.outcome is Outcome.REGRESSED
    assert judged.verdict.reason is Reason.FLAGGED
    assert judged.decided
    assert judged.flagged
    assert of(judged).comparison.low > 1.05


def test_a_flag_must_also_survive_the_family(make):
    baseline = make.baseline(make.noisy(MEDIAN, 3, sd=0.015))
    candidate = make.noisy(MEDIAN, 3, center=1.15, sd=0.015, seed=1)
    alone = make.judge(baseline, candidate)
    among = make.judge(baseline, candidate, look=Look(index=2, comparisons=3000))
    with_base = make.judge(
        baseline, candidate, look=Look(index=2, comparisons=3000, base_code=True)
    )
    assert alone.flagged
    assert not among.flagged
    assert among.verdict.reason is Reason.SUSPECT
    assert among.suspect
    assert with_base.flagged


def test_a_small_gain_is_improved_and_a_large_one_beyond_the_budget(make, baseline):
    small = make.judge(baseline, make.noisy(MEDIAN, 12, center=0.97, seed=1))
    large = make.judge(baseline, make.noisy(MEDIAN, 12, center=0.8, seed=1))
    assert (small.verdict.outcome, small.verdict.reason) == (
        Outcome.IMPROVED,
        Reason.FASTER,
    )
    assert large.verdict.reason is Reason.FASTER_BEYOND_BUDGET


def test_a_throughput_that_falls_is_a_regression(make):
    baseline = make.baseline(make.noisy("throughput__mean", 10, center=1000.0))
    judged = make.judge(
        baseline,
        make.noisy("throughput__mean", 12, center=900.0, seed=1),
        specs=["throughput=5%"],
    )
    found = of(judged, "mean", "throughput")
    assert judged.flagged
    assert found.comparison.ratio == pytest.approx(1000 / 900)
    assert found.comparison.candidate == pytest.approx(900.0)


def test_exactly_at_the_budget_it_cannot_tell(make, baseline):
    judged = make.judge(baseline, make.noisy(MEDIAN, 12, center=1.05, seed=1))
    assert judged.verdict.outcome is Outcome.INCONCLUSIVE
    assert judged.verdict.reason is Reason.AT_BUDGET
    assert judged.decided


def test_noisy_runs_say_how_many_would_do(make):
    baseline = make.baseline(make.noisy(MEDIAN, 10, sd=0.04))
    judged = make.judge(baseline, make.noisy(MEDIAN, 6, sd=0.04, seed=1))
    assert judged.verdict.reason is Reason.TOO_NOISY
    # the first R with t(.985, 8 + R) · .04 · √(1/10 + 1/R + 2/16) below log 1.05
    assert judged.verdict.detail == "needs 18 runs"


def test_very_noisy_runs_say_that_the_baseline_is_too_small(make):
    baseline = make.baseline(make.noisy(MEDIAN, 3, sd=0.15))
    judged = make.judge(baseline, make.noisy(MEDIAN, 12, sd=0.15, seed=1))
    assert judged.verdict.reason is Reason.TOO_NOISY
    assert "record more baseline runs" in judged.verdict.detail


def test_luck_on_very_noisy_data_is_not_unchanged(make):
    # the upper bound at its own level is within, at one in three thousand it is not
    baseline = make.baseline(make.noisy(MEDIAN, 3, sd=0.06))
    judged = make.judge(baseline, make.noisy(MEDIAN, 3, center=0.85, sd=0.06, seed=1))
    assert of(judged).comparison.high < 1.05
    assert judged.verdict.outcome is Outcome.INCONCLUSIVE


def test_the_last_look_names_a_suspect_and_an_earlier_one_goes_on(make):
    baseline = make.baseline(make.noisy(MEDIAN, 10, sd=0.02))
    candidate = make.noisy(MEDIAN, 6, center=1.06, sd=0.02, seed=1)
    last = make.judge(baseline, candidate)
    assert last.verdict.reason is Reason.SUSPECT
    assert last.suspect
    assert not last.flagged
    early = make.judge(baseline, candidate, look=SECOND)
    assert not early.decided
    assert not early.suspect


@pytest.mark.parametrize(
    ("stored", "now"), [(1, 12), (2, 12), (10, 1), (10, 2), (1, 1)]
)
def test_three_runs_a_side_or_no_verdict(make, stored, now):
    baseline = make.baseline(make.noisy(MEDIAN, max(stored, 2))[:stored])
    judged = make.judge(
        baseline, make.runs(MEDIAN, [2.0 + 0.01 * i for i in range(now)])
    )
    assert judged.verdict.outcome is Outcome.INCONCLUSIVE
    assert judged.verdict.reason is Reason.TOO_FEW_RUNS
    assert f"baseline {stored}, candidate {now}" in judged.verdict.detail


def test_with_two_runs_the_numbers_are_shown_and_with_one_they_are_not(make, baseline):
    assert of(make.judge(baseline, make.noisy(MEDIAN, 2))).comparison is not None
    assert of(make.judge(baseline, make.noisy(MEDIAN, 3)[:1])).comparison is None


def test_too_small_a_baseline_is_not_waited_for(make):
    baseline = make.baseline(make.noisy(MEDIAN, 2))
    assert make.judge(baseline, make.noisy(MEDIAN, 3), look=FIRST).decided


def test_no_run_yet(make, baseline):
    early = make.judge(baseline, (), look=FIRST)
    assert early.verdict.reason is Reason.TOO_FEW_RUNS
    assert not early.decided
    assert make.judge(baseline, ()).decided


def test_another_variability_is_remarked(make, baseline):
    judged = make.judge(baseline, make.noisy(MEDIAN, 12, sd=0.08, seed=1))
    assert "variability changed" in of(judged).remarks


def test_the_error_within_runs_counts(make):
    baseline = make.baseline(make.noisy(MEDIAN, 10, sd=0.001, se=0.1))
    judged = make.judge(baseline, make.noisy(MEDIAN, 12, sd=0.001, se=0.1))
    assert of(judged).comparison.spread == pytest.approx(0.1, rel=0.01)


@pytest.mark.parametrize("value", [0.0, -1.0])
@pytest.mark.parametrize("side", ["baseline", "candidate"])
def test_what_is_not_positive_is_an_error_never_a_pass(make, value, side):
    good = make.runs(MEDIAN, [1.0, 1.0, 1.0])
    bad = make.runs(MEDIAN, [1.0, value, 1.0])
    stored, now = (bad, good) if side == "baseline" else (good, bad)
    judged = make.judge(make.baseline(stored), now)
    assert judged.verdict.outcome is Outcome.ERROR
    assert judged.verdict.reason is Reason.NOT_A_NUMBER
    assert f"{side} run 1" in judged.verdict.detail


# absolute budgets -------------------------------------------------------------


def test_a_metric_that_can_be_zero_has_an_absolute_budget(make):
    baseline = make.baseline(make.runs("backlog__median", [0.0, 1.0, -1.0, 0.5, -0.5]))
    same = make.runs("backlog__median", [0.5, -0.5, 0.0, 0.1, -0.1, 0.0])
    more = make.runs("backlog__median", [9.5, 10.5, 10.0, 10.1, 9.9, 10.2])
    specs = ["backlog=+3"]
    unchanged = make.judge(baseline, same, specs=specs)
    assert unchanged.verdict.outcome is Outcome.UNCHANGED
    worse = make.judge(baseline, more, specs=specs)
    found = of(worse, metric="backlog")
    assert worse.flagged
    assert (found.budget, found.bound) == (None, "+3 jobs")
    assert found.comparison.absolute
    assert found.comparison.ratio == pytest.approx(10.03, abs=0.01)
    assert found.comparison.detectable > 3


def test_a_constant_zero_is_unchanged_within_an_absolute_budget(make):
    runs = make.runs("backlog__median", [0.0] * 5)
    judged = make.judge(make.baseline(runs), runs, specs=["backlog=+1"])
    assert judged.verdict.outcome is Outcome.UNCHANGED


@pytest.mark.parametrize(
    ("now", "outcome"),
    [
        ([0.0] * 5, Outcome.UNCHANGED),
        ([0.0, 0.01, 0.0, 0.02, 0.0], Outcome.UNCHANGED),
        ([0.2, 0.21, 0.19, 0.2, 0.2], Outcome.REGRESSED),
    ],
)
def test_a_share_of_the_time_is_a_difference_and_never_a_count(make, now, outcome):
    baseline = make.baseline(make.runs("data_share__mean", [0.0] * 5))
    runs = make.runs("data_share__mean", now)
    judged = make.judge(baseline, runs, specs=["data_share=+5%"])
    assert judged.verdict.outcome is outcome
    found = of(judged, "mean", metric="data_share")
    assert found.bound == "+0.05"
    assert found.comparison.absolute
    # nobody named it: shown, zeros or not, as a difference
    shown = of(make.judge(baseline, runs), "mean", metric="data_share")
    assert (shown.gated, shown.comparison.absolute) == (False, True)


def test_a_disturbed_machine_moves_a_share_of_the_time(make):
    baseline = make.baseline(make.runs("data_share__mean", [0.1] * 5))
    runs = make.runs("data_share__mean", [0.5] * 5, disturbed=True)
    judged = make.judge(baseline, runs, specs=["data_share=+5%"])
    assert judged.verdict.reason is Reason.DISTURBED


@pytest.mark.parametrize(
    ("key", "spec", "example"),
    [
        ("loader_wait__mean", "loader_wait=10%", "+1ms"),
        ("peak_memory__max", "peak_memory=2%", "+1MiB"),
        ("backlog__median", "backlog=2%", "+1"),
    ],
)
def test_zeros_under_a_relative_budget_say_what_to_write(make, key, spec, example):
    runs = make.runs(key, [0.0, 1.0, 2.0])
    judged = make.judge(make.baseline(runs), runs, specs=[spec])
    assert judged.verdict.outcome is Outcome.ERROR
    assert judged.verdict.detail.endswith(f"an absolute budget like {example}")


def test_an_absolute_budget_knows_the_direction(make):
    baseline = make.baseline(make.runs("score__median", [50.0, 51.0, 49.0, 50.5]))
    judged = make.judge(
        baseline,
        make.runs("score__median", [40.0, 41.0, 39.0, 40.5]),
        specs=["score=+2"],
    )
    assert judged.flagged
    assert of(judged, metric="score").comparison.candidate == pytest.approx(40.125)


# steadiness, disturbance, resolution ------------------------------------------


def test_disturbed_runs_carry_no_verdict(make, baseline):
    runs = make.noisy(MEDIAN, 12, disturbed=True)
    judged = make.judge(baseline, runs)
    assert judged.verdict.reason is Reason.DISTURBED
    slow = make.judge(baseline, make.noisy(MEDIAN, 12, center=2.0, disturbed=True))
    assert slow.verdict.reason is Reason.DISTURBED


def test_one_disturbed_run_in_twelve_is_tolerated(make, baseline):
    runs = make.noisy(MEDIAN, 12, seed=1)
    mixed = (*runs[:11], *make.runs(MEDIAN, [1.0], disturbed=True))
    assert make.judge(baseline, mixed).verdict.outcome is Outcome.UNCHANGED


def test_a_disturbed_machine_does_not_move_a_size(make):
    baseline = make.baseline(make.noisy("peak_memory__max", 10, center=1e9))
    runs = make.noisy("peak_memory__max", 12, center=1e9, disturbed=True, seed=1)
    assert make.judge(baseline, runs).verdict.outcome is Outcome.UNCHANGED


@pytest.mark.parametrize("flaw", [{"drift": {"latency": 0.02}}, {"steady": False}])
def test_what_is_not_steady_carries_no_verdict(make, baseline, flaw):
    judged = make.judge(baseline, make.noisy(MEDIAN, 12, **flaw))
    assert judged.verdict.reason is Reason.NOT_STEADY
    slow = make.judge(baseline, make.noisy(MEDIAN, 12, center=1.08, **flaw))
    assert slow.verdict.reason is Reason.NOT_STEADY


def test_a_drift_is_told_with_the_clock_that_moved_with_it(make, baseline):
    device = {"sm_clock_first_mhz": 1965.0, "sm_clock_last_mhz": 1580.0}
    others = {"drift": {"latency": 0.14}, "device": device}
    runs = (*make.noisy(MEDIAN, 9, **others), *make.noisy(MEDIAN, 3, seed=1))
    assert make.judge(baseline, runs).verdict.detail == (
        "latency drifts by +15.0 % within 9 of 12 runs, while the GPU's clock went "
        "from 1965 to 1580 MHz"
    )


def test_a_baseline_that_drifts_is_named(make):
    runs = make.noisy(MEDIAN, 10, drift={"latency": -0.05})
    judged = make.judge(make.baseline(runs), make.noisy(MEDIAN, 12, seed=1))
    assert judged.verdict.reason is Reason.NOT_STEADY
    assert judged.verdict.detail == (
        "latency drifts by -4.9 % within 10 of 10 runs of the baseline"
    )


def test_runs_that_never_became_steady_are_counted(make, baseline):
    judged = make.judge(baseline, make.noisy(MEDIAN, 12, steady=False))
    assert judged.verdict.detail == (
        "12 of 12 runs and 0 of 10 runs of the baseline never became steady"
    )


def test_unless_the_whole_interval_lies_beyond_twice_the_budget(make, baseline):
    slow = make.judge(baseline, make.noisy(MEDIAN, 12, center=1.3, steady=False))
    assert slow.flagged
    fast = make.judge(baseline, make.noisy(MEDIAN, 12, center=0.7, steady=False))
    assert fast.verdict.outcome is Outcome.IMPROVED


def test_runs_that_drift_now_up_now_down_are_spread_not_drift(make, baseline):
    up = make.noisy(MEDIAN, 6, drift={"latency": 0.05}, seed=1)
    down = make.noisy(MEDIAN, 6, drift={"latency": -0.05}, seed=2)
    judged = make.judge(baseline, (*up, *down))
    assert judged.verdict.outcome is Outcome.UNCHANGED
    mostly_up = make.judge(baseline, (*up, up[0], *down[:5]))
    assert mostly_up.verdict.reason is Reason.NOT_STEADY


def test_a_drift_within_a_quarter_of_the_budget_is_let_pass(make, baseline):
    judged = make.judge(
        baseline, make.noisy(MEDIAN, 12, drift={"latency": 0.012}, seed=1)
    )
    assert judged.verdict.outcome is Outcome.UNCHANGED


def test_an_absolute_budget_knows_no_relative_drift(make):
    baseline = make.baseline(make.runs("backlog__median", [1.0, 1.1, 0.9]))
    runs = make.runs("backlog__median", [1.0, 1.1, 0.9], drift={"backlog": 0.5})
    assert (
        make.judge(baseline, runs, specs=["backlog=+1"]).verdict.outcome
        is Outcome.UNCHANGED
    )


def test_a_clock_coarser_than_the_budget_decides_nothing(make):
    runs = make.noisy(MEDIAN, 10, center=1e-7, clock_tick_s=1e-8)
    judged = make.judge(make.baseline(runs), runs[:3], look=FIRST)
    assert judged.verdict.reason is Reason.RESOLUTION
    assert "10.0 ns" in judged.verdict.detail
    assert judged.decided
    fine = make.noisy(MEDIAN, 10, center=1e-7, clock_tick_s=4e-9)
    assert (
        make.judge(make.baseline(fine), fine[:3]).verdict.outcome is Outcome.UNCHANGED
    )


def test_an_absolute_budget_is_held_against_the_tick_itself(make):
    runs = make.noisy(MEDIAN, 10, center=1.0, clock_tick_s=2e-3)
    coarse = make.judge(make.baseline(runs), runs, specs=["latency=+1ms"])
    assert coarse.verdict.reason is Reason.RESOLUTION


# the tail ---------------------------------------------------------------------


def tails(make, count, *, median=1.0, p99=1.5, iterations=400, sd=0.005, seed=0):
    medians = make.noisy(MEDIAN, count, center=median, sd=sd, seed=seed)
    quantiles = make.noisy("latency__p99", count, center=p99, sd=sd, seed=seed + 100)
    return tuple(
        make.run(
            iterations=iterations,
            latency__median=m.get("latency", "median").value,
            latency__p99=q.get("latency", "p99").value,
        )
        for m, q in zip(medians, quantiles, strict=True)
    )


def test_a_slower_tail_is_a_regression_though_the_median_is_not(make):
    judged = make.judge(
        make.baseline(tails(make, 10)), tails(make, 12, p99=3.0, seed=1)
    )
    assert of(judged).outcome is Outcome.UNCHANGED
    assert of(judged, "p99").reason is Reason.FLAGGED
    assert judged.flagged
    assert (of(judged, "p99").budget, of(judged, "p99").bound) == (0.1, "10 %")


def test_a_tail_may_hold_a_benchmark_for_one_more_look_and_no_longer(make):
    baseline = make.baseline(tails(make, 10, iterations=200))
    first = make.judge(baseline, tails(make, 3, iterations=200, seed=1), look=FIRST)
    assert of(first).outcome is Outcome.UNCHANGED
    assert of(first, "p99").reason is Reason.TOO_FEW_TAIL_SAMPLES
    assert not first.decided
    second = make.judge(baseline, tails(make, 6, iterations=200, seed=1), look=SECOND)
    assert second.decided
    assert second.verdict.outcome is Outcome.UNCHANGED
    at_budget = tails(make, 6, p99=1.64, iterations=200, seed=1)
    left = make.judge(baseline, at_budget, look=SECOND)
    assert left.decided
    assert left.verdict.outcome is Outcome.INCONCLUSIVE


def test_a_tail_without_samples_is_shown_with_the_number_it_needs(make):
    runs = make.runs("latency__p95", [1.0, 1.01, 0.99], iterations=50)
    both = tuple(
        make.run(
            iterations=50,
            latency__median=1.0,
            latency__p95=run.get("latency", "p95").value,
        )
        for run in runs
    )
    judged = make.judge(make.baseline(both), both)
    found = of(judged, "p95")
    assert not found.gated
    assert found.reason is Reason.NOT_GATED
    assert found.remarks == (
        "P99 is not gated: have 50 a run and 150 a side, P99 needs 200 and 1,000",
    )
    assert judged.verdict.outcome is Outcome.UNCHANGED


def test_a_tail_that_a_budget_names_is_never_quietly_left_out(make):
    runs = make.runs(MEDIAN, [1.0] * 5, iterations=50)
    judged = make.judge(make.baseline(runs), runs, specs=["p99=10%"])
    assert judged.verdict.reason is Reason.TOO_FEW_TAIL_SAMPLES
    assert "P99 needs 200 and 1,000" in judged.verdict.detail
    assert of(judged).outcome is Outcome.UNCHANGED


def test_a_tail_that_was_gated_when_recorded_is_missed(make):
    baseline = make.baseline(tails(make, 10))
    judged = make.judge(baseline, tails(make, 3, iterations=210, seed=1))
    assert of(judged, "p99").reason is Reason.TOO_FEW_TAIL_SAMPLES
    assert "have 210 a run and 630 a side" in judged.verdict.detail


def test_a_tail_too_noisy_to_see_twice_its_budget_is_shown(make):
    noisy = make.baseline(tails(make, 10, sd=0.15))
    judged = make.judge(noisy, tails(make, 12, sd=0.15, seed=1))
    found = of(judged, "p99")
    assert not found.gated
    assert "beyond twice the budget" in found.remarks[0]
    named = make.judge(noisy, tails(make, 12, sd=0.15, seed=1), specs=["p99=10%"])
    assert of(named, "p99").gated


def test_an_inner_loop_has_no_tail(make):
    runs = make.runs(MEDIAN, [1.0] * 5, iterations=500)
    judged = make.judge(make.baseline(runs, inner_loop=10), runs)
    assert [one.statistic for one in judged.judgements] == ["median"]
    assert judged.verdict.outcome is Outcome.UNCHANGED
    named = make.judge(make.baseline(runs, inner_loop=10), runs, specs=["p99=10%"])
    assert named.verdict.reason is Reason.TOO_FEW_TAIL_SAMPLES
    assert "inner loop" in named.verdict.detail


def of_rounds(baseline):
    return replace(baseline, metrics={"latency": ROUND_LATENCY})


def test_a_tail_of_rounds_is_shown_and_gated_where_named(make):
    base = of_rounds(make.baseline(tails(make, 10)))
    shown = make.judge(base, tails(make, 5, seed=1))
    assert not of(shown, "p99").gated
    assert of(shown, "p99").remarks == (
        "P99 is one of rounds, and not gated unless a budget names it",
    )
    usual = make.judge(base, tails(make, 5, seed=1), specs=["5%"])
    assert not of(usual, "p99").gated
    named = make.judge(base, tails(make, 5, seed=1), specs=["p99=10%"])
    assert of(named, "p99").gated
    assert of(named, "p99").remarks == (
        "a quantile of rounds, each the mean of its calls, not of calls",
    )


def test_rounds_are_never_compared_with_calls(make):
    base = of_rounds(make.baseline(make.runs(MEDIAN, [1.0] * 5)))
    judged = make.judge(
        base, make.runs(MEDIAN, [1.0] * 5), metrics={"latency": METRICS["latency"]}
    )
    assert judged.verdict.reason is Reason.METRIC_DIFFERS


def test_a_metric_of_few_samples_in_many_iterations_is_counted_by_its_own(make):
    def run(value):
        return make.run(
            iterations=1000, ttft__median=value, ttft__p95=value, samples={"ttft": 40}
        )

    runs = tuple(run(value) for value in (1.0, 1.01, 0.99, 1.0))
    judged = make.judge(make.baseline(runs), runs)
    assert "have 40 a run and 160 a side" in of(judged, "p95", "ttft").remarks[0]


def test_a_quantile_that_the_baseline_lacks_has_no_baseline(make):
    stored = make.noisy(MEDIAN, 10, iterations=400)
    now = tuple(
        make.run(iterations=400, latency__median=1.0, latency__p90=1.0)
        for _ in range(12)
    )
    judged = make.judge(make.baseline(stored), now, specs=["p90=5%"])
    assert judged.verdict.outcome is Outcome.NO_BASELINE
    assert "the baseline has no p90 of latency" in judged.verdict.detail


def test_sessions_that_lack_a_statistic_are_left_out_and_counted(make):
    with_mean = tuple(
        make.run(latency__median=v, latency__mean=v) for v in (1.0, 1.01, 0.99, 1.0)
    )
    baseline = make.baseline(make.noisy(MEDIAN, 5), with_mean)
    judged = make.judge(baseline, with_mean, specs=["mean=5%"])
    found = of(judged, "mean")
    assert found.outcome is Outcome.UNCHANGED
    assert found.comparison.baseline_runs == 4
    assert found.remarks == ("1 stored sessions lack mean",)


# the floor --------------------------------------------------------------------


def floors(make, count, *, median=1.0, floor=0.9, sd=0.002, median_sd=None, seed=0):
    medians = make.noisy(MEDIAN, count, center=median, sd=median_sd or sd, seed=seed)
    lows = make.noisy("latency__floor", count, center=floor, sd=sd, seed=seed + 100)
    return tuple(
        make.run(
            latency__median=m.get("latency", "median").value,
            latency__floor=low.get("latency", "floor").value,
        )
        for m, low in zip(medians, lows, strict=True)
    )


def test_a_floor_beside_a_good_median_is_only_shown(make):
    judged = make.judge(
        make.baseline(floors(make, 10)), floors(make, 12, floor=1.5, seed=1)
    )
    assert judged.verdict.outcome is Outcome.UNCHANGED
    assert not of(judged, "floor").gated


def test_a_floor_beside_a_flagged_median_is_only_shown(make):
    now = floors(make, 12, median=1.5, floor=1.4, seed=1)
    judged = make.judge(make.baseline(floors(make, 10)), now)
    assert judged.flagged
    assert not of(judged, "floor").gated


def test_a_floor_makes_a_doubtful_median_suspect(make):
    baseline = make.baseline(floors(make, 10, median_sd=0.08))
    now = floors(make, 12, median=1.03, floor=1.0, median_sd=0.08, seed=1)
    judged = make.judge(baseline, now)
    assert judged.verdict.reason is Reason.SUSPECT
    assert judged.suspect
    assert not judged.flagged
    assert of(judged).reason is Reason.TOO_NOISY
    assert of(judged, "floor").gated


def test_a_floor_never_acquits(make):
    baseline = make.baseline(floors(make, 10, median_sd=0.08))
    judged = make.judge(baseline, floors(make, 12, median_sd=0.08, seed=1))
    assert judged.verdict.reason is Reason.TOO_NOISY
    assert not of(judged, "floor").gated


def test_in_pairs_a_floor_may_flag(make):
    look = Look(index=2, paired=True)
    baseline = make.baseline(floors(make, 8, median_sd=0.08))
    judged = make.judge(
        baseline, floors(make, 8, floor=1.1, median_sd=0.09, seed=1), look=look
    )
    assert of(judged, "floor").reason is Reason.FLAGGED
    assert judged.flagged


# pairs ------------------------------------------------------------------------


def test_pairs_cancel_what_both_halves_share(make):
    shared = [1.0, 1.3, 0.8, 1.1, 0.9, 1.2]
    baseline = make.baseline(make.runs(MEDIAN, shared))
    same = make.runs(
        MEDIAN, [v * f for v, f in zip(shared, (1, 1.001, 0.999) * 2, strict=True)]
    )
    slow = make.runs(MEDIAN, [run.get("latency", "median").value * 1.1 for run in same])
    look = Look(index=2, paired=True)
    assert make.judge(baseline, same, look=look).verdict.outcome is Outcome.UNCHANGED
    assert make.judge(baseline, slow, look=look).flagged
    apart = make.judge(baseline, slow)
    assert apart.verdict.outcome is Outcome.INCONCLUSIVE


def test_four_pairs_carry_no_verdict(make):
    runs = make.noisy(MEDIAN, 4)
    judged = make.judge(
        make.baseline(runs), runs, look=Look(index=0, last=False, paired=True)
    )
    assert judged.verdict.reason is Reason.TOO_FEW_RUNS
    assert "needs 5 pairs" in judged.verdict.detail
    assert not judged.decided


def test_a_tail_in_pairs_is_gated_where_their_spread_lets_it_be_seen(make):
    look = Look(index=2, paired=True)
    base = tails(make, 8, sd=0.15)
    steady = make.judge(make.baseline(base), base, look=look)
    assert of(steady, "p99").gated
    noisy = make.judge(make.baseline(base), tails(make, 8, sd=0.15, seed=1), look=look)
    assert not of(noisy, "p99").gated
    (why,) = of(noisy, "p99").remarks
    assert why.startswith("P99 is not gated: the pairs let 12 pairs see no less than")
    named = make.judge(
        make.baseline(base),
        tails(make, 8, sd=0.15, seed=1),
        look=look,
        specs=["p99=10%"],
    )
    assert of(named, "p99").gated


def test_a_tail_of_pairs_that_lack_it_on_one_side_is_judged_as_ever(make):
    look = Look(index=2, paired=True)
    base = tails(make, 8, sd=0.15)
    bare = make.runs(MEDIAN, [1.0] * 8)
    judged = make.judge(make.baseline(base), bare, look=look)
    assert not judged.flagged


# when to stop -----------------------------------------------------------------


def test_an_open_median_wants_more_runs(make):
    baseline = make.baseline(make.noisy(MEDIAN, 10, sd=0.03))
    runs = make.noisy(MEDIAN, 12, sd=0.03, seed=1)
    first = make.judge(baseline, runs[:3], look=FIRST)
    assert not first.decided
    assert first.verdict.outcome is Outcome.INCONCLUSIVE


def test_what_is_hopeless_is_stopped_at_the_second_look_and_not_at_the_first(make):
    baseline = make.baseline(make.noisy(MEDIAN, 10, sd=0.15))
    runs = make.noisy(MEDIAN, 6, sd=0.15, seed=1)
    assert not make.judge(baseline, runs, look=FIRST).decided
    stopped = make.judge(baseline, runs, look=SECOND)
    assert stopped.decided
    assert stopped.verdict.reason is Reason.TOO_NOISY


def test_what_looks_slow_is_not_given_up(make):
    baseline = make.baseline(make.noisy(MEDIAN, 10, sd=0.15))
    runs = make.noisy(MEDIAN, 6, center=1.1, sd=0.15, seed=1)
    assert not make.judge(baseline, runs, look=SECOND).decided


def test_what_is_within_reach_is_not_given_up(make):
    baseline = make.baseline(make.noisy(MEDIAN, 10, sd=0.05))
    runs = make.noisy(MEDIAN, 6, sd=0.05, seed=1)
    assert not make.judge(baseline, runs, look=SECOND).decided


def test_an_open_second_metric_holds_the_benchmark(make):
    def runs(count, sd, seed):
        sizes = make.noisy("peak_memory__max", count, center=1e9, sd=sd, seed=seed)
        return tuple(
            make.run(
                latency__median=1.0, peak_memory__max=s.get("peak_memory", "max").value
            )
            for s in sizes
        )

    baseline = make.baseline(runs(10, 0.04, 0))
    judged = make.judge(baseline, runs(6, 0.04, 1), look=SECOND)
    assert of(judged).outcome is Outcome.UNCHANGED
    assert not judged.decided


def test_where_a_tail_is_all_there_is_it_is_waited_for(make):
    baseline = make.baseline(tails(make, 10, iterations=200), metrics=["latency"])
    runs = tails(make, 4, iterations=200, seed=1)
    policy = resolve_policy("b", specs=["latency.p99=10%"])
    only_tail = type(policy)(nodeid="b", rules=policy.rules, defaults=False)
    judged = make.judge(baseline, runs, look=SECOND, policy=only_tail)
    assert [one.statistic for one in judged.judgements if one.gated] == ["p99"]
    assert not judged.decided


# metrics ----------------------------------------------------------------------


def test_a_metric_that_is_gone_is_an_error(make):
    stored = tuple(
        make.run(latency__median=1.0, device_time__median=0.5) for _ in range(5)
    )
    now = make.runs(MEDIAN, [1.0] * 5)
    judged = make.judge(make.baseline(stored), now)
    assert judged.verdict.outcome is Outcome.ERROR
    assert judged.verdict.reason is Reason.METRIC_ABSENT
    assert judged.verdict.detail == "device_time in 5 of 5 runs"
    assert of(judged).outcome is Outcome.UNCHANGED


def test_a_statistic_that_some_runs_lack_is_an_error(make):
    stored = tuple(make.run(latency__median=1.0, latency__mean=1.0) for _ in range(5))
    now = (*stored[:4], make.run(latency__median=1.0))
    judged = make.judge(make.baseline(stored), now, specs=["mean=5%"])
    assert judged.verdict.detail == "latency mean in 1 of 5 runs"
    assert judged.verdict.outcome is Outcome.ERROR


def test_a_metric_that_is_only_shown_may_be_gone_with_a_remark(make):
    stored = tuple(
        make.run(latency__median=1.0, cpu_time__median=0.5) for _ in range(5)
    )
    judged = make.judge(make.baseline(stored), make.runs(MEDIAN, [1.0] * 5))
    assert judged.verdict.outcome is Outcome.UNCHANGED
    assert judged.remarks == (
        "cpu_time is in the baseline and was not measured in every run",
    )


def test_a_metric_that_is_only_shown_may_be_made_otherwise_with_a_remark(make):
    runs = tuple(make.run(latency__median=1.0, cpu_time__median=0.5) for _ in range(5))
    baseline = make.baseline(runs)
    now = replace(baseline.metrics["cpu_time"], definition="cpu/2")
    judged = make.judge(baseline, runs, metrics=baseline.metrics | {"cpu_time": now})
    before = baseline.metrics["cpu_time"].definition
    assert judged.verdict.outcome is Outcome.UNCHANGED
    assert judged.remarks == (
        f"cpu_time is not compared: cpu_time.definition was {before}, is cpu/2",
    )


def test_what_is_only_shown_has_its_numbers(make):
    def runs(count, seed):
        times = make.noisy("cpu_time__median", count, seed=seed)
        return tuple(
            make.run(
                latency__median=1.0, cpu_time__median=t.get("cpu_time", "median").value
            )
            for t in times
        )

    judged = make.judge(make.baseline(runs(10, 0)), runs(5, 1))
    found = of(judged, metric="cpu_time")
    assert (found.gated, found.outcome, found.reason) == (
        False,
        Outcome.SKIPPED,
        Reason.NOT_GATED,
    )
    assert found.comparison.detectable is None
    assert found.comparison.ratio == pytest.approx(1.0)


def test_a_shown_zero_has_no_ratio(make):
    runs = tuple(make.run(latency__median=1.0, cpu_time__median=0.0) for _ in range(5))
    judged = make.judge(make.baseline(runs), runs)
    assert of(judged, metric="cpu_time").comparison is None
    assert judged.verdict.outcome is Outcome.UNCHANGED


def test_a_new_metric_is_named(make, baseline):
    now = tuple(make.run(latency__median=1.0, e2e__median=1.0) for _ in range(5))
    metrics = {"latency": METRICS["latency"], "e2e": METRICS["e2e"]}
    judged = make.judge(baseline, now, metrics=metrics)
    assert judged.verdict.outcome is Outcome.UNCHANGED
    assert judged.remarks == ("e2e is new: it has no baseline, record one to gate it",)


def test_a_new_metric_that_a_budget_names_has_no_baseline(make, baseline):
    now = tuple(make.run(latency__median=1.0, e2e__median=1.0) for _ in range(5))
    metrics = {"latency": METRICS["latency"], "e2e": METRICS["e2e"]}
    judged = make.judge(baseline, now, metrics=metrics, specs=["e2e=5%"])
    assert judged.verdict.outcome is Outcome.NO_BASELINE
    assert of(judged, metric="e2e").gated


def test_another_definition_is_not_compared(make, baseline):
    other = Metric(name="latency", unit="s", definition="host-unsynchronised/1")
    judged = make.judge(baseline, make.noisy(MEDIAN, 5), metrics={"latency": other})
    assert judged.verdict.outcome is Outcome.INCOMPARABLE
    assert judged.verdict.reason is Reason.METRIC_DIFFERS
    assert "host-synchronised/1, is host-unsynchronised/1" in judged.verdict.detail


def test_the_marker_may_not_name_what_is_not_measured(make, baseline):
    runs = make.noisy(MEDIAN, 5)
    judged = make.judge(baseline, runs, marker_budget={"kernel_launches": "+0"})
    assert judged.verdict.outcome is Outcome.ERROR
    assert "kernel_launches" in judged.verdict.detail
    from_command_line = make.judge(baseline, runs, specs=["kernel_launches=+0"])
    assert from_command_line.verdict.outcome is Outcome.UNCHANGED


def test_gate_false_shows_and_judges_nothing(make, baseline):
    judged = make.judge(
        baseline,
        make.noisy(MEDIAN, 3, center=9.0),
        gate=False,
        limits=["p99<=1ms"],
        look=FIRST,
    )
    assert judged.verdict.outcome is Outcome.SKIPPED
    assert judged.verdict.reason is Reason.NOT_GATED
    assert judged.decided
    assert of(judged).comparison.ratio == pytest.approx(9.0)


def test_metrics_restricts_what_is_gated(make):
    stored = tuple(
        make.run(latency__median=1.0, device_time__median=0.5) for _ in range(5)
    )
    slow = tuple(
        make.run(latency__median=9.0, device_time__median=0.5) for _ in range(5)
    )
    judged = make.judge(make.baseline(stored), slow, only=("device_time",))
    assert judged.verdict.outcome is Outcome.UNCHANGED
    assert not of(judged).gated


def test_nothing_stored(make):
    judged = make.judge(None, make.noisy(MEDIAN, 3), look=FIRST)
    assert judged.verdict.outcome is Outcome.NO_BASELINE
    assert judged.verdict.reason is Reason.NOTHING_STORED
    assert judged.decided


# the outcome of a benchmark ---------------------------------------------------


def test_faster_in_the_tail_alone_is_unchanged(make):
    judged = make.judge(
        make.baseline(tails(make, 10)), tails(make, 12, p99=1.1, seed=1)
    )
    assert of(judged, "p99").outcome is Outcome.IMPROVED
    assert judged.verdict.outcome is Outcome.UNCHANGED


def test_faster_in_nothing_but_a_tail_is_no_more_than_unchanged(make):
    policy = resolve_policy("b", specs=["latency.p99=10%"])
    only_tail = type(policy)(nodeid="b", rules=policy.rules, defaults=False)
    judged = make.judge(
        make.baseline(tails(make, 10)),
        tails(make, 12, p99=1.1, seed=1),
        policy=only_tail,
    )
    assert judged.verdict.outcome is Outcome.UNCHANGED
    assert judged.verdict.reason is Reason.WITHIN_BUDGET


def test_a_regression_outranks_everything_else(make):
    stored = tuple(
        make.run(latency__median=1.0, device_time__median=0.5) for _ in range(5)
    )
    now = tuple(make.run(latency__median=9.0) for _ in range(5))
    judged = make.judge(make.baseline(stored), now)
    assert judged.verdict.outcome is Outcome.REGRESSED


def test_comparisons_are_counted(make):
    runs = tuple(
        make.run(latency__median=1.0, kernel_launches__max=3.0, peak_memory__max=9.0)
        for _ in range(3)
    )
    baseline = make.baseline(runs)
    # median and floor of the latency, the peak; a P99 of 100 samples is not gated
    assert count_comparisons(resolve_policy("b"), baseline) == 3
    assert count_comparisons(resolve_policy("b", gate=False), baseline) == 0
    more = resolve_policy("b", specs=["p90=5%", "kernel_launches=+0"])
    assert count_comparisons(more, baseline) == 4


def test_a_tail_counts_where_it_is_gated(make):
    runs = make.noisy("latency__p99", 10, sd=0.01, iterations=400)
    baseline = make.baseline(runs)
    assert count_comparisons(resolve_policy("b"), baseline) == 3
    few = Look(final_runs=3)
    noisy = make.baseline(make.noisy("latency__p99", 10, sd=0.05, iterations=400))
    assert count_comparisons(resolve_policy("b"), noisy, few) == 2


def test_a_tail_of_inner_loops_does_not_count(make):
    runs = make.noisy("latency__median", 10, sd=0.01, iterations=400)
    assert count_comparisons(resolve_policy("b"), make.baseline(runs)) == 2


def test_what_is_held_against_an_anchor_counts_too(make):
    runs = make.noisy("latency__median", 3, sd=0.01)
    baseline = make.baseline(runs, runs)
    assert count_comparisons(resolve_policy("b"), baseline) == 3


@pytest.mark.parametrize(
    ("budget", "told"),
    [
        ("+2 jobs", "allows +2 jobs, and queue_wait is measured in s"),
        ("+2", "allows +2, and queue_wait is measured in s"),
    ],
)
def test_a_budget_in_another_unit_is_an_error_and_not_taken_as_seconds(
    make, budget, told
):
    runs = make.noisy("queue_wait__median", 3)
    judged = make.judge(make.baseline(runs), runs, specs=[f"queue_wait={budget}"])
    (found,) = [one for one in judged.judgements if one.gated]
    assert judged.verdict == found.verdict
    assert (found.outcome, found.reason) == (Outcome.ERROR, Reason.UNIT_DIFFERS)
    assert told in found.verdict.detail
    sound = make.judge(make.baseline(runs), runs, specs=["queue_wait=+2ms"])
    assert sound.verdict.reason is not Reason.UNIT_DIFFERS
