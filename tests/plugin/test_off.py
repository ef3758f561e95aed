"""With the flag off the plugin costs nothing and changes nothing."""

import json
import subprocess
import sys

import pytest

HEAVY = {"torch", "numpy", "scipy", "jinja2", "requests", "pynvml"}
DUMP = """
import json, sys


def pytest_unconfigure():
    with open("modules.json", "w") as file:
        json.dump(sorted(sys.modules), file)
"""


def python(code):
    """Run code in a fresh interpreter; returns what it printed as JSON."""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


def test_importing_the_plugin_imports_nothing_heavy():
    loaded = python(
        "import json, sys, pytest_perfgate.plugin; print(json.dumps(list(sys.modules)))"
    )
    assert not HEAVY & {name.partition(".")[0] for name in loaded}


@pytest.fixture
def modules(project):
    """Say which modules a plain session has loaded at its end."""
    project.pytester.makeini("[pytest]\n")
    project.bench(DUMP, "conftest.py")
    project.bench("def test_plain(): pass\n", "test_plain.py")

    def run(*arguments):
        result = project.plain(*arguments)
        assert result.ret == 0, result.stdout.str()
        return set(json.loads((project.path / "modules.json").read_text()))

    return run


def ours(modules):
    return {name for name in modules if name.partition(".")[0] == "pytest_perfgate"}


def test_a_plain_session_loads_two_small_modules_of_ours(modules, monkeypatch):
    installed = modules()
    monkeypatch.delenv("PYTEST_PLUGINS")
    without = modules()
    assert ours(without) == set()
    assert installed - without == {
        "pytest_perfgate",
        "pytest_perfgate.plugin",
        "pytest_perfgate.options",
    }


HOOKS = """
import json


def pytest_collection_finish(session):
    hook = session.config.hook
    called = {
        name: [impl.plugin_name for impl in getattr(hook, name).get_hookimpls()]
        for name in ("pytest_ignore_collect", "pytest_pycollect_makeitem")
    }
    with open("hooks.json", "w") as file:
        json.dump(called, file)
"""


@pytest.mark.parametrize(("arguments", "asked"), [((), False), (("bench_a.py",), True)])
def test_a_plain_session_asks_us_about_no_file_and_no_name(project, arguments, asked):
    project.bench(HOOKS, "conftest.py")
    project.bench("def test_plain(): pass\n", "test_plain.py")
    project.bench("def bench_a(perfgate): perfgate(int)\n", "bench_a.py")
    assert project.plain(*arguments).ret == 0
    called = json.loads((project.path / "hooks.json").read_text())
    for names in called.values():
        assert any("perfgate" in name for name in names) is asked


def test_an_unmeasured_benchmark_loads_nothing_heavy(modules, project):
    project.bench(
        "def test_a(perfgate):\n"
        "    assert perfgate(lambda x: x + 1, 1) == 2\n"
        "    perfgate.record('wait', [1.0], unit='s', better='lower')\n"
        "def test_b(perfgate):\n"
        "    for _ in perfgate.iterations():\n"
        "        with perfgate.stage('s'): pass\n"
        "def test_c(perfgate):\n"
        "    assert perfgate.inference(lambda x: x, 3) == 3\n"
        "def test_d(perfgate):\n"
        "    assert perfgate.generation(lambda p: [1, [2, 3]], ['p']) == [[1, 2, 3]]\n",
        "test_plain.py",
    )
    assert not HEAVY & {name.partition(".")[0] for name in modules()}


def test_a_benchmark_runs_once_as_a_plain_test(project):
    project.bench(
        "from pathlib import Path\n"
        "def work():\n"
        "    with Path('calls').open('a') as file: file.write('x')\n"
        "    return 7\n"
        "def test_work(perfgate):\n    assert perfgate(work) == 7\n"
        "def test_nothing(perfgate):\n    pass\n",
        "test_work.py",
    )
    result = project.plain()
    result.assert_outcomes(passed=2)
    assert (project.path / "calls").read_text() == "x"
    assert not (project.path / ".perfgate").exists()


