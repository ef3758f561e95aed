"""When a canary may say that the gate is alive."""

import pytest

from pytest_perfgate.cli import canary_checks as checks
from pytest_perfgate.cli.canary_checks import Response
from pytest_perfgate.measured import METRICS, Metric
from pytest_perfgate.model import (
    BenchmarkResult,
    Comparison,
    Judgement,
    Outcome,
    Reason,
    Report,
    Verdict,
)

UNCHANGED = (Outcome.UNCHANGED, Reason.WITHIN_BUDGET)
REGRESSED = (Outcome.REGRESSED, Reason.CONFIRMED_WITHOUT_BASE)
NOISY = (Outcome.INCONCLUSIVE, Reason.TOO_NOISY)
RAISED = (Outcome.ERROR, Reason.BODY_RAISED)
FIRST = (Outcome.RECORDED, Reason.FIRST_SESSION)


def judgement(kind, *, budget=0.05, sees=0.06, metric=METRICS["latency"], **changes):
    comparison = Comparison(
        baseline=1.0,
        candidate=1.1,
        ratio=1.1,
        low=1.08,
        high=1.12,
        p_identity=0.5,
        baseline_runs=10,
        candidate_runs=3,
        spread=0.01,
        detectable=sees,
    )
    fields = {
        "metric": metric,
        "statistic": "median",
        "verdict": Verdict(outcome=kind[0], reason=kind[1]),
        "budget": budget,
        "comparison": comparison,
    }
    return Judgement(**fields | changes)


def result(name, kind, *judgements):
    return BenchmarkResult(
        benchmark=name,
        nodeid=name,
        verdict=Verdict(outcome=kind[0], reason=kind[1]),
        judgements=judgements or (judgement(kind),),
    )


def report(*results, **changes):
    fields = {
        "created": "2026-11-02T09:30:00Z",
        "commit": None,
        "environment": None,
        "results": results,
        "exit_code": 0,
        "summary": "",
    }
    return Report(**fields | changes)


def watch(*results):
    return tuple(checks.watched(report(*results)))


# -- the baselines, and the same code


@pytest.mark.parametrize(
    ("kinds", "ok"),
    [([FIRST, FIRST], True), ([FIRST, RAISED], False), ([], False)],
)
def test_every_benchmark_needs_a_baseline(kinds, ok):
    found = checks.recorded(report(*(result("a", kind) for kind in kinds)))
    assert found.ok is ok


@pytest.mark.parametrize(
    ("kinds", "ok"),
    [
        ([UNCHANGED, NOISY], True),
        ([NOISY], True),
        ([UNCHANGED, REGRESSED], False),
        ([UNCHANGED, RAISED], False),
        ([(Outcome.INVALID, Reason.BUSY)], False),  # nothing was judged at all
        ([], False),
    ],
)
def test_the_same_code_must_not_go_red(kinds, ok):
    found = checks.same_code(report(*(result("a", kind) for kind in kinds)))
    assert found.ok is ok


# -- what a slowdown reaches


def test_the_smallest_budget_of_a_time_is_what_counts():
    p99 = judgement(UNCHANGED, budget=0.1, statistic="p99")
    rate = judgement(UNCHANGED, budget=0.02, metric=METRICS["throughput"], sees=None)
    (one,) = watch(result("a", UNCHANGED, p99, rate, judgement(UNCHANGED)))
    assert (one.statistic, one.budget, one.sees) == ("throughput·median", 0.02, None)
    assert one.planted == 0.04


@pytest.mark.parametrize(
    "changes",
    [
        {"gated": False},
        {"anchor": True},
        {"budget": None},
        {"metric": METRICS["peak_memory"]},
        {"metric": Metric(name="queue", unit="s", definition="recorded/1")},
        {"metric": Metric(name="ticks", unit="s", exact=True)},
    ],
)
def test_what_time_does_not_reach_is_not_slowed(changes):
    assert watch(result("a", UNCHANGED, judgement(UNCHANGED, **changes))) == ()


def test_benchmarks_of_one_budget_are_slowed_together():
    found = watch(
        result("a", UNCHANGED),
        result("b", UNCHANGED, judgement(UNCHANGED, budget=0.2)),
        result("c", UNCHANGED),
    )
    groups = checks.by_slowdown(found)
    assert {p: [one.benchmark for one in group] for p, group in groups.items()} == {
        0.1: ["a", "c"],
        0.4: ["b"],
    }


# -- what became of it


