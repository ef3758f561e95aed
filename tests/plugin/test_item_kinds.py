"""Every kind of item behaves under the gate as in plain pytest."""

import os
from xml.etree import ElementTree as ET

import pytest

KINDS = """
import unittest
import pytest


def test_plain(perfgate):
    perfgate(int)


def test_failing(perfgate):
    perfgate(int)
    assert 1 == 2


@pytest.mark.skip(reason="marked")
def test_skip_mark(perfgate):
    perfgate(int)


def test_skip_in_body(perfgate):
    pytest.skip("in body")


@pytest.mark.skipif(True, reason="condition")
def test_skipif(perfgate):
    perfgate(int)


@pytest.mark.xfail(reason="expected")
def test_xfail_failing(perfgate):
    perfgate(int)
    assert 0


@pytest.mark.xfail(reason="expected")
def test_xfail_passing(perfgate):
    perfgate(int)


@pytest.mark.xfail(strict=True, reason="strict")
def test_xfail_strict_passing(perfgate):
    perfgate(int)


@pytest.mark.xfail(raises=KeyError)
def test_xfail_raises_other(perfgate):
    perfgate(int)
    raise ValueError("other")


@pytest.mark.xfail(run=False, reason="never run")
def test_xfail_not_run(perfgate):
    perfgate(int)


@pytest.mark.parametrize("p", ["[x]", "a::b", "äöü", "new\\nline", "<&|", "-k", ""])
def test_odd_ids(perfgate, p):
    perfgate(int)


@pytest.fixture
def broken():
    raise RuntimeError("set-up")


def test_setup_error(perfgate, broken):
    perfgate(int)


@pytest.fixture
def broken_later():
    yield
    raise RuntimeError("tear-down")


def test_teardown_error(perfgate, broken_later):
    perfgate(int)


class TestClass:
    def test_method(self, perfgate):
        perfgate(int)

    @pytest.mark.parametrize("n", [1, 2])
    def test_parametrised(self, perfgate, n):
        perfgate(int)


class TestUnittest(unittest.TestCase):
    @pytest.fixture(autouse=True)
    def lend(self, perfgate):
        self.perfgate = perfgate

    @classmethod
    def setUpClass(cls):
        cls.ready = True

    def test_method(self):
        self.perfgate(int)
        self.assertTrue(self.ready)

    def test_failing(self):
        self.perfgate(int)
        self.assertEqual(1, 2)

    @unittest.skip("unittest's own")
    def test_skipped(self):
        self.perfgate(int)


def test_module_was_set_up(perfgate):
    perfgate(int)
    assert READY


READY = False


def setup_module():
    global READY
    READY = True
"""


def cases(path):
    """By test: what JUnit says happened, without the words."""
    found = {}
    for case in ET.parse(path).iter("testcase"):
        key = (case.get("classname"), case.get("name"))
        kinds = sorted(c.tag for c in case if c.tag != "properties")
        found.setdefault(key, []).extend(kinds)
    return found


@pytest.fixture
def kinds(project):
    project.bench(KINDS, "pack/test_kinds.py")
    project.bench(
        "def setup_module():\n    import builtins\n    builtins.SET_UP = True\n",
        "pack/__init__.py",
    )
    return project


def test_each_kind_is_as_in_plain_pytest(kinds):
    plain = kinds.pytester.runpytest_inprocess("pack", "--junitxml=plain.xml")
    kinds.adopt("pack")
    gated = kinds.run(
        "pack", "--junitxml=gated.xml", "-rA", "-v", "--perfgate-runs=3:3"
    )
    assert gated.ret == plain.ret == 1
    expected = cases(kinds.path / "plain.xml")
    found = cases(kinds.path / "gated.xml")
    assert found == expected
    # a call whose tear-down raised is no pass
    assert gated.parseoutcomes() == plain.parseoutcomes() | {"passed": 13}
    assert len(expected) >= 22


def test_set_up_happens_in_workers_only(project):
    project.bench(
        "import os, pytest\n"
        "@pytest.fixture(scope='session', autouse=True)\n"
        "def note():\n"
        "    with open('set-up', 'a') as f: f.write(f'{os.getpid()}\\n')\n"
        "def bench_a(perfgate):\n    perfgate(int)\n"
        "def bench_b(perfgate):\n    perfgate(int)\n"
    )
    project.run("--perfgate-on-missing=warn", "--perfgate-runs=3:3", "benches")
    pids = (project.path / "set-up").read_text().split()
    assert len(pids) == len(set(pids)) == 3
    assert str(os.getpid()) not in pids


def test_x_and_maxfail_stop_the_reporting_only(project):
    project.bench(
        "def bench_a(perfgate):\n    perfgate(int); assert 0\n"
        "def bench_b(perfgate):\n    perfgate(int); assert 0\n"
        "def bench_c(perfgate):\n    perfgate(int)\n"
    )
    result = project.run("-x", "--perfgate-runs=3:3", "benches")
    assert result.ret == 1
    result.assert_outcomes(failed=1)
    assert len(project.outcomes) == 3


def test_stepwise_stops_the_reporting_only(project):
    project.bench(
        "def bench_a(perfgate):\n    perfgate(int); assert 0\n"
        "def bench_b(perfgate):\n    perfgate(int)\n"
    )
    result = project.run("--sw", "--perfgate-runs=3:3", "benches")
    assert result.ret == 2
    assert project.report["interrupted"] is False
    assert {outcome for outcome, _ in project.outcomes.values()} == {
        "error",
        "no-baseline",
    }


def test_text_of_any_kind_can_be_shown(project):
    project.bench(
        "def bench_a(perfgate):\n    perfgate(int)\n"
        "    raise ValueError('\\udcff \\x1b[31m <b>| \\u202e')\n"
    )
    result = project.run("--junitxml=j.xml", "benches")
    assert result.ret == 1
    folder = project.path / ".perfgate" / "last"
    assert "ValueError" in project.report["results"][0]["text"]
    for name in ("report.md", "report.html"):
        assert "\x1b" not in (folder / name).read_text()


def test_a_tracer_in_the_worker_is_an_error(project):
    project.bench("def bench_a(perfgate):\n    perfgate(int)\n")
    project.bench(
        "import os, sys\n"
        "if '_PERFGATE_TASK' in os.environ:\n    sys.settrace(lambda *a: None)\n",
        "conftest.py",
    )
    result = project.run("benches")
    assert result.ret == 1
    assert project.outcomes["benches/bench_a.py::bench_a"] == ("error", "traced")
    assert project.report["cost"]["runs"] == 1


def test_lf_runs_what_was_red(project):
    project.bench(
        "def bench_a(perfgate):\n    perfgate(int)\n"
        "def bench_b(perfgate):\n    perfgate(int); assert 0\n"
    )
    project.run("--perfgate-on-missing=warn", "--perfgate-runs=3:3", "benches")
    result = project.run("--lf", "--perfgate-runs=3:3", "benches")
    assert list(project.outcomes) == ["benches/bench_a.py::bench_b"]
    result.assert_outcomes(failed=1)


def test_warnings_of_workers_are_shown_once(project):
    project.pytester.makeini("[pytest]\nperfgate_max_time = 0.05\n")
    project.bench(
        "import warnings\n"
        "def bench_a(perfgate):\n"
        "    perfgate(int)\n"
        "    warnings.warn('look out', UserWarning)\n"
    )
    result = project.run("--perfgate-on-missing=warn", "--perfgate-runs=3:3", "benches")
    assert result.stdout.str().count("UserWarning: look out") == 1
