"""Counts of real torch code in real workers; only the times are scripted."""

import pytest

pytest.importorskip("torch")

SOURCE = """
import pytest
import torch

CHANGED = False
X = torch.ones(8, 16)


def budget(**counts):
    return pytest.mark.perfgate(budget=counts, iterations=8, warmup=4)


@budget(syncs="+0")
def bench_item(perfgate):
    def step():
        total = (X @ X.T).sum()
        return total.item() if CHANGED else total

    perfgate(step)


@budget(ops="+0")
def bench_layer(perfgate):
    layers = [torch.nn.Linear(16, 16) for _ in range(3 if CHANGED else 2)]
    perfgate.inference(torch.nn.Sequential(*layers), X, batch_size=8)


@budget(peak_memory="+0")
def bench_activation(perfgate):
    rows = 64 if CHANGED else 32
    perfgate(lambda: torch.ones(rows, 64).relu().sum())


def bench_python(perfgate):
    perfgate(sum, range(9))
"""
TURNED = {
    "bench_item": ("syncs", "0 → 1"),
    "bench_layer": ("ops", "4 → 6"),
    "bench_activation": ("peak_memory", "16.0 KiB → 32.0 KiB"),
}
PROCESSES = 5


def counts_of(measurement):
    return {
        series.metric.name: series.values
        for series in measurement.samples
        if series.metric.exact
    }


@pytest.fixture(scope="module")
def story(make_spawned):
    """Baselines of five processes, and then one change to each benchmark."""
    project = make_spawned("counts")
    project.bench(SOURCE)
    project.adopt(f"--perfgate-runs={PROCESSES}:{PROCESSES}")
    project.first = list(project.measurements())
    project.bench(SOURCE.replace("CHANGED = False", "CHANGED = True"))
    project.run("--perfgate-runs=3:3")
    return project


@pytest.fixture(scope="module")
def results(story):
    return {r["benchmark"].rpartition("::")[2]: r for r in story.report["results"]}


def test_five_processes_count_alike(story):
    by_benchmark = {}
    for measurement in story.first:
        name = measurement.benchmark.rpartition("::")[2]
        by_benchmark.setdefault(name, []).append(counts_of(measurement))
    assert {len(found) for found in by_benchmark.values()} == {PROCESSES}
    for name, found in by_benchmark.items():
        assert found == [found[0]] * PROCESSES, name
        usual = {"ops", "syncs", "recompiles"} if name != "bench_python" else set()
        assert usual <= found[0].keys(), name


def test_python_alone_has_no_counts(story):
    assert not any(
        counts_of(measurement)
        for measurement in story.first
        if measurement.benchmark.endswith("bench_python")
    )


@pytest.mark.parametrize("name", TURNED)
def test_each_change_turns_its_own_count_red(results, name):
    metric, change = TURNED[name]
    verdict = results[name]["verdict"]
    assert (verdict["outcome"], verdict["reason"]) == (
        "regressed",
        "count-over-budget",
    )
    assert change in verdict["detail"]
    red = [
        judgement["metric"]["name"]
        for judgement in results[name]["judgements"]
        if judgement["verdict"]["outcome"] == "regressed"
    ]
    assert red == [metric]


def test_the_report_keeps_where_the_time_goes(results):
    operators = results["bench_layer"]["profile"]["operators"]
    assert operators["aten::addmm"][0] == 3
    assert "profile" not in results["bench_python"]


def test_what_did_not_change_turns_nothing_red(results):
    assert results["bench_python"]["verdict"]["outcome"] != "regressed"


NAMED = {
    "bench_item": ("syncs: 0 → 1", "aten::item: 0 → 1 calls"),
    "bench_layer": ("ops: ", "aten::addmm: 2 → 3 calls"),
    "bench_activation": ("peak_memory: 16.0 KiB → 32.0 KiB",),
}


@pytest.mark.parametrize("name", NAMED)
def test_a_failure_says_what_changed_with_it(story, name):
    """What is behind a count is named: the operators that came with it."""
    _, _, rest = story.output.partition(f"benches/bench_a.py::{name}\n")
    text = rest.partition("read docs/verdicts.md")[0]
    count, *operators = NAMED[name]
    assert f"changed with it: {count}" in text
    (result,) = (r for r in story.report["results"] if r["benchmark"].endswith(name))
    explained = [line["text"] for line in result["explanation"]]
    for operator in operators:  # the failure has three lines: times decide which
        assert any(line.startswith(operator) for line in explained)


