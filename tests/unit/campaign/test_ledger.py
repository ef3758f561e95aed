"""What is booked of each benchmark, run by run."""

import pytest

from pytest_perfgate.campaign.ledger import (
    Ledger,
    Loss,
    failed_as_expected,
    passed_strictly,
)
from pytest_perfgate.campaign.unused import discarded
from pytest_perfgate.measured import METRICS, Health, Measurement, Plan, Samples
from pytest_perfgate.model import Reason
from pytest_perfgate.settings import ItemSettings
from pytest_perfgate.store import encode_measurement

A = "a.py::a"


@pytest.fixture
def ledger():
    own = ItemSettings(
        nodeid=A,
        budget=None,
        limit=None,
        metrics=None,
        gate=True,
        isolate=False,
        counts=None,
        iterations=None,
        max_time_s=1.0,
        warmup=None,
        timeout_s=10.0,
        seed=0,
        inner_loop=1,
    )
    return Ledger([own])


def measured(benchmark=A, *, evidence=(), iterations=10, unfit=None, repeated=0):
    measurement = Measurement(
        benchmark=benchmark,
        nodeid=A,
        run=1,
        plan=Plan(iterations=iterations, warmup=1),
        samples=(Samples(metric=METRICS["latency"], values=(1.0,) * iterations),),
        health=Health(
            disturbed=bool(evidence) and not unfit and not repeated,
            repeated_blocks=repeated,
            evidence=evidence,
            unfit=unfit,
        ),
    )
    return {"kind": "measured", "measurement": encode_measurement(measurement)}


def report(when="call", outcome="passed", **fields):
    data = {"when": when, "outcome": outcome, "longrepr": None, **fields}
    return {"kind": "report", "nodeid": A, "report": data}


def take(ledger, run, *records):
    for record in (
        {"kind": "open", "nodeid": A},
        report("setup"),
        *records,
        report("teardown"),
        {"kind": "close", "nodeid": A},
    ):
        ledger.take(record, run=run)
    return ledger.entries[A]


def test_a_whole_run_is_kept_with_all_it_measured(ledger):
    entry = take(ledger, 1, measured(), measured(f"{A}::x"), report())
    assert entry.benchmarks == [A, f"{A}::x"]
    assert entry.sound_runs == [1]
    assert [r["when"] for r in entry.reports[1]] == ["setup", "call", "teardown"]
    assert not entry.finished
    assert (entry.attempts, entry.wants(1), entry.wants(2)) == (1, False, True)
    assert A in entry.runs[1]
    assert f"{A}::y" not in entry.runs[1]
    assert ledger.plan_of(A, A).iterations == 10
    assert ledger.plan_of(f"{A}::y", A) is None


def test_timings_of_a_run_that_failed_are_not_kept(ledger):
    longrepr = {"reprcrash": {"message": "assert 0"}}
    entry = take(ledger, 1, measured(), report(outcome="failed", longrepr=longrepr))
    assert entry.runs == {}
    (failure,) = entry.failures
    assert (failure.run, failure.when, failure.text) == (1, "call", "assert 0")
    assert failure.reason is Reason.BODY_RAISED
    assert entry.finished


@pytest.mark.parametrize(
    ("longrepr", "text"),
    [("plain words", "plain words"), ({"reprcrash": None}, ""), (None, "")],
)
def test_what_a_failure_says_may_be_of_any_form(ledger, longrepr, text):
    entry = take(ledger, 1, report(outcome="failed", longrepr=longrepr))
    assert entry.failures[0].text == text


def test_a_failure_of_our_own_brings_its_reason(ledger):
    properties = [["perfgate_failure", "not-a-number"]]
    entry = take(ledger, 1, report(outcome="failed", user_properties=properties))
    assert entry.failures[0].reason is Reason.NOT_A_NUMBER


def test_a_tear_down_that_raised_spoils_the_run(ledger):
    for record in (
        {"kind": "open", "nodeid": A},
        measured(),
        report(),
        report("teardown", "failed", longrepr="left open"),
        {"kind": "close", "nodeid": A},
    ):
        ledger.take(record, run=1)
    entry = ledger.entries[A]
    assert (entry.runs, entry.failures[0].when) == ({}, "teardown")


def test_a_skip_after_measuring_keeps_nothing(ledger):
    entry = take(ledger, 1, measured(), report(outcome="skipped"))
    assert (entry.runs, entry.skipped_runs, entry.finished) == ({}, [1], True)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"outcome": "skipped", "wasxfail": "known"}, True),
        ({"outcome": "skipped", "wasxfail": ""}, True),
        ({"outcome": "skipped", "wasxfail": "[NOTRUN] known"}, False),
        ({"outcome": "skipped"}, False),
        ({"outcome": "passed", "wasxfail": "known"}, False),
    ],
)
def test_an_expected_failure_is_told_from_a_skip(fields, expected):
    assert failed_as_expected(fields) is expected


def test_a_strict_pass_is_no_failure_of_the_body(ledger):
    data = {"outcome": "failed", "longrepr": "[XPASS(strict)] known"}
    assert passed_strictly(data)
    assert not passed_strictly({"longrepr": None})
    entry = take(ledger, 1, measured(), report(**data))
    assert (sorted(entry.runs), entry.failures) == ([1], [])


