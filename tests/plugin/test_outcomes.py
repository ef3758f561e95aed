"""Each outcome is told from every other, with its own exit code."""

import json

import pytest

THREE = ("--perfgate-runs=3:3", "benches")
BENCH = "benches/bench_a.py::bench_one"


def judge(project, *arguments):
    result = project.run(*(arguments or THREE))
    return result, project.outcomes


def test_unchanged(stored):
    result, outcomes = judge(stored)
    assert (result.ret, outcomes[BENCH]) == (0, ("unchanged", "within-budget"))


def test_improved(stored):
    stored.device({"*": {"factor": 0.5}}, salt=1)
    result, outcomes = judge(stored)
    assert (result.ret, outcomes[BENCH][0]) == (0, "improved")
    result.stdout.fnmatch_lines(["*improved*"])


def test_regressed_is_confirmed_and_told_in_words(stored):
    stored.device({"*": {"factor": 1.5}}, salt=1)
    result, outcomes = judge(stored)
    assert result.ret == 1
    assert outcomes[BENCH] == ("regressed", "confirmed-without-base")
    text = result.stdout.str()
    assert "Traceback" not in text
    result.stdout.fnmatch_lines(["*regressed: latency*median 1.5*x*".replace("x", "×")])
    (stored_result,) = stored.report["results"]
    assert len(stored_result["confirmation"]["iterations"]) == 5


def test_a_flag_that_fresh_runs_do_not_confirm_is_not_red(stored):
    slow_at_first = {str(run): {"factor": 1.5} for run in (1, 2, 3)}
    stored.device({"*": {"runs": slow_at_first}}, salt=1)
    result, outcomes = judge(stored)
    assert (result.ret, outcomes[BENCH]) == (0, ("inconclusive", "unconfirmed"))
    result.assert_outcomes()  # neither passed nor failed
    result.stdout.fnmatch_lines(["*1 inconclusive*"])


def test_inconclusive_passes_or_fails_as_asked(stored):
    stored.device({"*": {"run_sd": 0.3}}, salt=1)
    result, outcomes = judge(stored)
    assert (result.ret, outcomes[BENCH][0]) == (0, "inconclusive")
    assert judge(stored, "--perfgate-on-inconclusive=fail", *THREE)[0].ret == 13


def test_an_undecided_benchmark_gets_more_runs(stored):
    stored.device({"*": {"run_sd": 0.03}}, salt=5)
    judge(stored, "--perfgate-runs=3:6", "benches")
    assert stored.report["cost"]["runs"] == 6


def test_no_baseline_fails_or_warns(one):
    result, outcomes = judge(one)
    assert (result.ret, outcomes[BENCH]) == (10, ("no-baseline", "nothing-stored"))
    warned, _ = judge(one, "--perfgate-on-missing=warn", *THREE)
    assert warned.ret == 0
    warned.stdout.fnmatch_lines(["*1 no-baseline*"])
    warned.assert_outcomes()


def test_other_hardware_is_incomparable(stored):
    stored.device(salt=1, hardware={"device": "other"})
    result, outcomes = judge(stored)
    assert (result.ret, outcomes[BENCH]) == (11, ("incomparable", "hardware-differs"))
    result.stdout.fnmatch_lines(["*device*other*"])


def test_another_plan_is_incomparable(stored):
    stored.bench("def bench_one(perfgate):\n    perfgate(lambda x: x, [1])\n")
    result, outcomes = judge(stored)
    assert (result.ret, outcomes[BENCH]) == (11, ("incomparable", "plan-differs"))


def test_the_stored_plan_governs_over_what_fits_today(stored):
    plan = json.loads(stored.baseline().read_text())["benchmarks"][BENCH]["plan"]
    stored.device({"*": {"factor": 3}}, salt=1)
    judge(stored)
    assert stored.report["results"][0]["plan"]["iterations"] == plan["iterations"]


def test_a_benchmark_that_is_gone_is_missing_until_it_is_pruned(stored):
    stored.bench("def bench_other(perfgate):\n    perfgate(lambda: None)\n")
    result, outcomes = judge(stored, "--perfgate-on-missing=warn", *THREE)
    assert (result.ret, outcomes[BENCH]) == (14, ("missing", "gone"))
    result.stdout.fnmatch_lines(["*baselines prune*"])


def test_a_file_that_is_gone_is_missing_too(stored):
    stored.bench("def bench_x(perfgate):\n    perfgate(int)\n", "benches/bench_b.py")
    (stored.path / "benches" / "bench_a.py").unlink()
    _, outcomes = judge(stored, "--perfgate-on-missing=warn", *THREE)
    assert outcomes[BENCH] == ("missing", "gone")