@pytest.mark.parametrize(
    ("kind", "sees", "response"),
    [
        (REGRESSED, 0.06, Response.RED),
        (UNCHANGED, 0.06, Response.PASSED),
        (UNCHANGED, 0.5, Response.PASSED),  # blind, and yet it said all is well
        ((Outcome.IMPROVED, Reason.FASTER), 0.06, Response.PASSED),
        ((Outcome.SKIPPED, Reason.SKIPPED), 0.06, Response.PASSED),
        (NOISY, 0.11, Response.BLIND),
        (NOISY, 0.06, Response.UNDECIDED),
        (NOISY, None, Response.UNDECIDED),
        ((Outcome.INVALID, Reason.BUSY), 0.06, Response.UNDECIDED),
    ],
)
def test_a_response(kind, sees, response):
    group = watch(result("a", UNCHANGED, judgement(UNCHANGED, sees=sees)))
    (found,) = checks.slowed(report(result("a", kind)), group)
    assert found.response is response
    assert found.effect == (1.1, 1.08, 1.12)


def test_a_doubt_about_the_tail_does_not_hide_that_the_median_passed():
    group = watch(result("a", UNCHANGED))
    doubt = (Outcome.INCONCLUSIVE, Reason.TOO_FEW_TAIL_SAMPLES)
    tail = judgement(doubt, statistic="p99")
    slow = report(result("a", doubt, judgement(UNCHANGED), tail))
    assert [one.response for one in checks.slowed(slow, group)] == [Response.PASSED]


def test_a_benchmark_that_vanished_is_undecided():
    (found,) = checks.slowed(report(), watch(result("a", UNCHANGED)))
    assert (found.response, found.effect) == (Response.UNDECIDED, None)


def responses(*kinds):
    found = []
    for at, kind in enumerate(kinds):
        group = watch(result(f"b{at}", UNCHANGED, judgement(UNCHANGED, sees=0.2)))
        found += checks.slowed(report(result(f"b{at}", kind)), group)
    return found


@pytest.mark.parametrize(
    ("kinds", "code", "verdict", "alive"),
    [
        ([REGRESSED, REGRESSED], 1, "ok", True),
        ([REGRESSED, NOISY], 1, "ok", True),
        ([REGRESSED, UNCHANGED], 1, "FAILED", False),
        ([UNCHANGED], 0, "FAILED", False),
        ([REGRESSED], 0, "FAILED", False),  # an expected failure took it in
        ([NOISY], 0, "blind", False),
    ],
)
def test_the_gate_is_alive_if_something_goes_red_and_nothing_passes(
    kinds, code, verdict, alive
):
    found = responses(*kinds)
    check = checks.goes_red(0.1, found, code=code)
    assert (check.name, check.verdict) == ("10 % slower", verdict)
    assert checks.alive([check], found) is alive
    assert checks.conclusion([check], found).startswith(
        "the gate is alive" if alive else "the gate is not"
    )


def test_one_check_that_failed_is_enough():
    found = responses(REGRESSED)
    good = checks.goes_red(0.1, found, code=1)
    bad = checks.broken("NaN measured", "error", "it fell over")
    assert not checks.alive([good, bad], found)
    assert "NaN measured FAILED" in checks.conclusion([good, bad], found)


# -- what must never pass


@pytest.mark.parametrize(
    ("kind", "code", "lenient", "ok"),
    [
        ((Outcome.NO_BASELINE, Reason.NOTHING_STORED), 10, False, True),
        ((Outcome.NO_BASELINE, Reason.NOTHING_STORED), 0, False, False),
        ((Outcome.NO_BASELINE, Reason.NOTHING_STORED), 0, True, True),
        (UNCHANGED, 10, False, False),
        (UNCHANGED, 0, True, False),
    ],
)
def test_an_outcome_is_required(kind, code, lenient, ok):
    found = checks.must_be(
        "deleted",
        report(result("a", kind)),
        code=code,
        reason=Reason.NOTHING_STORED,
        wanted=(Outcome.NO_BASELINE, 10),
        lenient=lenient,
    )
    assert found.ok is ok


def test_an_empty_report_is_no_answer():
    found = checks.must_be(
        "deleted",
        report(),
        code=10,
        reason=Reason.NOTHING_STORED,
        wanted=(Outcome.NO_BASELINE, 10),
    )
    assert (found.ok, found.happened) == (False, "nothing; exit 10")


# -- which benchmarks


@pytest.mark.parametrize(
    ("number", "taken"),
    [(None, "abcdefg"), (7, "abcdefg"), (9, "abcdefg"), (1, "a"), (3, "ace")],
)
def test_some_are_taken_from_all_over(number, taken):
    assert checks.spread(tuple("abcdefg"), number) == tuple(taken)
