"""Calls that are over too soon for a GPU's events, in whole sessions."""

BENCH = "benches/bench_a.py::bench_one"
SHORT = {"seconds": 2.05e-5, "device": 0.5}
"""Of 10.25 µs on the device: twenty make 205."""
ONE = "import pytest\n\n{mark}\ndef bench_one(perfgate):\n    perfgate(lambda: None)\n"
SINGLE = ONE.format(mark="@pytest.mark.perfgate(inner_loop=1)")
FREE = ONE.format(mark="")
THREE = ("--perfgate-runs=3:3", "benches")


def plans(project):
    return {(m.plan.inner_loop, m.plan.iterations) for m in project.measurements()}


def statistics(project):
    (result,) = project.report["results"]
    return {
        (judgement["metric"]["name"], judgement["statistic"])
        for judgement in result["judgements"]
    }


def test_recorded_with_twenty_calls_a_sample_and_judged_with_them(project):
    project.bench(FREE)
    project.device({BENCH: SHORT})
    session = project.record("benches")
    (plan,) = plans(project)
    assert plan[0] == 20  # in all ten runs
    session.stdout.fnmatch_lines(["*no P99: a sample is the mean of 20 calls*"])
    # an order of magnitude slower, and still twenty: the plan governs
    project.device({BENCH: SHORT | {"factor": 10}}, salt=1)
    session = project.run(*THREE)
    assert (session.ret, project.outcomes[BENCH][0]) == (1, "regressed")
    assert plans(project) == {plan}
    assert {s for _, s in statistics(project)}.isdisjoint({"p99", "p95"})
    session.stdout.fnmatch_lines(["*no P99: a sample is the mean of 20 calls*"])


def test_a_baseline_of_single_calls_stays_comparable(project):
    project.bench(SINGLE)
    project.device({BENCH: SHORT})
    project.adopt("benches")
    project.bench(FREE)
    project.device({BENCH: SHORT}, salt=1)
    session = project.run(*THREE)
    assert project.outcomes == {BENCH: ("unchanged", "within-budget")}
    assert {calls for calls, _ in plans(project)} == {1}
    assert ("latency", "p99") in statistics(project)
    session.stdout.fnmatch_lines(
        ["*mostly gaps between launches*", "*--perfgate-update records one*"]
    )
    session.stdout.no_fnmatch_line("*no P99*")


def test_a_budget_for_p99_says_what_it_needs(project):
    project.bench(FREE)
    project.device({BENCH: SHORT})
    project.adopt("benches")
    session = project.run("--perfgate-budget=latency.p99=10%", *THREE)
    assert project.outcomes == {BENCH: ("inconclusive", "too-few-tail-samples")}
    session.stdout.fnmatch_lines(
        ["*P99 needs single calls*", "*20 calls (inner_loop=1 takes them one by one)"]
    )


def test_every_run_takes_as_many_calls_as_the_first_that_came_to_its_end(project):
    slower = {str(run): {"factor": 3} for run in range(3, 9)}
    project.device(
        {
            "*::bench_a": SHORT | {"runs": slower | {"2": {"factor": 3}}},
            "*::bench_b": SHORT | {"runs": slower, "factor": 2},
        }
    )
    project.bench(
        """
import os, pathlib

def bench_a(perfgate):
    perfgate(lambda: None)

def bench_b(perfgate):
    seen = pathlib.Path("seen")
    if not seen.exists():
        seen.touch()
        os._exit(9)
    perfgate(lambda: None)
"""
    )
    project.run("--perfgate-on-missing=warn", *THREE)
    found = {}
    for measurement in project.measurements():
        found.setdefault(measurement.benchmark[-1], []).append(
            measurement.plan.inner_loop
        )
    assert {name: set(calls) for name, calls in found.items()} == {
        "a": {20},
        "b": {10},  # its first run died
    }
