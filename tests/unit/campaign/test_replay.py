"""Reports that travelled, rewritten by verdicts."""

import json

import pytest

from pytest_perfgate.campaign import replay
from pytest_perfgate.campaign.ledger import Entry, Failure
from pytest_perfgate.model import BenchmarkResult, Outcome, Reason, Verdict

ITEM = "bench_a.py::bench_a"
VERDICTS = {
    Outcome.UNCHANGED: Reason.WITHIN_BUDGET,
    Outcome.IMPROVED: Reason.FASTER,
    Outcome.REGRESSED: Reason.CONFIRMED_WITHOUT_BASE,
    Outcome.ERROR: Reason.BODY_RAISED,
    Outcome.INCONCLUSIVE: Reason.TOO_NOISY,
    Outcome.NO_BASELINE: Reason.NOTHING_STORED,
    Outcome.INCOMPARABLE: Reason.PLAN_DIFFERS,
    Outcome.INVALID: Reason.TIMED_OUT,
    Outcome.MISSING: Reason.GONE,
    Outcome.RECORDED: Reason.REPLACED,
}


def result(outcome, benchmark=ITEM):
    verdict = Verdict(outcome=outcome, reason=VERDICTS[outcome])
    return BenchmarkResult(benchmark=benchmark, nodeid=ITEM, verdict=verdict)


class Travelled:
    """Reports of one test as they arrive in the manager."""

    def __init__(self, pytester):
        self._pytester = pytester

    def __call__(self, body="pass", marks=""):
        self._pytester.makepyfile(
            bench_a=f"import pytest\n{marks}\ndef bench_a():\n    {body}\n"
        )
        seen = []

        class Plugin:
            @staticmethod
            def pytest_runtest_logreport(report):
                seen.append(report)

        self._pytester.inline_run(
            "-o", "python_functions=bench", "bench_a.py", plugins=[Plugin()]
        )
        self.config = self._pytester.parseconfig()
        hook = self.config.hook.pytest_report_to_serializable
        data = [hook(config=self.config, report=report) for report in seen]
        return json.loads(json.dumps(data))

    def revived(self, *args, **kwargs):
        return (
            replay.revive(self.config, data) if (data := self(*args, **kwargs)) else []
        )


@pytest.fixture
def travelled(pytester, monkeypatch):
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    return Travelled(pytester)


def call(reports):
    (found,) = (report for report in reports if report.when == "call")
    return found


# -- revived


def test_a_skip_has_the_tuple_that_terminals_insist_on(travelled):
    report = call(travelled.revived("pytest.skip('not today')"))
    assert isinstance(report.longrepr, tuple)
    assert report.longrepr[2] == "Skipped: not today"
    assert isinstance(report.location, tuple)


def test_a_failure_keeps_its_traceback(travelled):
    report = call(travelled.revived("assert 1 == 2"))
    assert report.failed
    assert "assert 1 == 2" in report.longreprtext


def test_what_was_captured_and_noted_comes_along(travelled):
    body = "print('said')"
    marks = (
        "@pytest.fixture(autouse=True)\n"
        "def note(record_property):\n    record_property('k', 'v')\n"
    )
    report = call(travelled.revived(body, marks))
    assert report.capstdout == "said\n"
    assert report.user_properties == [("k", "v")]
    assert all(isinstance(section, tuple) for section in report.sections)


# -- which run is shown


def entry(reports, failures=()):
    return Entry(nodeid=ITEM, settings=None, reports=reports, failures=list(failures))


def whole(name):
    return [{"when": when, "name": name} for when in ("setup", "call", "teardown")]


def test_the_last_whole_run_is_shown():
    shown = replay.last_complete(
        entry({1: whole("1"), 2: whole("2"), 3: whole("3")[:2]})
    )
    assert shown[0]["name"] == "2"
    assert replay.last_complete(entry({1: []})) == ()


def test_the_first_run_that_failed_is_shown_first():
    failure = Failure(run=1, when="call", reason=Reason.BODY_RAISED, text="")
    assert replay.last_complete(entry({1: whole("1"), 2: whole("2")}, [failure]))[
        0
    ] == {
        "when": "setup",
        "name": "1",
    }


# -- judged


@pytest.mark.parametrize(
    ("outcome", "red", "expected"),
    [
        (Outcome.UNCHANGED, False, "passed"),
        (Outcome.IMPROVED, False, "passed"),
        (Outcome.RECORDED, False, "passed"),
        (Outcome.REGRESSED, True, "failed"),
        (Outcome.INCONCLUSIVE, False, "skipped"),
        (Outcome.INCONCLUSIVE, True, "failed"),
        (Outcome.NO_BASELINE, False, "skipped"),
        (Outcome.NO_BASELINE, True, "failed"),
        (Outcome.INCOMPARABLE, True, "failed"),
        (Outcome.INVALID, True, "failed"),
        (Outcome.MISSING, True, "failed"),
    ],
)
def test_a_passing_body_becomes_what_the_verdict_says(
    travelled, outcome, red, expected
):
    reports = replay.judged(travelled.revived(), [result(outcome)], red=red)
    assert call(reports).outcome == expected
    assert [r.outcome for r in reports if r.when != "call"] == ["passed", "passed"]
    if expected == "failed":
        assert call(reports).longreprtext.startswith(outcome)
    if expected == "skipped":
        assert call(reports).longrepr[0] == "bench_a.py"
        assert call(reports).longrepr[2].startswith(outcome)


