from dataclasses import replace

import pytest

from pytest_perfgate.gate.update import Recording, update_baseline
from pytest_perfgate.measured import Plan
from pytest_perfgate.model import Outcome, Reason, RunStatistic, Session, Verdict


@pytest.fixture
def record(make):
    def recording(value=2.0, *, runs=None, time="now", metrics=("latency",)):
        return Recording(
            plan=Plan(iterations=100, warmup=3),
            metrics={name: make.metric(name) for name in metrics},
            session=Session(
                time=time,
                commit="abc",
                environment_digest="e",
                runs=runs or make.runs("latency__median", [value] * 10),
            ),
            sketch={"latency": (1.0, 2.0)},
            counts={"ops": 3},
        )

    return recording


@pytest.fixture
def stored(make):
    return make.baseline(make.runs("latency__median", [1.0] * 10))


def verdict(outcome, reason=Reason.WITHIN_BUDGET):
    return Verdict(outcome=outcome, reason=reason)


def test_the_first_session_is_baseline_and_anchor(record):
    update = update_baseline(None, record())
    assert not update.refused
    assert update.verdict.outcome is Outcome.RECORDED
    assert update.verdict.reason is Reason.FIRST_SESSION
    assert update.baseline.sessions == (record().session,)
    assert update.baseline.anchor == record().session
    assert update.baseline.plan.warmup == 3
    assert update.baseline.counts == {"ops": 3}


def test_unchanged_adds_a_session_and_keeps_the_anchor(record, stored):
    update = update_baseline(stored, record(), verdict=verdict(Outcome.UNCHANGED))
    assert update.verdict.reason is Reason.SESSION_ADDED
    assert update.baseline.sessions == (*stored.sessions, record().session)
    assert update.baseline.anchor == stored.anchor
    assert update.baseline.sketch == {"latency": (1.0, 2.0)}


def test_what_is_not_gated_adds_a_session_too(record, stored):
    skipped = verdict(Outcome.SKIPPED, Reason.NOT_GATED)
    assert update_baseline(stored, record(), verdict=skipped).baseline is not None


def test_the_latest_ten_sessions_are_kept(record, stored):
    baseline = stored
    for index in range(12):
        baseline = update_baseline(
            baseline, record(time=str(index)), verdict=verdict(Outcome.UNCHANGED)
        ).baseline
    assert [session.time for session in baseline.sessions] == [
        str(index) for index in range(2, 12)
    ]
    assert baseline.anchor == stored.anchor


@pytest.mark.parametrize(
    "outcome",
    [Outcome.IMPROVED, Outcome.REGRESSED, Outcome.INCOMPARABLE, Outcome.NO_BASELINE],
)
def test_a_change_replaces_all_sessions_and_the_anchor(record, stored, outcome):
    update = update_baseline(stored, record(), verdict=verdict(outcome))
    assert update.verdict == Verdict(
        outcome=Outcome.RECORDED, reason=Reason.REPLACED, detail=f"was {outcome}"
    )
    assert update.baseline.sessions == (record().session,)
    assert update.baseline.anchor == record().session


def test_what_made_it_incomparable_is_told(record, stored):
    other = Verdict(
        outcome=Outcome.INCOMPARABLE,
        reason=Reason.PLAN_DIFFERS,
        detail="cache was hot, is flush",
    )
    update = update_baseline(stored, record(), verdict=other)
    assert update.verdict.detail == "was incomparable: cache was hot, is flush"


def test_inconclusive_is_refused_unless_forced(record, stored):
    doubt = verdict(Outcome.INCONCLUSIVE, Reason.TOO_NOISY)
    update = update_baseline(stored, record(), verdict=doubt)
    assert update.refused
    assert update.verdict.outcome is Outcome.INCONCLUSIVE
    assert "--perfgate-update-force" in update.verdict.detail
    forced = update_baseline(stored, record(), verdict=doubt, force=True)
    assert forced.verdict.reason is Reason.SESSION_ADDED


@pytest.mark.parametrize(
    "outcome", [Outcome.ERROR, Outcome.INVALID, Outcome.MISSING, Outcome.SKIPPED]
)
def test_what_failed_is_refused_even_by_force(record, stored, outcome):
    update = update_baseline(
        stored, record(), verdict=verdict(outcome, Reason.CRASHED), force=True
    )
    assert update.refused
    assert update.verdict.outcome is outcome


@pytest.mark.parametrize(
    ("flaw", "reason"),
    [({"disturbed": True}, Reason.DISTURBED), ({"steady": False}, Reason.NOT_STEADY)],
)
@pytest.mark.parametrize(("bad", "refused"), [(2, False), (3, True)])
def test_a_disturbed_session_is_refused_even_by_force(
    make, record, flaw, reason, bad, refused
):
    runs = (
        *make.runs("latency__median", [1.0] * (10 - bad)),
        *make.runs("latency__median", [1.0] * bad, **flaw),
    )
    update = update_baseline(None, record(runs=runs), force=True)
    assert update.refused is refused
    if refused:
        assert update.verdict.outcome is Outcome.INVALID
        assert update.verdict.reason is reason
        assert "3 of 10 runs" in update.verdict.detail


def test_two_runs_are_no_baseline_unless_all_is_exact(make, record):
    few = record(runs=make.runs("latency__median", [1.0] * 2))
    assert update_baseline(None, few).verdict.reason is Reason.TOO_FEW_RUNS
    counts = record(
        runs=make.runs("kernel_launches__max", [1.0]), metrics=("kernel_launches",)
    )
    assert not update_baseline(None, counts).refused


def test_what_serves_only_a_limit_is_not_stored(record):
    plain = record()
    runs = tuple(
        replace(
            run,
            statistics={
                "latency": {
                    **run.statistics["latency"],
                    "p99/8": RunStatistic(value=1.0),
                },
                "latency<=0.15": {"share-beyond": RunStatistic(value=0.0)},
            },
        )
        for run in plain.session.runs
    )
    update = update_baseline(None, record(runs=runs))
    assert update.baseline.sessions == (plain.session,)


def test_a_stored_baseline_needs_a_verdict(record, stored):
    with pytest.raises(ValueError, match="verdict=None"):
        update_baseline(stored, record())