def lose(ledger, run, how="SIGSEGV"):
    ledger.take({"kind": "open", "nodeid": A}, run=run)
    ledger.take(measured(), run=run)
    ledger.lose(A, Loss(run=run, how=how, timed_out=False, tail=""))
    return ledger.entries[A]


def test_a_lost_run_leaves_nothing_but_its_name(ledger):
    entry = lose(ledger, 1)
    assert (entry.runs, entry.reports, entry.attempts) == ({}, {}, 1)
    assert discarded(entry) == ("run 1 not used: SIGSEGV",)
    take(ledger, 1, measured(), report())
    assert sorted(entry.runs) == [1]


def test_the_same_end_twice_is_for_good(ledger):
    lose(ledger, 1, "SIGSEGV")
    assert not lose(ledger, 2, "timed out").lost_for_good
    assert lose(ledger, 3, "SIGSEGV").finished


def test_ever_other_ends_come_to_an_end_too(ledger):
    for run in range(1, 7):
        assert ledger.entries[A].wants(3)
        lose(ledger, run, f"exit code {run}")
    assert not ledger.entries[A].wants(3)


def test_disturbed_runs_are_used_where_there_are_no_others(ledger):
    for run, evidence in ((1, ("busy",)), (2, ()), (3, ("busy", "hot")), (4, ())):
        take(ledger, run, measured(evidence=evidence), report())
    entry = ledger.entries[A]
    assert (entry.sound_runs, entry.disturbed_runs) == ([2, 4], [1, 3])
    assert entry.usable(2) == [2, 4]
    assert entry.usable(3) == [1, 2, 4]
    assert discarded(entry) == ("run 1 not used: busy", "run 3 not used: busy; hot")
    assert discarded(entry, used={1, 2, 4}) == (
        "run 1 used, for want of a quiet one, though disturbed: busy",
        "run 3 not used: busy; hot",
    )


def test_a_run_with_a_block_measured_again_is_used(ledger):
    again = measured(repeated=2, evidence=("2 of 9 blocks discarded",))
    take(ledger, 1, again, report())
    entry = ledger.entries[A]
    assert entry.disturbed_runs == []
    assert discarded(entry) == ("run 1: 2 of 9 blocks discarded",)


def test_confirming_runs_are_counted_anew(ledger):
    for run in (1, 2, 3):
        take(ledger, run, measured(), report())
    entry = ledger.entries[A]
    entry.begin_confirmation()
    assert (sorted(entry.screened), entry.runs, entry.attempts) == ([1, 2, 3], {}, 0)
    take(ledger, 4, measured(), report())
    assert (entry.attempts, sorted(entry.runs)) == (1, [4])


def test_warnings_are_those_of_the_first_run(ledger):
    for run in (1, 2):
        ledger.take({"kind": "warning", "message": f"in run {run}"}, run=run)
    assert [w["message"] for w in ledger.warnings] == ["in run 1"]


def test_what_is_said_twice_is_kept_once_and_the_unknown_ignored(ledger):
    for _ in range(2):
        ledger.take({"kind": "note", "text": "n"}, run=1)
    ledger.take({"kind": "from a later version"}, run=1)
    ledger.take({"kind": "traced", "nodeid": A, "tracer": "coverage"}, run=1)
    ledger.take({"kind": "collected", "absent": ["b"]}, run=1)
    assert list(ledger.notes) == ["n"]
    assert ledger.entries[A].finished
    assert ledger.absent == {"b"}


def hot():
    return measured(unfit=Reason.THROTTLED, evidence=("hot",))


def test_a_run_that_the_device_spoilt_is_not_kept(ledger):
    take(ledger, 1, hot())
    entry = ledger.entries[A]
    assert entry.runs == {}
    assert (entry.attempts, entry.unfit_streak) == (1, 1)
    assert discarded(entry) == ("run 1 not used: throttled; hot",)
    take(ledger, 2, measured())
    assert list(entry.runs) == [2]
    assert entry.unfit_streak == 0
    assert len(entry.all_unfit) == 1
    assert entry.wants(3)


def test_one_spoilt_measurement_spoils_the_whole_item_s_run(ledger):
    take(ledger, 1, measured(), measured(f"{A}::more", unfit=Reason.BUSY))
    assert ledger.entries[A].runs == {}
    assert ledger.entries[A].unfit[0].reason is Reason.BUSY


def test_four_spoilt_runs_in_a_row_are_the_end(ledger):
    entry = ledger.entries[A]
    for run in (1, 2, 3):
        take(ledger, run, hot())
    take(ledger, 4, measured())
    for run in (5, 6, 7):
        take(ledger, run, hot())
        assert not entry.finished
    take(ledger, 8, hot())
    assert entry.finished
    assert entry.unfit_for_good.run == 8
    assert not entry.wants(100)


def test_of_a_pair_either_half_can_be_spoilt(ledger):
    entry = ledger.entries[A]
    ledger.pair_up([entry])
    for run in (1, 2, 3, 4):
        take(ledger, run, measured())
        take(ledger.base, run, hot())
    assert entry.complete_runs == {}
    assert entry.unfit_streak == 4
    assert entry.unfit_for_good.reason is Reason.THROTTLED
    assert entry.finished
    assert "run 4 of the base not used: throttled; hot" in discarded(entry)


def test_a_machine_that_is_refused_measures_nothing(ledger):
    ledger.refuse(Reason.BUSY, ("held",))
    entry = ledger.entries[A]
    assert not entry.wants(3)
    assert entry.unfit_for_good.evidence == ("held",)