def test_a_failure_names_the_count_and_both_its_values(story):
    assert "regressed: syncs·max +1, allowed +0" in story.output
    assert "baseline 0 (5 runs), now 1 (3 runs)" in story.output


def test_what_the_profiler_says_of_itself_stays_out_of_a_failure(story):
    assert "USDT" not in story.output


GUEST = """
import pytest
import torch

CHANGED = False
X = torch.ones(8, 16)


def work(x):
    return x.relu().neg() if CHANGED else x.relu()


@pytest.mark.perfgate(budget={"ops": "+0"})
def test_called(benchmark):
    benchmark(work, X)


@pytest.mark.perfgate(budget={"ops": "+0"}, counts=True)
def test_asked(benchmark):
    benchmark.pedantic(work, setup=lambda: ((X + 1,), {}), rounds=12)


def test_exact(benchmark):
    calls = []
    benchmark.pedantic(lambda: calls.append(work(X)), rounds=12)
    assert len(calls) == 12
"""


def test_counts_of_pytest_benchmark_are_gated(make_spawned):
    pytest.importorskip("pytest_benchmark")
    project = make_spawned("guest counts")
    project.plugins = "pytest_perfgate.plugin,pytest_benchmark.plugin"
    project.bench(GUEST, "tests/test_guest.py")
    brief = ("tests", "--benchmark-max-time=0.05", "--perfgate-runs=3:3")
    project.adopt(*brief)
    changed = GUEST.replace("CHANGED = False", "CHANGED = True")
    project.bench(changed, "tests/test_guest.py")
    project.run(*brief)
    red = ("regressed", "count-over-budget")
    assert project.outcomes == {
        "tests/test_guest.py::test_called": red,
        "tests/test_guest.py::test_asked": red,
        "tests/test_guest.py::test_exact": ("unchanged", "within-budget"),
    }


LOOP = """
import pytest
import torch

CHANGED = False
X = torch.ones(8, 16)
own = {"iterations": 8, "warmup": 4}


@pytest.mark.perfgate(**own, budget={"ops": "+0"})
def bench_loop(perfgate):
    for _ in perfgate.iterations():
        with perfgate.stage("add"):
            y = X + 1
        with perfgate.stage("sum"):
            y.sum().relu() if CHANGED else y.sum()


@pytest.mark.perfgate(**own)
@pytest.mark.parametrize("most", [12, 13])
def bench_left(perfgate, most):
    for number in perfgate.iterations():
        X + 1
        if number + 1 == most:
            break


@pytest.mark.perfgate(**own)
def bench_short(perfgate):
    data = [X] * 13
    for number in perfgate.iterations():
        data[number] + 1


@pytest.mark.perfgate(**own, counts=False)
def bench_uncounted(perfgate):
    data = [X] * 12
    for number in perfgate.iterations():
        data[number] + 1
"""


@pytest.fixture(scope="module")
def loops(make_spawned):
    project = make_spawned("loops")
    project.bench(LOOP)
    project.adopt("--perfgate-runs=3:3")
    project.bench(LOOP.replace("CHANGED = False", "CHANGED = True"))
    project.run("--perfgate-runs=3:3", "--perfgate-on-missing=warn")
    return project


@pytest.fixture(scope="module")
def of_loops(loops):
    found = loops.report["results"]
    return {result["benchmark"].rpartition("::bench_")[2]: result for result in found}


def test_one_operator_more_in_a_loop_turns_its_count_red(of_loops, loops):
    verdict = of_loops["loop"]["verdict"]
    assert (verdict["outcome"], verdict["reason"]) == ("regressed", "count-over-budget")
    assert "ops·max +1, allowed +0" in loops.output


def test_a_loop_left_in_a_timed_round_measures_nothing(of_loops):
    assert of_loops["left[12]"]["verdict"]["reason"] == "nothing-measured"


def test_a_loop_left_in_a_counted_round_keeps_its_times(of_loops):
    left = of_loops["left[13]"]
    assert left["verdict"]["outcome"] != "error"
    assert any(
        "the loop was left in a round that was counted" in r for r in left["remarks"]
    )


def test_a_loop_that_fails_in_a_counted_round_says_how_to_do_without(of_loops, loops):
    assert of_loops["short"]["verdict"]["reason"] == "body-raised"
    assert "@pytest.mark.perfgate(counts=False) makes no such rounds" in loops.output


def test_without_counts_a_loop_makes_its_timed_rounds_alone(of_loops):
    verdict = of_loops["uncounted"]["verdict"]
    assert verdict["outcome"] == "unchanged", verdict
