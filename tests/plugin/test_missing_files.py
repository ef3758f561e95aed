"""What is stored is missed, whatever became of the file it was measured in."""

BENCH = "benches/bench_a.py::bench_one"
THREE = ("--perfgate-runs=3:3", "--perfgate-on-missing=warn", "benches")


def test_a_file_that_skips_itself_skips_its_benchmarks(stored):
    stored.bench(
        "import pytest\n"
        "pytest.importorskip('no_such_module_anywhere')\n"
        "def bench_one(perfgate):\n    perfgate(lambda: None)\n"
    )
    result = stored.run(*THREE)
    assert (result.ret, stored.outcomes) == (14, {BENCH: ("missing", "skipped-now")})


def test_a_baseline_that_cannot_be_read_is_an_error_though_its_file_is_gone(stored):
    (stored.path / "benches" / "bench_a.py").unlink()
    stored.baseline().write_text("{")
    result = stored.run(*THREE)
    assert result.ret == 1
    assert stored.outcomes == {"benches/bench_a.py": ("error", "baseline-corrupt")}
    result.stdout.fnmatch_lines(["*bench_a.py.json*"])


def test_a_file_that_was_left_out_is_not_missed(stored):
    stored.bench("def bench_b(perfgate):\n    perfgate(int)\n", "benches/bench_b.py")
    result = stored.run("--ignore=benches/bench_a.py", *THREE)
    assert (result.ret, list(stored.outcomes)) == (0, ["benches/bench_b.py::bench_b"])


def test_a_file_named_in_part_misses_nothing(stored):
    stored.bench(
        "def bench_one(perfgate):\n    perfgate(lambda: None)\n"
        "def bench_two(perfgate):\n    perfgate(lambda: None)\n"
    )
    arguments = (*THREE[:2], "benches/bench_a.py::bench_two")
    result = stored.run(*arguments)
    assert result.ret == 0
    assert list(stored.outcomes) == ["benches/bench_a.py::bench_two"]


def test_the_whole_project_is_searched_where_no_path_is_named(stored):
    (stored.path / "benches" / "bench_a.py").unlink()
    result = stored.run()
    assert (result.ret, stored.outcomes) == (14, {BENCH: ("missing", "gone")})
