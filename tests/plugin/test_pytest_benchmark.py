"""A suite that uses pytest-benchmark is gated as it is."""

import subprocess
import sys

import pytest

from pytest_perfgate.campaign import manager

pytest.importorskip("pytest_benchmark")

PLUGINS = "pytest_perfgate.plugin,pytest_benchmark.plugin"
SUITE = """
import pytest


def test_sorted(benchmark):
    benchmark.extra_info["items"] = 3
    assert benchmark(sorted, [3, 1, 2]) == [1, 2, 3]


def test_slower(benchmark):
    benchmark(lambda: None)


def test_faster(benchmark):
    benchmark(lambda: None)


@pytest.mark.benchmark(group="sums")
@pytest.mark.parametrize("n", [10, 100])
def test_sum(benchmark, n):
    assert benchmark(sum, range(n)) == n * (n - 1) // 2


def test_pedantic(benchmark):
    made = []
    benchmark.pedantic(made.pop, setup=lambda: made.append(1), rounds=20)


def test_several_calls(benchmark):
    benchmark.pedantic(lambda: None, rounds=350, iterations=3)


@pytest.fixture
def wrapped(benchmark):
    return benchmark


def test_by_another_fixture(wrapped):
    wrapped(lambda: None)


def test_plain():
    pass
"""
NEVER = "def test_never(benchmark):\n    pass\n"
FILE = "tests/test_speed.py"
BRIEF = "--benchmark-max-time=0.4"


def named(name):
    return f"{FILE}::{name}"


@pytest.fixture(scope="module")
def judged(make_spawned):
    """One session against baselines: slower, faster, and as it was."""
    project = make_spawned("guest")
    project.plugins = PLUGINS
    project.bench(SUITE, FILE)
    project.adopt("tests", BRIEF)
    project.bench(NEVER, "tests/test_never.py")
    project.device(
        {
            f"{FILE}::test_slower": {"factor": 1.3},
            f"{FILE}::test_faster": {"factor": 0.7},
        },
        salt=1,
    )
    project.run(
        "tests",
        BRIEF,
        "-v",
        "--perfgate-budget=*several*:p99=50%",
        "--benchmark-disable",
        "--benchmark-skip",
        "--benchmark-json=theirs.json",
        "--benchmark-autosave",
    )
    return project


@pytest.mark.parametrize(
    ("test", "outcome", "reason"),
    [
        (named("test_sorted"), "unchanged", "within-budget"),
        (named("test_slower"), "regressed", "confirmed-without-base"),
        (named("test_faster"), "improved", "faster-beyond-budget"),
        (named("test_sum[10]"), "unchanged", "within-budget"),
        (named("test_sum[100]"), "unchanged", "within-budget"),
        (named("test_pedantic"), "unchanged", "within-budget"),
        (named("test_several_calls"), "unchanged", "within-budget"),
        (named("test_by_another_fixture"), "unchanged", "within-budget"),
        ("tests/test_never.py::test_never", "error", "nothing-measured"),
    ],
)
def test_each_is_judged(judged, test, outcome, reason):
    assert judged.outcomes[test] == (outcome, reason)


def test_the_rest_is_deselected_and_the_session_red(judged):
    assert len(judged.outcomes) == 9
    assert judged.code == 1
    assert "1 deselected" in judged.output


def test_every_run_makes_the_rounds_of_the_plan(judged):
    plans = {}
    for measurement in judged.measurements():
        plan = measurement.plan
        plans.setdefault(measurement.benchmark, set()).add(
            (plan.iterations, plan.inner_loop)
        )
    assert plans[named("test_pedantic")] == {(20, 1)}
    assert plans[named("test_several_calls")] == {(350, 3)}
    # by itself the slower one would have made fewer
    (slower,) = plans[named("test_slower")]
    assert slower[0] > 350


