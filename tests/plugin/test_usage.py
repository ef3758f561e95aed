"""Wrong usage: exit code 4, one clear line with option, value and way out."""

import os
import shutil

import pytest

THREE = ("--perfgate-runs=3:3", "--perfgate-on-missing=warn")
BENCH = "benches/bench_a.py::bench_one"


def refused(result, *words, code=4):
    """Check that a session ended with one line that says all of it, and no traceback."""
    assert result.ret == code, result.stdout.str()
    text = result.stderr.str() + result.stdout.str()
    assert "Traceback" not in text
    assert "INTERNALERROR" not in text
    said = [line for line in text.splitlines() if "perfgate: " in line]
    assert len(said) == 1, text
    for word in words:
        assert word in said[0]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--pdb"], ["--pdb", "drop"]),
        (["--trace"], ["--trace", "drop"]),
        (["--setup-only"], ["--setup-only", "--collect-only"]),
        (["--setup-plan"], ["--setup-plan", "--collect-only"]),
        (["--perfgate-runs=2"], ["--perfgate-runs", "'2'", "3:"]),
        (["--perfgate-runs=5:4"], ["--perfgate-runs", "'5:4'", "5:20"]),
        (["--perfgate-runs=many"], ["--perfgate-runs", "'many'", "MIN:MAX"]),
        (["--perfgate-max-time=soon"], ["--perfgate-max-time", "'soon'", "150ms"]),
        (["--perfgate-max-time=0"], ["--perfgate-max-time", "'0'", "above 0"]),
        (["--perfgate-timeout=-1"], ["--perfgate-timeout", "'-1'", "above 0"]),
        (["--perfgate-timeout=inf"], ["--perfgate-timeout", "'inf'", "above 0"]),
        (["--perfgate-max-total=nan"], ["--perfgate-max-total", "'nan'", "above 0"]),
        (["--perfgate-iterations=0"], ["--perfgate-iterations", "'0'", "from 1 up"]),
        (["--perfgate-iterations=²"], ["--perfgate-iterations", "'²'", "from 1 up"]),
        (["--perfgate-warmup=some"], ["--perfgate-warmup", "'some'", "auto"]),
        (["--perfgate-seed=x"], ["--perfgate-seed", "'x'", "4294967295"]),
        (["--perfgate-slowdown=60"], ["--perfgate-slowdown", "'60'", "60%"]),
        (["--perfgate-slowdown=-5%"], ["--perfgate-slowdown", "'-5%'", "negative"]),
        (["--perfgate-on-missing=hope"], ["--perfgate-on-missing", "'hope'", "warn"]),
        (
            ["--perfgate-on-inconclusive="],
            ["--perfgate-on-inconclusive", "''", "drop it"],
        ),
        (["--perfgate-budget=5 percent"], ["--perfgate-budget", "5 percent", "5%"]),
        (["--perfgate-budget=0%"], ["--perfgate-budget", "'0%'", "0"]),
        (["--perfgate-limit=p99<150"], ["--perfgate-limit", "p99<150", "<="]),
        (["--perfgate-update", "--collect-only"], ["--perfgate-update", "drop one"]),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_an_option_that_means_nothing(one, arguments, words):
    refused(one.run(*arguments), *words)
    assert not (one.path / ".perfgate").exists()


@pytest.mark.parametrize("flag", ["--perfgate-update", "--perfgate-update-force"])
def test_an_option_without_the_flag_it_needs(one, flag):
    result = one.plain(flag)
    refused(result, flag, "add --perfgate")


@pytest.mark.parametrize(
    ("device", "words"),
    [("tpu", ["'tpu'", "cuda"]), ("cuda", ["'cuda'", "--perfgate-device=cpu"])],
)
def test_a_device_that_is_not_there(one, monkeypatch, device, words):
    monkeypatch.delenv("_PERFGATE_FAKE")
    refused(one.run(f"--perfgate-device={device}"), *words)


