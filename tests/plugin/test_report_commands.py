"""Real sessions' reports in `perfgate gate` and `perfgate accept`."""

import json

import pytest

from pytest_perfgate.cli import main
from pytest_perfgate.store import BaselineStore, RunFolder, load_report
from pytest_perfgate.store.codec_report import REPORT

BENCH = "benches/bench_a.py::bench_one"
THREE = ("--perfgate-runs=3:3", "benches")
LAST = ".perfgate/last"


@pytest.fixture
def perfgate(capsys):
    """Run the command in the project's folder; returns code and output."""

    def call(*arguments):
        capsys.readouterr()
        code = main(list(arguments))
        out, err = capsys.readouterr()
        return code, out + err

    return call


def test_a_first_report_is_accepted_and_then_judges(one, perfgate):
    assert one.run(*THREE).ret == 10
    assert perfgate("gate", LAST)[0] == 10
    code, out = perfgate("accept", LAST)
    assert (code, "baselines: 1 recorded" in out) == (0, True)
    stored = BaselineStore(one.path / "baselines").load("fake", "benches/bench_a.py")
    (baseline,) = stored.benchmarks.values()
    assert len(baseline.runs) == 3
    assert "latency" in baseline.sketch
    one.device(salt=1)
    assert one.run(*THREE).ret == 0
    assert perfgate("gate", LAST)[0] == 0
    code, out = perfgate("accept", LAST)
    assert (code, "added a session" in out) == (0, True)


def test_a_regression_is_red_again_and_can_be_accepted(stored, perfgate):
    stored.device({"*": {"factor": 1.5}}, salt=1)
    assert stored.run(*THREE).ret == 1
    code, out = perfgate("gate", LAST, "--out=merged")
    assert code == 1
    assert "1 regressed" in out.splitlines()[-1]
    assert load_report(stored.path / "merged") == load_report(stored.path / LAST)
    code, out = perfgate("accept", LAST, f"--select={BENCH}")
    assert (code, "replaced" in out, "was regressed" in out) == (0, True, True)
    stored.device({"*": {"factor": 1.5}}, salt=2)
    assert stored.run(*THREE).ret == 0


def test_a_planted_slowdown_is_judged_and_never_accepted(stored, perfgate):
    assert stored.run("--perfgate-slowdown=60%", *THREE).ret == 1
    assert perfgate("gate", LAST)[0] == 1
    code, out = perfgate("accept", LAST)
    assert (code, "a slowdown was planted in it" in out) == (4, True)


@pytest.mark.parametrize(
    ("body", "strict", "code"),
    [
        ("perfgate(lambda: None)\n    assert 0", False, 0),
        ("perfgate(lambda: None)", True, 1),
    ],
)
def test_expected_failures_are_judged_as_there(stored, perfgate, body, strict, code):
    stored.bench(
        "import pytest\n"
        f"@pytest.mark.xfail(strict={strict}, reason='known')\n"
        f"def bench_one(perfgate):\n    {body}\n"
    )
    assert stored.run(*THREE).ret == code
    assert perfgate("gate", LAST)[0] == code


def test_a_session_of_baselines_can_be_judged_and_accepted_elsewhere(one, perfgate):
    one.record()
    assert perfgate("gate", LAST)[0] == 0
    code, out = perfgate("accept", LAST, "--baselines=elsewhere")
    assert (code, "baselines: 1 recorded" in out) == (0, True)
    there, here = (
        BaselineStore(one.path / name).load("fake", "benches/bench_a.py")
        for name in ("baselines", "elsewhere")
    )
    assert here.benchmarks[BENCH].runs == there.benchmarks[BENCH].runs
    assert here.benchmarks[BENCH].plan == there.benchmarks[BENCH].plan
    assert here.benchmarks[BENCH].sketch == there.benchmarks[BENCH].sketch


def test_a_session_that_breaks_before_it_measures_says_so_in_a_report(one, perfgate):
    (one.path / "baselines").write_text("no folder")
    result = one.run(*THREE)
    assert result.ret == 3
    report = one.report
    assert (report["exit_code"], report["results"]) == (3, [])
    assert "a file stands where a folder should be" in report["problem"]
    code, out = perfgate("gate", LAST)
    assert code == 3
    assert "a file stands where a folder should be" in " ".join(out.split())


def test_a_broken_session_leaves_a_folder_in_use_alone(stored, perfgate):
    stored.run(*THREE)
    before = stored.report
    folder = RunFolder(stored.path / LAST)
    folder.prepare()
    folder.write_report(REPORT.read(json.dumps(before), source="before"))
    result = stored.run(*THREE)
    folder.release()
    assert result.ret == 3
    result.stdout.fnmatch_lines(["*is in use by the session of*"])
    assert stored.report == before