def test_a_suite_that_is_gone_is_missing_not_empty(stored):
    (stored.path / "benches" / "bench_a.py").write_text("")
    result, outcomes = judge(stored)
    assert (result.ret, outcomes) == (14, {BENCH: ("missing", "gone")})


@pytest.mark.parametrize("selection", [["-k", "other"], ["--deselect", BENCH]])
def test_what_is_deselected_is_not_missing(stored, selection):
    stored.bench(
        "def bench_one(perfgate):\n    perfgate(lambda: None)\n"
        "def bench_other(perfgate):\n    perfgate(lambda: None)\n"
    )
    result, outcomes = judge(stored, *selection, "--perfgate-on-missing=warn", *THREE)
    assert result.ret == 0
    assert list(outcomes) == ["benches/bench_a.py::bench_other"]


def test_a_skip_of_what_is_stored_is_missing(stored):
    stored.bench(
        "import pytest\n"
        "def bench_one(perfgate):\n    pytest.skip('not today')\n"
        "def bench_other(perfgate):\n    perfgate(int)\n"
    )
    result, outcomes = judge(stored, "--perfgate-on-missing=warn", *THREE)
    assert (result.ret, outcomes[BENCH]) == (14, ("missing", "skipped-now"))


def test_nothing_but_skips_measured_nothing(one):
    one.bench("import pytest\ndef bench_one(perfgate):\n    pytest.skip('never')\n")
    result, outcomes = judge(one)
    assert (result.ret, outcomes[BENCH][0]) == (5, "skipped")


def test_no_benchmarks_at_all(project):
    project.bench("def test_plain(): pass\n", "test_a.py")
    result = project.run()
    assert result.ret == 5
    result.stdout.fnmatch_lines(["*1 deselected*"])


def test_a_body_that_raises_is_an_error_not_a_number(stored):
    stored.bench("def bench_one(perfgate):\n    perfgate(lambda: None)\n    assert 0\n")
    result, outcomes = judge(stored)
    assert (result.ret, outcomes[BENCH]) == (1, ("error", "body-raised"))
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*assert 0*"])


def test_nan_is_an_error(one):
    one.bench(
        "def bench_one(perfgate):\n"
        "    perfgate.record('x', [1.0, float('nan')], unit='s', better='lower')\n"
    )
    result, outcomes = judge(one)
    assert (result.ret, outcomes[BENCH]) == (1, ("error", "not-a-number"))


def test_a_fixture_that_measured_nothing_is_an_error(one):
    one.bench("def bench_one(perfgate):\n    pass\n")
    result, outcomes = judge(one)
    assert (result.ret, outcomes[BENCH]) == (1, ("error", "nothing-measured"))
    assert "fixture.py" not in result.stdout.str()


def test_wrong_use_in_a_body_is_told_with_the_users_own_line(one):
    one.bench(
        "def bench_one(perfgate):\n    perfgate(int)\n    perfgate(int)  # no name\n"
    )
    result, outcomes = judge(one)
    assert (result.ret, outcomes[BENCH]) == (1, ("error", "body-raised"))
    result.stdout.fnmatch_lines(["*name=*", "*bench_a.py:3"])
    assert "fixture.py" not in result.stdout.str()


@pytest.mark.parametrize(
    ("damage", "reason", "words"),
    [
        (lambda text: text[:300], "baseline-corrupt", "bench_a.py.json"),
        (lambda text: text.replace("[", "[NaN,", 1), "baseline-corrupt", "NaN"),
        (
            lambda text: text.replace('"unit": "s"', '"unit": "ms"'),
            "baseline-corrupt",
            "unit",
        ),
        (
            lambda text: text.replace('"schema_version": 1', '"schema_version": 99'),
            "schema-too-new",
            "upgrade",
        ),
    ],
    ids=["truncated", "NaN", "unit", "newer"],
)
def test_a_baseline_that_cannot_be_read_is_an_error(stored, damage, reason, words):
    text = stored.baseline().read_text()
    assert damage(text) != text
    stored.baseline().write_text(damage(text))
    result, outcomes = judge(stored)
    assert (result.ret, outcomes[BENCH]) == (1, ("error", reason))
    assert stored.report["cost"]["runs"] == 0
    assert words in result.stdout.str()


def test_runs_that_were_disturbed_are_made_again(stored):
    stored.device({"*": {"runs": {"2": {"disturbed": True}}}}, salt=1)
    result, outcomes = judge(stored)
    assert (result.ret, outcomes[BENCH][0]) == (0, "unchanged")
    (found,) = stored.report["results"]
    assert stored.report["cost"]["runs"] == 4
    assert any("run 2" in line for line in found["discarded"])


