"""Strings become numbers once, and what cannot is refused by its own name."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from pytest_perfgate.errors import UsageError
from pytest_perfgate.measured import Plan
from pytest_perfgate.settings import item_settings, resolve


@pytest.fixture
def settings(pytester, monkeypatch):
    """Resolve what a command line and an ini file say."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)

    def read(*arguments, ini=""):
        pytester.makeini(f"[pytest]\n{ini}")
        config = pytester.parseconfig(
            "-p", "pytest_perfgate.plugin", "--perfgate", *arguments
        )
        return resolve(config)

    return read


def marked(*marks, nodeid="a.py::bench_a"):
    """An item under markers, the closest first."""
    return SimpleNamespace(nodeid=nodeid, iter_markers=lambda _: iter(marks))


def mark(*args, **kwargs):
    return pytest.mark.perfgate(*args, **kwargs).mark


def test_defaults(settings, pytester):
    found = settings()
    assert (found.runs_min, found.runs_max) == (3, 12)
    assert (found.max_time_s, found.timeout_s, found.max_total_s) == (3.0, 300.0, None)
    assert (found.iterations, found.warmup, found.seed) == (None, None, 0)
    assert (found.on_missing, found.on_inconclusive) == ("fail", "warn")
    assert (found.budgets, found.limits, found.slowdown) == ((), (), 0.0)
    assert (found.update, found.force) == (False, False)
    assert found.baselines == pytester.path / "baselines"
    assert found.report == pytester.path / ".perfgate" / "last"
    assert found.given == {"--perfgate": "True"}


def test_values_of_the_command_line(settings, pytester):
    found = settings(
        "--perfgate-runs=4:8",
        "--perfgate-iterations=40",
        "--perfgate-max-time=500ms",
        "--perfgate-warmup=0",
        "--perfgate-timeout=2min",
        "--perfgate-max-total=1h",
        "--perfgate-seed=4294967295",
        "--perfgate-slowdown=60%",
        "--perfgate-report=/elsewhere",
        "--perfgate-device=cuda:1",
    )
    assert (found.runs_min, found.runs_max, found.iterations) == (4, 8, 40)
    assert (found.max_time_s, found.timeout_s, found.max_total_s) == (0.5, 120, 3600)
    assert (found.warmup, found.seed, found.slowdown) == (0, 2**32 - 1, 0.6)
    assert str(found.report) == "/elsewhere"
    assert found.device == "cuda:1"
    assert found.given["--perfgate-max-time"] == "500ms"


def test_the_command_line_wins_over_the_ini_file(settings):
    ini = "perfgate_runs = 5:6\nperfgate_seed = 3\nperfgate_on_missing = warn\n"
    found = settings("--perfgate-runs=3:4", ini=ini)
    assert (found.runs_min, found.seed, found.on_missing) == (3, 3, "warn")


def test_an_empty_ini_value_is_the_default(settings):
    assert settings(ini="perfgate_runs =\n").runs_min == 3


def test_budgets_add_up_and_the_later_come_last(settings):
    ini = "perfgate_budget =\n    5%\n    p99=10%\nperfgate_limit =\n    p99<=1s\n"
    found = settings("--perfgate-budget=7%", "--perfgate-budget=a.py:8%", ini=ini)
    assert found.budgets == ("5%", "p99=10%", "7%", "a.py:8%")
    assert found.limits == ("p99<=1s",)
    assert found.given["--perfgate-budget"] == "5% p99=10% 7% a.py:8%"


@pytest.mark.parametrize("flag", ["--perfgate-update", "--perfgate-update-force"])
def test_force_is_an_update_too(settings, flag):
    found = settings(flag)
    assert found.update
    assert found.force is flag.endswith("force")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("runs = 2", "--perfgate-runs='2' starts below 3 runs"),
        ("seed = -1", "--perfgate-seed='-1': write a whole number from 0"),
        ("seed = 4294967296", "--perfgate-seed='4294967296': write a whole number"),
        ("iterations = ²", "--perfgate-iterations='²': write a whole number"),
        ("max_time = soon", "--perfgate-max-time='soon' is not a duration"),
        ("max_total = nan", "--perfgate-max-total='nan': write seconds above 0"),
        ("warmup = much", "--perfgate-warmup='much': write auto or"),
        ("on_missing = no", "--perfgate-on-missing='no' is not one of fail, warn"),
        ("budget = much", "--perfgate-budget='much' is neither"),
        ("limit = p99", "--perfgate-limit='p99' is not a limit"),
    ],
)
def test_a_bad_value_of_an_ini_file_is_named_once(settings, given, message):
    with pytest.raises(UsageError) as caught:
        settings(ini=f"perfgate_{given}\n")
    assert str(caught.value).startswith(message)
    value = given.partition(" = ")[2]
    assert str(caught.value).count(f"'{value}'") == 1


@pytest.mark.parametrize("name", ["runs", "max-total", "budget", "baselines", "device"])
def test_an_empty_value_of_the_command_line_is_refused(settings, name):
    with pytest.raises(UsageError, match=f"--perfgate-{name}='' is empty"):
        settings(f"--perfgate-{name}=")


# -- markers


def test_without_a_marker_the_sessions_values_hold(settings):
    own = item_settings(marked(), settings("--perfgate-iterations=9"))
    assert (own.iterations, own.max_time_s, own.inner_loop) == (9, 3.0, None)
    assert (own.gate, own.isolate, own.metrics) == (True, False, None)
    assert (own.budget, own.limit) == (None, None)