def test_what_would_stop_or_write_is_named_and_done_without(judged):
    assert (
        "note: --benchmark-json, --benchmark-autosave, --benchmark-disable, "
        "--benchmark-skip: without effect" in judged.output
    )
    assert not (judged.path / "theirs.json").exists()
    # its folder is made by every session, with the gate or without
    assert not list((judged.path / ".benchmarks").rglob("*.json"))


def test_p99_is_called_one_of_rounds_and_gated_only_where_named(judged):
    found = {
        result["benchmark"]: [
            (one["statistic"], one["gated"], one["remarks"])
            for one in result["judgements"]
            if one["statistic"] == "p99"
        ]
        for result in judged.report["results"]
    }
    ((_, gated, remarks),) = found[named("test_sorted")]
    assert not gated
    assert remarks == ["P99 is one of rounds, and not gated unless a budget names it"]
    ((_, gated, remarks),) = found[named("test_several_calls")]
    assert gated
    assert remarks == ["a quantile of rounds, each the mean of its calls, not of calls"]
    assert "latency·p99 of rounds" in judged.output


def test_group_and_extra_info_are_remarks(judged):
    remarks = {r["benchmark"]: r["remarks"] for r in judged.report["results"]}
    assert "extra_info: {'items': 3}" in remarks[named("test_sorted")]
    assert "group: sums" in remarks[named("test_sum[10]")]


def test_it_says_what_to_do_about_one_that_was_never_called(judged):
    assert "call benchmark(fn), or remove it from the test" in judged.output


# the way of a newcomer


@pytest.fixture
def guest(project, monkeypatch):
    """A project whose pytest loads pytest-benchmark, too."""
    project.plugins = PLUGINS
    monkeypatch.setenv("PYTEST_PLUGINS", PLUGINS)
    return project


def test_a_suite_passes_plainly_is_recorded_and_judged(guest, monkeypatch):
    monkeypatch.setattr(manager, "RECORDING_RUNS", 4)  # ten show no more
    guest.bench("def test_one(benchmark):\n    benchmark(lambda: None)\n", FILE)
    plain = guest.plain("tests", "--benchmark-only", "--benchmark-max-time=0.01")
    assert plain.ret == 0
    plain.stdout.fnmatch_lines(["*benchmark: 1 tests*", "*1 passed*"])
    guest.record("tests")
    assert guest.baseline(FILE).exists()
    again = guest.run("tests", "--benchmark-only")
    assert again.ret == 0
    assert guest.outcomes == {named("test_one"): ("unchanged", "within-budget")}


def test_other_options_for_the_rounds_are_another_plan(guest):
    guest.bench("def test_one(benchmark):\n    benchmark(lambda: None)\n", FILE)
    guest.adopt("tests")
    result = guest.run("tests", "--benchmark-min-rounds=7", "--perfgate-runs=3:3")
    assert result.ret == 11
    assert guest.outcomes == {named("test_one"): ("incomparable", "plan-differs")}
    assert "min_rounds=7" in guest.report["results"][0]["verdict"]["detail"]


def test_a_planted_slowdown_reaches_it(guest):
    guest.bench("def test_one(benchmark):\n    benchmark(lambda: None)\n", FILE)
    guest.adopt("tests")
    result = guest.run("tests", "--perfgate-slowdown=60%", "--perfgate-runs=3:3")
    assert result.ret == 1
    assert guest.outcomes[named("test_one")][0] == "regressed"


def test_options_of_ours_that_do_not_hold_are_named(guest):
    guest.bench("def test_one(benchmark):\n    benchmark(lambda: None)\n", FILE)
    result = guest.run("tests", "--perfgate-iterations=7", "--perfgate-runs=3:3")
    result.stdout.fnmatch_lines(["*iterations given to perfgate do not hold*"])


def test_a_flushed_cache_does_not_hold_and_is_named(guest):
    guest.bench(
        "import pytest\n"
        "@pytest.mark.perfgate(cache='flush')\n"
        "def test_one(benchmark):\n    benchmark(lambda: None)\n",
        FILE,
    )
    result = guest.run("tests", "--perfgate-runs=3:3")
    result.stdout.fnmatch_lines(["*cache given to perfgate do not hold*"])
    assert "cache" not in guest.report["results"][0]["plan"]