def test_where_every_run_is_disturbed_nothing_is_claimed(stored):
    runs = {str(run): {"disturbed": True} for run in range(1, 9)}
    stored.device({"*": {"runs": runs}}, salt=1)
    _, outcomes = judge(stored)
    assert outcomes[BENCH] == ("inconclusive", "disturbed")


def test_an_expected_regression_is_absorbed(stored):
    stored.bench(
        "import pytest\n"
        "@pytest.mark.xfail(reason='known')\n"
        "def bench_one(perfgate):\n    perfgate(lambda: None)\n"
    )
    stored.device({"*": {"factor": 1.5}}, salt=1)
    result, outcomes = judge(stored)
    assert (result.ret, outcomes[BENCH][0]) == (0, "regressed")
    result.assert_outcomes(xfailed=1)
    (found,) = stored.report["results"]
    assert found["absorbed"]
    result.stdout.fnmatch_lines(["*expected to fail (xfail)*"])
    assert "what to do next" not in result.stdout.str()


def test_an_expected_failure_of_a_body_is_no_skip(stored):
    stored.bench(
        "import pytest\n"
        "@pytest.mark.xfail(reason='known')\n"
        "def bench_one(perfgate):\n    perfgate(lambda: None)\n    assert 0\n"
    )
    result, outcomes = judge(stored)
    assert (result.ret, outcomes[BENCH]) == (0, ("error", "body-raised"))
    result.assert_outcomes(xfailed=1)
    assert stored.report["results"][0]["absorbed"]


def test_what_an_expectation_keeps_from_running_is_missing(stored):
    stored.bench(
        "import pytest\n"
        "@pytest.mark.xfail(run=False, reason='known')\n"
        "def bench_one(perfgate):\n    perfgate(lambda: None)\n"
    )
    result, outcomes = judge(stored)
    assert (result.ret, outcomes[BENCH]) == (14, ("missing", "skipped-now"))


def test_a_strictly_expected_regression_that_does_not_come_fails(stored):
    stored.bench(
        "import pytest\n"
        "@pytest.mark.xfail(strict=True, reason='known')\n"
        "def bench_one(perfgate):\n    perfgate(lambda: None)\n"
    )
    result, outcomes = judge(stored)
    assert (result.ret, outcomes[BENCH][0]) == (1, "unchanged")
    result.stdout.fnmatch_lines(["*XPASS(strict)*"])
    assert "strict xfail" in stored.report["problem"]
    assert "absorbed" not in stored.report["results"][0]


def test_a_limit_needs_no_baseline(one):
    one.bench(
        "import pytest\n"
        "@pytest.mark.perfgate(limit={'median': '<=0.5ms'})\n"
        "def bench_one(perfgate):\n    perfgate(lambda: None)\n"
    )
    result, outcomes = judge(one)
    assert (result.ret, outcomes[BENCH]) == (1, ("regressed", "over-limit"))


def test_a_benchmark_that_is_not_gated_never_fails(stored):
    stored.bench(
        "import pytest\n"
        "@pytest.mark.perfgate(gate=False)\n"
        "def bench_one(perfgate):\n    perfgate(lambda: None)\n"
    )
    stored.device({"*": {"factor": 2}}, salt=1)
    result, outcomes = judge(stored)
    assert (result.ret, outcomes[BENCH]) == (0, ("skipped", "not-gated"))
    stored.baseline().unlink()
    assert judge(stored)[0].ret == 0


def test_junit_tells_outcomes_apart(stored):
    stored.device({"*": {"run_sd": 0.3}}, salt=1)
    judge(stored, "--junitxml=j.xml", *THREE)
    text = (stored.path / "j.xml").read_text()
    assert "inconclusive" in text
    assert 'name="perfgate_outcome" value="inconclusive"' in text
    assert "<skipped" in text


def test_an_option_that_the_stored_plan_outweighs_is_told(stored):
    result, outcomes = judge(stored, "--perfgate-iterations=17", *THREE)
    assert (result.ret, outcomes[BENCH][0]) == (0, "unchanged")
    result.stdout.fnmatch_lines(["note: the plans stored*"])
    (note,) = stored.report["notes"]
    assert "--perfgate-update records new ones" in note


def test_faster_with_another_output_is_called_other_work(project):
    source = (
        "import numpy\nwork = lambda n: numpy.ones(n, numpy.{})\n"
        "def bench_one(perfgate):\n    perfgate(work, 8)\n"
    )
    project.bench(source.format("float64"))
    project.adopt("benches")
    project.device({"*": {"factor": 0.5}}, salt=1)
    project.bench(source.format("float32"))
    result, outcomes = judge(project)
    assert (result.ret, outcomes[BENCH]) == (0, ("improved", "changed-work"))
    result.stdout.fnmatch_lines(["*the output was float64?8? and is float32?8?*"])