def test_a_marker_wins_over_the_command_line(settings):
    marker = mark(
        iterations=5, max_time="2s", warmup="auto", timeout=7, seed=1, inner_loop=100
    )
    own = item_settings(
        marked(marker), settings("--perfgate-iterations=9", "--perfgate-warmup=3")
    )
    assert (own.iterations, own.max_time_s, own.warmup) == (5, 2.0, None)
    assert (own.timeout_s, own.seed, own.inner_loop) == (7.0, 1, 100)


@pytest.mark.parametrize("counts", [True, False])
def test_counts_are_asked_for_or_forbidden(settings, counts):
    assert item_settings(marked(), settings()).counts is None
    assert item_settings(marked(mark(counts=counts)), settings()).counts is counts
    with pytest.raises(UsageError, match="counts='no' is neither True nor False"):
        item_settings(marked(mark(counts="no")), settings())


def test_the_closest_marker_wins_and_tables_merge(settings):
    function = mark(budget={"p99": "30%"}, gate=False)
    cls = mark(budget={"median": "4%", "p99": "9%"}, isolate=True)
    module = mark(budget={"median": "1%", "floor": "2%"}, gate=True, limit="p99<=1s")
    own = item_settings(marked(function, cls, module), settings())
    assert own.budget == {"median": "4%", "floor": "2%", "p99": "30%"}
    assert (own.gate, own.isolate, own.limit) == (False, True, "p99<=1s")


def test_a_text_takes_the_place_of_a_table(settings):
    own = item_settings(
        marked(mark(budget="3%"), mark(budget={"p99": "9%"})), settings()
    )
    assert own.budget == "3%"


@pytest.mark.parametrize("metrics", [("latency", "ttft"), ["latency", "ttft"]])
def test_metrics_are_names(settings, metrics):
    own = item_settings(marked(mark(metrics=metrics)), settings())
    assert own.metrics == ("latency", "ttft")


@pytest.mark.parametrize(
    ("marker", "message"),
    [
        (mark("5%"), r"takes keywords only, got \('5%',\)"),
        (mark(bugdet="5%"), "has no keyword 'bugdet'; it knows .*budget"),
        (mark(runs="3:3"), "has no keyword 'runs'"),
        (mark(budget=5), "budget=5 is neither a string nor a dict"),
        (mark(limit=["p99<=1s"]), "limit=.* is neither a string nor a dict"),
        (mark(metrics="latency"), "metrics='latency' is not a tuple"),
        (mark(gate=0), "gate=0 is neither True nor False"),
        (mark(cache="cold"), "cache='cold' is not one of hot, flush"),
        (mark(cache=True), "cache=True is not one of hot, flush"),
        (
            mark(cache="flush", inner_loop=20),
            "cache='flush' and inner_loop=20 exclude each other: only the first call",
        ),
        (
            mark(cache="flush", hide_launch=True),
            "cache='flush' and hide_launch=True exclude each other: a full queue",
        ),
        (mark(hide_launch=1), "hide_launch=1 is neither True nor False"),
        (mark(max_time="x"), "max_time='x' is not a duration"),
        (mark(iterations=2.5), "iterations='2.5': write a whole number"),
        (mark(timeout=None), "timeout='None' is not a duration"),
    ],
)
def test_a_marker_that_means_nothing_is_refused_with_its_benchmark(
    settings, marker, message
):
    with pytest.raises(UsageError, match=rf"^a\.py::bench_a: .*{message}"):
        item_settings(marked(marker), settings())


def test_a_plan_of_pytest_benchmarks_rounds_goes_by_its_own_options(settings):
    own = item_settings(marked(), settings("--perfgate-iterations=40"))
    plan = Plan(iterations=900, warmup=0, inner_loop=7)
    assert not own.agrees_with(plan)
    theirs = replace(plan, workload="pytest-benchmark benchmark(...)")
    assert own.agrees_with(theirs)
    assert own.keeps(theirs)


@pytest.mark.parametrize(
    ("stored", "said", "kept"),
    [
        ({"device": "cuda:0"}, "hot", True),
        ({"device": "cuda:0"}, "flush", False),
        ({"device": "cuda:0", "cache": "flush"}, "flush", True),
        ({"device": "cuda:0", "cache": "flush"}, "hot", False),
        ({"device": "cpu"}, "flush", True),  # there it is measured hot all the same
        ({"workload": "pytest-benchmark x"}, "flush", True),
    ],
)
def test_another_cache_policy_is_another_plan(settings, stored, said, kept):
    own = item_settings(marked(mark(cache=said)), settings())
    plan = Plan(iterations=1, warmup=0, **stored)
    assert own.keeps(plan) is kept
    assert own.agrees_with(plan)  # it governs none of the numbers


def test_the_cache_is_hot_unless_a_marker_says_otherwise(settings):
    assert item_settings(marked(), settings()).cache == "hot"
    function, module = mark(cache="flush", inner_loop=1), mark(inner_loop=100)
    assert item_settings(marked(function, module), settings()).cache == "flush"


def test_launches_are_hidden_where_a_marker_says_so(settings):
    assert not item_settings(marked(), settings()).hide_launch
    assert item_settings(marked(mark(hide_launch=True)), settings()).hide_launch