# whose fixture it is


def collected(project, *arguments):
    result = project.run("--collect-only", "-q", *arguments)
    return result, [line for line in result.outlines if "::" in line]


BENCH = "def bench_it(benchmark):\n    benchmark(lambda: None)\n"


def test_bench_files_are_collected(guest):
    guest.bench(BENCH, "benches/bench_it.py")
    _, found = collected(guest)
    assert found[0] == "benches/bench_it.py::bench_it"
    plain = guest.pytester.runpytest_inprocess("--collect-only", "-q")
    assert plain.ret == 5  # nothing, without the flag
    plain = guest.pytester.runpytest_inprocess(
        "--collect-only", "-q", "benches/bench_it.py"
    )
    assert "benches/bench_it.py::bench_it" in plain.outlines


def test_a_wrapper_that_asks_for_the_fixture_changes_nothing(guest):
    guest.bench(
        "import pytest\n"
        "@pytest.fixture\n"
        "def benchmark(benchmark):\n"
        "    benchmark.extra_info['commit'] = 'c0ffee'\n"
        "    return benchmark\n",
        "conftest.py",
    )
    guest.bench("def test_one(benchmark):\n    benchmark(lambda: None)\n", FILE)
    guest.run("tests", "--perfgate-runs=3:3", "--perfgate-on-missing=warn")
    (result,) = guest.report["results"]
    assert result["verdict"]["outcome"] == "no-baseline"
    assert "extra_info: {'commit': 'c0ffee'}" in result["remarks"]


SOMEBODYS = """
import pytest


@pytest.fixture
def benchmark():
    return 42


def test_one(benchmark):
    assert benchmark == 42
"""


@pytest.mark.parametrize("plugins", ["pytest_perfgate.plugin", PLUGINS])
def test_somebody_elses_fixture_makes_no_benchmark(project, monkeypatch, plugins):
    monkeypatch.setenv("PYTEST_PLUGINS", plugins)
    project.bench(SOMEBODYS, FILE)
    result, found = collected(project)
    assert found == []
    assert result.ret == 5


def test_without_any_such_fixture_pytest_says_so(project):
    project.bench("def test_one(benchmark):\n    benchmark(lambda: None)\n", FILE)
    result = project.run("tests")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*fixture 'benchmark' not found*"])
    assert project.outcomes == {named("test_one"): ("error", "body-raised")}


def test_both_fixtures_in_one_test_are_refused(guest):
    guest.bench("def test_one(benchmark, perfgate): pass\n", FILE)
    result = guest.run("tests")
    assert result.ret == 4
    result.stderr.fnmatch_lines(["*test_one asks for both benchmark and perfgate*"])


def test_both_are_refused_where_only_the_body_asks(guest):
    guest.bench(
        "def test_one(perfgate, request):\n"
        "    request.getfixturevalue('benchmark')(lambda: None)\n"
        "def test_two(benchmark, request):\n"
        "    request.getfixturevalue('perfgate')(lambda: None)\n",
        FILE,
    )
    result = guest.run("tests")
    result.stdout.fnmatch_lines(
        [
            f"*test_{name} asks for both benchmark and perfgate*"
            for name in ("one", "two")
        ]
    )
    assert {outcome for outcome, _ in guest.outcomes.values()} == {"error"}


def test_neither_plugin_imports_anything_of_ours_without_the_flag(guest):
    guest.pytester.makeini("[pytest]\n")
    guest.bench("def test_one(benchmark):\n    benchmark(lambda: None)\n", FILE)
    code = (
        "import sys, pytest; pytest.main(['-q', '--benchmark-disable', 'tests']);"
        "print(sorted(m for m in sys.modules if m.startswith('pytest_perfgate')))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        cwd=guest.path,
    )
    assert done.stdout.splitlines()[-1] == (
        "['pytest_perfgate', 'pytest_perfgate.options', 'pytest_perfgate.plugin']"
    )
