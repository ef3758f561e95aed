"""Counts that hold for one version of torch only, or for nothing."""

from dataclasses import replace

import pytest

from pytest_perfgate.gate.comparability import definitions, not_comparable
from pytest_perfgate.gate.update import Recording, update_baseline
from pytest_perfgate.measured import METRICS, Measurement, Metric, Plan, Samples
from pytest_perfgate.model import Outcome, Reason, Session, Verdict

OLD, NEW = "cpu torch 2.12.0", "cpu torch 2.13.0"


def ops(holds_for=NEW, *, made="leaf-operators/1", name="ops"):
    definition = f"{made}@{holds_for}" if holds_for else made
    return Metric(name=name, unit="1", definition=definition, exact=True)


def runs(make, count, *, values=3):
    return tuple(
        make.run(latency__median=1.0, ops__max=count, samples={"ops": 1})
        for _ in range(values)
    )


@pytest.fixture
def stored(make):
    def baseline(metric):
        made = make.baseline(runs(make, 10.0), metrics=("latency",))
        return replace(made, metrics={**made.metrics, "ops": metric})

    return baseline


@pytest.fixture
def judge(make, stored):
    def judged(before, now, count=12.0, **policy):
        return make.judge(
            stored(before),
            runs(make, count),
            metrics={"latency": METRICS["latency"], "ops": now},
            **policy,
        )

    return judged


def of_ops(judged):
    return next(j for j in judged.judgements if j.metric.name == "ops")


def test_a_count_of_the_same_torch_is_gated(judge):
    judged = judge(ops(), ops(), specs=["ops=+0"])
    assert judged.verdict.reason is Reason.COUNT_OVER_BUDGET
    assert judged.verdict.detail == "10 → 12"


def test_a_count_of_another_torch_is_shown_and_says_so(judge):
    judged = judge(ops(OLD), ops(NEW), specs=["ops=+0"])
    assert judged.verdict.outcome is Outcome.UNCHANGED
    assert not of_ops(judged).gated
    assert of_ops(judged).comparison.candidate == 12
    assert judged.remarks == (
        (
            "ops is not gated: it was counted with cpu torch 2.12.0, now with cpu torch "
            "2.13.0; record it anew to gate it"
        ),
    )


def test_what_nobody_gates_needs_no_excuse(judge):
    assert judge(ops(OLD), ops(NEW)).remarks == ()


@pytest.mark.parametrize(
    ("before", "now", "when"), [(OLD, "unstable", "now"), ("unstable", NEW, "when")]
)
def test_an_unstable_count_is_shown(judge, before, now, when):
    judged = judge(ops(before), ops(now), specs=["ops=+0"])
    assert judged.verdict.outcome is Outcome.UNCHANGED
    assert f"ops is not gated: it differed {when}" in judged.remarks[0]


def test_unstable_on_both_sides_is_no_more_gated(judge):
    judged = judge(ops("unstable"), ops("unstable"), specs=["ops=+0"])
    assert judged.verdict.outcome is Outcome.UNCHANGED


def test_another_way_of_counting_is_incomparable(judge):
    judged = judge(ops(), ops(made="leaf-operators/2"), specs=["ops=+0"])
    assert judged.verdict.reason is Reason.METRIC_DIFFERS


def test_what_holds_for_everything_is_comparable():
    metric = METRICS["latency"]
    assert not_comparable(metric, metric) is None
    assert (metric.made, metric.holds_for) == ("host-synchronised/1", "")


def test_an_old_count_is_held_against_no_anchor(judge):
    judged = judge(ops(OLD), ops(NEW), specs=["ops=+0"], count=99.0)
    assert judged.verdict.outcome is Outcome.UNCHANGED


def test_new_counts_are_told_of_together(make):
    stored = make.baseline(make.runs("latency__median", [1.0] * 3))
    judged = make.judge(
        stored,
        runs(make, 3.0),
        metrics={
            "latency": METRICS["latency"],
            "ops": ops(),
            "syncs": ops(name="syncs"),
        },
    )
    assert judged.remarks == ("2 counts have no baseline yet",)


def test_a_count_of_another_torch_starts_anew(make, stored):
    old = stored(ops(OLD))
    recording = Recording(
        plan=old.plan,
        metrics={"latency": METRICS["latency"], "ops": ops(NEW)},
        session=Session(
            time="now", commit=None, environment_digest="e", runs=runs(make, 12.0)
        ),
    )
    unchanged = Verdict(outcome=Outcome.UNCHANGED, reason=Reason.WITHIN_BUDGET)
    new = update_baseline(old, recording, verdict=unchanged).baseline
    earlier, latest = new.sessions
    assert all(run.get("ops", "max") is None for run in earlier.runs)
    assert all(run.get("ops", "max") is None for run in new.anchor.runs)
    assert all(run.samples == {} for run in earlier.runs)
    assert all(run.get("latency", "median") for run in earlier.runs)
    assert [run.get("ops", "max").value for run in latest.runs] == [12.0] * 3


def measurement(run, metric):
    return Measurement(
        benchmark="b",
        nodeid="b",
        run=run,
        plan=Plan(iterations=1, warmup=0),
        samples=(Samples(metric=metric, values=(3.0,)),),
    )


@pytest.mark.parametrize("order", [1, -1])
def test_unstable_in_one_run_is_unstable_in_all(order):
    made = [measurement(1, ops("unstable")), measurement(2, ops(NEW))][::order]
    assert definitions(made)["ops"].holds_for == "unstable"
