"""The sequence everyone goes through: record, judge, go red, lose the baseline."""


def test_a_slowdown_of_a_whole_suite_is_seen_though_all_moves_together(project):
    project.bench(
        "import pytest\n"
        "@pytest.mark.parametrize('n', range(12))\n"
        "def bench_many(perfgate, n):\n    perfgate(lambda: None)\n"
    )
    project.adopt("benches")
    project.device(salt=1)
    result = project.run("benches", "--perfgate-slowdown=60%", "--perfgate-runs=3:3")
    assert result.ret == 1
    assert {outcome for outcome, _ in project.outcomes.values()} == {"regressed"}


def test_the_whole_sequence(one):
    first = one.run("benches")
    assert first.ret == 10
    assert one.outcomes == {
        "benches/bench_a.py::bench_one": ("no-baseline", "nothing-stored")
    }
    first.stdout.fnmatch_lines(["*--perfgate-update*"])

    one.record("benches")
    assert one.baseline().exists()

    one.device(salt=1)
    same = one.run("benches")
    assert same.ret == 0, same.stdout.str()
    assert one.outcomes["benches/bench_a.py::bench_one"][0] == "unchanged"
    same.assert_outcomes(passed=1)

    one.device(salt=2)
    slow = one.run("benches", "--perfgate-slowdown", "60%")
    assert slow.ret == 1, slow.stdout.str()
    assert one.outcomes["benches/bench_a.py::bench_one"] == (
        "regressed",
        "confirmed-without-base",
    )
    slow.assert_outcomes(failed=1)

    whole = one.baseline().read_text()
    one.baseline().write_text(whole[:300])
    torn = one.run("benches")
    assert torn.ret == 1
    assert one.outcomes["benches/bench_a.py::bench_one"] == (
        "error",
        "baseline-corrupt",
    )
    torn.stdout.fnmatch_lines(["*benches/bench_a.py.json*"])

    one.baseline().unlink()
    assert one.run("benches").ret == 10