@pytest.mark.parametrize("outcome", [*VERDICTS])
def test_no_outcome_but_unchanged_counts_as_passed(travelled, outcome):
    reports = replay.judged(travelled.revived(), [result(outcome)], red=False)
    report = call(reports)
    found = replay.status(report)
    if outcome in {Outcome.UNCHANGED, Outcome.REGRESSED}:
        assert found is None  # pytest's own words
        assert report.outcome != "passed" or outcome is Outcome.UNCHANGED
    elif outcome is Outcome.ERROR:
        assert report.outcome != "passed"
    else:
        assert found[0] == outcome


def test_each_result_leaves_its_properties_for_junit(travelled):
    results = [result(Outcome.REGRESSED, f"{ITEM}::b"), result(Outcome.UNCHANGED)]
    reports = replay.judged(travelled.revived(), results, red=True)
    by_phase = {
        report.when: [
            value
            for name, value in report.user_properties
            if name == "perfgate_outcome"
        ]
        for report in reports
    }
    assert by_phase == {
        "setup": [],
        "call": ["regressed", "unchanged"],
        "teardown": ["regressed", "unchanged"],
    }
    assert f"{ITEM}::b" in call(reports).longreprtext


@pytest.mark.parametrize("body", ["assert 0", "pytest.skip('no')"])
def test_a_bodys_own_end_stands(travelled, body):
    before = call(travelled.revived(body))
    data = travelled(body)
    outcome = Outcome.ERROR if before.failed else Outcome.MISSING
    after = call(
        replay.judged(
            replay.revive(travelled.config, data), [result(outcome)], red=True
        )
    )
    assert (after.outcome, after.longreprtext) == (before.outcome, before.longreprtext)


def test_a_call_whose_tear_down_raised_counts_for_nothing(travelled):
    marks = (
        "@pytest.fixture(autouse=True)\n"
        "def broken():\n    yield\n    raise RuntimeError('left open')\n"
    )
    reports = replay.judged(
        travelled.revived("pass", marks), [result(Outcome.ERROR)], red=True
    )
    assert call(reports).outcome == "passed"
    assert replay.status(call(reports)) == ("", "", ("", {}))


XFAIL = "@pytest.mark.xfail(reason='known')"
STRICT = "@pytest.mark.xfail(reason='known', strict=True)"


@pytest.mark.parametrize("marks", [XFAIL, STRICT], ids=["plain", "strict"])
def test_an_expectation_absorbs_a_regression(travelled, marks):
    reports = replay.judged(
        travelled.revived("pass", marks), [result(Outcome.REGRESSED)], red=True
    )
    report = call(reports)
    assert (report.outcome, report.wasxfail) == ("skipped", "known")
    assert replay.status(report) is None  # pytest's own xfailed


def test_a_strict_expectation_that_does_not_come_true_fails(travelled):
    reports = replay.judged(
        travelled.revived("pass", STRICT), [result(Outcome.UNCHANGED)], red=False
    )
    assert call(reports).outcome == "failed"
    assert call(reports).longreprtext == "[XPASS(strict)] known"


@pytest.mark.parametrize("marks", [XFAIL, STRICT], ids=["plain", "strict"])
@pytest.mark.parametrize(
    ("outcome", "red", "expected"),
    [
        (Outcome.INVALID, True, "failed"),
        (Outcome.INCONCLUSIVE, False, "skipped"),
        (Outcome.RECORDED, False, "passed"),
    ],
)
def test_an_expectation_absorbs_nothing_else(travelled, marks, outcome, red, expected):
    reports = replay.judged(
        travelled.revived("pass", marks), [result(outcome)], red=red
    )
    assert call(reports).outcome == expected
    assert replay.status(call(reports))[0] == outcome


# -- made up


@pytest.mark.parametrize(("red", "expected"), [(True, "failed"), (False, "skipped")])
def test_what_no_worker_could_report_is_made_up(red, expected):
    reports = replay.made_up(ITEM, result(Outcome.INVALID), red=red)
    assert [r.when for r in reports] == ["setup", "call", "teardown"]
    assert [r.outcome for r in reports] == ["passed", expected, "passed"]
    assert call(reports).location == ("bench_a.py", 0, "bench_a")
    assert replay.status(call(reports))[0] == "invalid"
    assert ("perfgate_reason", "timed-out") in reports[-1].user_properties


# -- warnings


class Hook:
    def __init__(self):
        self.calls = []
        self.pytest_warning_recorded = self
        self.hook = self

    def call_historic(self, kwargs):
        self.calls.append(kwargs)


def warning(category, when="runtest"):
    return {
        "nodeid": ITEM,
        "when": when,
        "category": category,
        "message": "look out",
        "filename": "bench_a.py",
        "lineno": 3,
    }


def test_warnings_of_running_are_handed_on():
    config = Hook()
    replay.forward_warnings(
        config,
        [warning("UserWarning"), warning("TheirWarning"), warning("X", "collect")],
    )
    messages = [given["warning_message"] for given in config.calls]
    assert [m.category.__name__ for m in messages] == ["UserWarning", "TheirWarning"]
    assert messages[0].category is UserWarning
    assert issubclass(messages[1].category, Warning)
    assert [str(m.message) for m in messages] == ["look out"] * 2
    assert config.calls[0]["nodeid"] == ITEM