SCRIPT = "import sys\nopen('imported', 'w').close()\nsys.exit('a script, not a test')\n"
HELPER = "def bench_helper(model, n):\n    raise AssertionError('a helper')\n"


@pytest.fixture
def scripts(project):
    """A project with scripts and helpers that are called like benchmarks."""
    project.pytester.makeini("[pytest]\n")
    project.bench(SCRIPT, "benchmarks/bench_script.py")
    project.bench(f"{HELPER}def test_a():\n    pass\n", "tests/test_a.py")
    project.bench("def bench_b(perfgate):\n    perfgate(int)\n", "benches/bench_b.py")
    return project


def test_a_plain_session_collects_what_it_did_before(scripts, monkeypatch):
    with_plugin = scripts.plain("--collect-only", "-q").stdout.lines
    monkeypatch.delenv("PYTEST_PLUGINS")
    without = scripts.plain("--collect-only", "-q").stdout.lines
    assert with_plugin[:-1] == without[:-1]  # the last line tells the time
    assert with_plugin[0] == "tests/test_a.py::test_a"
    assert not (scripts.path / "imported").exists()


def test_the_gate_leaves_scripts_and_helpers_alone(scripts):
    result = scripts.run("--collect-only", "-q")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["benches/bench_b.py::bench_b"])
    assert "bench_helper" not in result.stdout.str()
    assert not (scripts.path / "imported").exists()


def test_a_named_file_runs_its_benchmarks_once(project):
    project.bench(
        "from pathlib import Path\n"
        "def work():\n"
        "    with Path('calls').open('a') as file: file.write('x')\n"
        "def bench_a(perfgate):\n    perfgate(work)\n"
        "def bench_b(perfgate):\n    perfgate(work)\n"
        "def bench_helper(n):\n    raise AssertionError\n"
    )
    project.plain("benches/bench_a.py").assert_outcomes(passed=2)
    assert (project.path / "calls").read_text() == "xx"
    project.plain("benches/bench_a.py::bench_b").assert_outcomes(passed=1)
    assert project.plain("benches").ret == 5  # nothing collected


def test_asserts_in_benchmarks_are_explained(project):
    body = "def bench_a(perfgate):\n    assert perfgate(lambda: 3) == 2 + 2\n"
    project.bench(body)
    for result in (
        project.plain("benches/bench_a.py"),
        project.run("benches"),
    ):
        result.stdout.fnmatch_lines(["E*assert 3 == (2 + 2)"])


def test_parametrised_and_grouped_benchmarks_are_collected(project):
    project.bench(
        "import pytest\n"
        "@pytest.mark.parametrize('n', [1, 2])\n"
        "def bench_a(perfgate, n): ...\n"
        "class TestGroup:\n"
        "    def test_b(self, perfgate): ...\n"
        "    def bench_c(self, perfgate): ...\n"
        "async def bench_d(n): ...\n"
    )
    lines = project.run("--collect-only", "-q", "benches").stdout.lines
    found = [line.partition("::")[2] for line in lines if line.startswith("benches/")]
    assert found == [
        "bench_a[1]",
        "bench_a[2]",
        "TestGroup::test_b",
        "TestGroup::bench_c",
    ]


def test_the_users_own_patterns_still_hold(project):
    project.bench("def check_a(perfgate):\n    perfgate(int)\n", "perf_a.py")
    project.bench("def bench_b(perfgate):\n    perfgate(int)\n", "bench_b.py")
    lines = project.run(
        "--collect-only",
        "-q",
        "-o",
        "python_files=perf_*.py",
        "-o",
        "python_functions=check",
    ).stdout.lines
    assert lines[:2] == ["bench_b.py::bench_b", "perf_a.py::check_a"]


def test_options_that_would_do_nothing_are_refused(project):
    result = project.plain("--perfgate-runs=3:3")
    assert result.ret == 4
    result.stderr.fnmatch_lines(["*--perfgate-runs does nothing without --perfgate*"])


def test_ini_values_alone_are_no_error(project):
    project.pytester.makeini("[pytest]\nperfgate_runs = 3:5\nperfgate_budget =\n  5%\n")
    project.bench("def test_plain(): pass\n", "test_plain.py")
    assert project.plain().ret == 0