# -- pytest-xdist


def test_processes_side_by_side_are_refused(one):
    result = one.run("-p", "xdist.plugin", "-n2")
    refused(result, "-n 2", "-n0")


@pytest.mark.parametrize("where", ["ini", "environment"])
def test_processes_side_by_side_are_refused_wherever_they_come_from(
    one, monkeypatch, where
):
    options = "-p xdist.plugin -n 3"
    if where == "ini":
        one.pytester.makeini(f"[pytest]\naddopts = {options}\n")
    else:
        monkeypatch.setenv("PYTEST_ADDOPTS", options)
    refused(one.run(), "-n 3", "-n0", "addopts")


def test_n0_overrides_addopts(one):
    one.pytester.makeini(
        "[pytest]\naddopts = -p xdist.plugin -n 3\nperfgate_max_time = 0.05\n"
    )
    result = one.run("-n0", *THREE, "benches")
    assert result.ret == 0
    assert list(one.outcomes.values()) == [("no-baseline", "nothing-stored")]


# -- markers


@pytest.mark.parametrize(
    ("marker", "words"),
    [
        ("(bugdet='5%')", ["'bugdet'", "budget"]),
        ("('5%')", ["keywords only", "'5%'"]),
        ("(budget=0)", ["budget=0", "dict"]),
        ("(budget={'median': '0%'})", ["0%"]),
        ("(budget='five')", ["five"]),
        ("(limit={'p99': '150ms'})", ["150ms", "<="]),
        ("(metrics='latency')", ["'latency'", "tuple"]),
        ("(gate='no')", ["gate='no'", "False"]),
        ("(isolate=1)", ["isolate=1", "True"]),
        ("(iterations=0)", ["iterations", "'0'", "from 1 up"]),
        ("(iterations=2.5)", ["iterations", "'2.5'", "whole"]),
        ("(max_time='x')", ["max", "'x'"]),
        ("(inner_loop=-1)", ["inner", "'-1'"]),
        ("(cache='cold')", ["cache='cold'", "hot, flush"]),
        ("(cache='flush', inner_loop=9)", ["inner_loop=9", "exclude", "drop one"]),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_a_marker_that_means_nothing_is_refused_with_its_benchmark(one, marker, words):
    one.bench(
        "import pytest\n"
        f"@pytest.mark.perfgate{marker}\n"
        "def bench_one(perfgate):\n    perfgate(int)\n"
    )
    refused(one.run("benches"), BENCH, *words)


def test_a_marker_that_names_what_is_not_measured_is_an_error(one):
    one.bench(
        "import pytest\n"
        "@pytest.mark.perfgate(budget={'medium': '5%'})\n"
        "def bench_one(perfgate):\n    perfgate(int)\n"
    )
    result = one.run(*THREE, "benches")
    assert (result.ret, one.outcomes[BENCH]) == (1, ("error", "metric-absent"))
    result.stdout.fnmatch_lines(["*names medium*"])


def plans(project):
    return {
        r["benchmark"].rpartition("::")[2]: r["plan"] for r in project.report["results"]
    }


def test_the_closest_setting_wins(one):
    one.pytester.makeini("[pytest]\nperfgate_iterations = 30\nperfgate_seed = 5\n")
    one.bench(
        "import pytest\n"
        "pytestmark = pytest.mark.perfgate(iterations=50)\n"
        "def bench_module(perfgate):\n    perfgate(int)\n"
        "@pytest.mark.perfgate(iterations=60)\n"
        "class TestGroup:\n"
        "    def test_class(self, perfgate):\n        perfgate(int)\n"
        "    @pytest.mark.perfgate(iterations=70, seed=7)\n"
        "    def test_function(self, perfgate):\n        perfgate(int)\n"
    )
    one.bench("def bench_plain(perfgate):\n    perfgate(int)\n", "benches/bench_b.py")
    one.run(*THREE, "benches")
    given = {name: (p["iterations"], p["seed"]) for name, p in plans(one).items()}
    assert given == {
        "bench_plain": (30, 5),
        "bench_module": (50, 5),
        "test_class": (60, 5),
        "test_function": (70, 7),
    }


def test_budgets_of_module_class_and_function_merge(stored):
    stored.bench(
        "import pytest\n"
        "pytestmark = pytest.mark.perfgate(budget={'median': '20%'})\n"
        "@pytest.mark.perfgate(budget={'p99': '30%'})\n"
        "def bench_one(perfgate):\n    perfgate(lambda: None)\n"
    )
    stored.run("--perfgate-runs=3:3", "--perfgate-budget=7%", "benches")
    (found,) = stored.report["results"]
    budgets = {
        (j["metric"]["name"], j["statistic"]): j["budget"]
        for j in found["judgements"]
        if j["gated"]
    }
    assert budgets["latency", "median"] == 0.2
    assert budgets["latency", "p99"] == 0.3


def test_o_replaces_values_of_the_ini_file(stored):
    stored.pytester.makeini("[pytest]\nperfgate_budget =\n    median=9%\n    p99=90%\n")
    stored.run("-o", "perfgate_budget=median=7%", "-o", "perfgate_runs=3:3", "benches")
    (found,) = stored.report["results"]
    budgets = {j["statistic"]: j["budget"] for j in found["judgements"] if j["gated"]}
    assert budgets["median"] == 0.07
    assert stored.report["cost"]["runs"] == 3


# -- folders


def test_a_file_in_the_place_of_the_baselines(one):
    (one.path / "baselines").write_text("not a folder")
    result = one.run("benches")
    refused(result, "baselines", "file stands where a folder should be", code=3)
    assert (one.path / "baselines").read_text() == "not a folder"


@pytest.mark.parametrize("flags", [[], ["--perfgate-update"]], ids=["judge", "update"])
def test_a_report_folder_with_other_peoples_files(one, flags):
    one.bench("precious", "results/thesis.txt")
    result = one.run("--perfgate-report=results", *flags, "benches")
    refused(result, "results", "'thesis.txt'", "empty folder")
    assert (one.path / "results" / "thesis.txt").read_text() == "precious"
    assert not (one.path / "baselines").exists()


def test_a_report_folder_of_ones_own(one):
    one.run(*THREE, "--perfgate-report=out/first", "benches")
    assert (one.path / "out" / "first" / "report.json").is_file()
    assert not (one.path / ".perfgate").exists()


def test_sessions_without_a_cache_work(one):
    result = one.run("-p", "no:cacheprovider", *THREE, "benches")
    assert result.ret == 0
    assert not (one.path / ".pytest_cache").exists()


def test_a_session_in_a_subfolder(stored, monkeypatch):
    monkeypatch.chdir(stored.path / "benches")
    result = stored.run("--perfgate-runs=3:3", "bench_a.py")
    assert (result.ret, stored.outcomes[BENCH][0]) == (0, "unchanged")
    result.stdout.fnmatch_lines(["report: ../.perfgate/last/report.json"])


# -- collecting


def test_the_plan_is_shown_and_nothing_measured(stored):
    stored.bench(
        "def bench_one(perfgate):\n    perfgate(lambda: None)\n"
        "def bench_two(perfgate):\n    perfgate(lambda: None)\n"
    )
    shutil.rmtree(stored.path / ".perfgate", ignore_errors=True)
    result = stored.run("--collect-only", "benches")
    assert result.ret == 0
    result.stdout.fnmatch_lines_random(
        [
            "*bench_one: about * a run, baseline stored",
            "*bench_two: about 50.0 ms a run, no baseline yet",
            "2 benchmarks, 3 to 12 runs of each: about * to * minutes*",
        ]
    )
    assert not (stored.path / ".perfgate").exists()


def test_a_file_that_cannot_be_imported_ends_the_session(stored):
    stored.bench("def bench_b(perfgate):\n    nothing(\n", "benches/bench_b.py")
    before = stored.texts("baselines")
    for flags in ([], ["--perfgate-update"]):
        result = stored.run(*flags, "benches")
        assert result.ret == 2
        result.stdout.fnmatch_lines(["*SyntaxError*", "*1 error during collection*"])
        assert stored.texts("baselines") == before


def test_a_file_that_cannot_be_imported_is_not_taken_for_an_empty_one(stored):
    stored.bench(
        "raise RuntimeError('broken')\n"
        "def bench_one(perfgate):\n    perfgate(lambda: None)\n"
    )
    stored.bench("def bench_b(perfgate):\n    perfgate(int)\n", "benches/bench_b.py")
    result = stored.run("--continue-on-collection-errors", *THREE, "benches")
    assert result.ret == 1
    assert list(stored.outcomes) == ["benches/bench_b.py::bench_b"]


# -- what is said while it runs, and after


def test_where_there_is_no_terminal_no_line_is_written_over(make_spawned):
    project = make_spawned("quiet")
    project.bench("def bench_one(perfgate):\n    perfgate(int)\n")
    project.run(*THREE, "benches")
    assert project.code == 0
    assert "\r" not in project.output
    assert "perfgate: run" not in project.output


def test_on_a_terminal_one_line_tells_what_goes_on(make_spawned):
    project = make_spawned("terminal")
    project.bench("def bench_one(perfgate):\n    perfgate(int)\n")
    ours, theirs = os.openpty()
    process = project.start(*THREE, "benches", stderr=theirs)
    os.close(theirs)
    assert process.communicate(timeout=60)[0].count("\r") == 0
    shown = os.read(ours, 100_000).decode()
    os.close(ours)
    assert "perfgate: run 1 of 3 · 0 of 1 decided" in shown
    assert "0 of 1 decided · benches/bench_a.py::bench_one" in shown
    assert "\n" not in shown
    assert shown.endswith("\r" + " " * 79 + "\r")


def test_v_shows_more(stored):
    short = stored.run("--perfgate-runs=3:3", "benches").stdout.str()
    long = stored.run("--perfgate-runs=3:3", "-v", "benches").stdout.str()
    for name in ("cpu_time", "first_call"):
        assert name not in short
        assert name in long


@pytest.mark.parametrize(
    ("name", "spec"),
    [
        ("budget", "*bench_gone*:median=7%"),
        ("anchor-budget", "benches/other/*:20%"),
        ("limit", "*bench_gone*:p99<=1s"),
    ],
)
def test_a_glob_that_fits_no_benchmark_is_told(stored, name, spec):
    result = stored.run(f"--perfgate-{name}={spec}", "--perfgate-runs=3:3", "benches")
    assert result.ret == 0
    (note,) = stored.report["notes"]
    assert note.startswith(f"--perfgate-{name}={spec!r} fits none of 1 benchmark")
    result.stdout.fnmatch_lines(["note: --perfgate-*"])


def test_a_glob_that_fits_what_is_deselected_is_not(one):
    two = "def bench_two(perfgate):\n    perfgate(lambda: None)\n"
    one.bench(two, "benches/bench_b.py")
    one.pytester.makeini(
        "[pytest]\nperfgate_max_time = 0.05\n"
        "perfgate_budget =\n    *bench_two:6%\n    *bench_none:7%\n"
    )
    given = ("--perfgate-runs=3:3", "--perfgate-on-missing=warn")
    one.run(*given, "-k", "bench_one", "benches")
    (note,) = one.report["notes"]
    assert "'*bench_none:7%' fits none of 2 benchmarks" in note
    # whoever names a file does not mean the others by what stands in the ini file
    one.run(*given, "benches/bench_a.py")
    assert "notes" not in one.report
