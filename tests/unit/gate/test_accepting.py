"""What a report makes of a baseline, and what it must not become one."""

from dataclasses import replace

import pytest

from pytest_perfgate.gate.accepting import (
    Accepted,
    Shelved,
    accept,
    budget_of,
    refuse_report,
)
from pytest_perfgate.gate.budgets import Budget
from pytest_perfgate.gate.update import sketch
from pytest_perfgate.measured import METRICS, Measurement, Metric, Plan, Samples
from pytest_perfgate.model import (
    Baseline,
    Outcome,
    Reason,
    RunStatistic,
    RunSummary,
    Session,
    Verdict,
)
from tests.unit.gate.reports import environment, judgement, report, result

PLAN = Plan(iterations=100, warmup=3)
LATENCY = {"latency": METRICS["latency"]}


def runs(*values, metric="latency", **changes):
    return tuple(
        RunSummary(
            iterations=100,
            statistics={metric: {"median": RunStatistic(value=value)}},
            **changes,
        )
        for value in values
    )


NEW = runs(1.0, 1.01, 0.99)
OLD = runs(1.0, 1.001, 0.999)


def measured(outcome=Outcome.UNCHANGED, reason=None, **changes):
    fields = {"plan": PLAN, "runs": NEW, "metrics": LATENCY}
    return result("b", outcome, reason, **(fields | changes))


def stored(*, where=None, plan=PLAN, sessions=(OLD,), time="2026-01-01T00:00:00Z"):
    made = tuple(
        Session(time=time, commit="abc", environment_digest="d", runs=each)
        for each in sessions
    )
    baseline = Baseline(plan=plan, metrics=LATENCY, sessions=made, anchor=made[0])
    return Shelved(baseline=baseline, environment=where or environment())


def decide(one, here=None, *, force=False, sketches=None, **changes):
    given = Accepted(
        result=one,
        report=report(one, **changes),
        environment_digest="digest",
        sketch=sketches or {},
        force=force,
    )
    return accept(given, here)


# -- reports


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"policy": {"--perfgate-slowdown": "60%"}}, "--perfgate-slowdown=60%"),
        ({"policy": {"--perfgate-against": "main"}}, "took turns"),
        ({"interrupted": True}, "interrupted"),
        ({"environment": replace(environment(), fake=True)}, "simulated device"),
        ({"policy": {"--perfgate-on-missing": "x"}}, "contradicts itself: policy"),
    ],
)
def test_a_report_of_which_nothing_can_be_accepted(changes, told):
    assert told in refuse_report(report(measured(), **changes), fake=False)


def test_runs_that_took_turns_are_seen_by_themselves():
    both = {"--perfgate-against": "main", "--perfgate-confirm": "main"}
    assert not refuse_report(report(measured(), policy=both), fake=False)
    pairs = measured(base_runs=NEW)
    assert "took turns" in refuse_report(report(pairs, policy=both), fake=False)
    update = {"--perfgate-against": "main", "--perfgate-update": "True"}
    recorded = measured(Outcome.RECORDED)
    assert not refuse_report(report(recorded, policy=update), fake=False)


def test_a_sound_report_can_be():
    assert refuse_report(report(measured()), fake=False) == ""
    fake = replace(environment(), fake=True)
    own = measured(environment=fake)
    assert refuse_report(report(own), fake=False)
    assert refuse_report(report(own), fake=True) == ""


# -- by verdict, as an update


def test_the_first_session_has_what_the_report_says():
    none = measured(Outcome.NO_BASELINE, longest_warmup=9)
    quantiles = {"latency": (0.9, 1.0, 1.1), "other": (1.0,)}
    found = decide(none, sketches=quantiles)
    assert found.verdict.reason is Reason.FIRST_SESSION
    (session,) = found.baseline.sessions
    assert (session.time, session.commit, session.environment_digest) == (
        "2026-11-02T09:30:00Z",
        "abc",
        "digest",
    )
    assert session.runs == NEW
    assert found.baseline.plan == replace(PLAN, warmup=9)
    assert found.baseline.metrics == LATENCY
    assert found.baseline.sketch == {"latency": (0.9, 1.0, 1.1)}


@pytest.mark.parametrize(
    ("outcome", "reason", "expected", "sessions"),
    [
        (Outcome.UNCHANGED, None, Reason.SESSION_ADDED, 2),
        (Outcome.SKIPPED, Reason.NOT_GATED, Reason.SESSION_ADDED, 2),
        (Outcome.IMPROVED, None, Reason.REPLACED, 1),
        (Outcome.REGRESSED, None, Reason.REPLACED, 1),
        (Outcome.INCOMPARABLE, Reason.PLAN_DIFFERS, Reason.REPLACED, 1),
        (Outcome.RECORDED, Reason.SESSION_ADDED, Reason.SESSION_ADDED, 2),
        (Outcome.RECORDED, Reason.REPLACED, Reason.REPLACED, 1),
    ],
)
def test_by_verdict(outcome, reason, expected, sessions):
    found = decide(measured(outcome, reason, judgements=()), stored())
    assert found.verdict.outcome is Outcome.RECORDED
    assert found.verdict.reason is expected
    assert len(found.baseline.sessions) == sessions
    assert found.baseline.sessions[-1].runs == NEW


def test_what_was_recorded_there_is_recorded_here():
    first = measured(Outcome.RECORDED, Reason.FIRST_SESSION)
    assert decide(first).verdict.reason is Reason.FIRST_SESSION
    why = Verdict(
        outcome=Outcome.RECORDED, reason=Reason.REPLACED, detail="was improved"
    )
    found = decide(replace(first, verdict=why), stored())
    assert found.verdict == why
    again = decide(replace(first, verdict=replace(why, detail="")), stored())
    assert again.verdict.detail == "recorded anew"
    assert decide(measured(Outcome.RECORDED, Reason.SESSION_ADDED)).verdict.reason is (
        Reason.FIRST_SESSION
    )


def test_a_baseline_that_fresh_pairs_found_stale_is_replaced():
    stale = measured(runs=runs(1.3, 1.31, 1.29), base_confirmation=runs(1.3, 1.3))
    found = decide(stale, stored())
    assert found.verdict.reason is Reason.REPLACED
    assert found.verdict.detail == "the stored one is stale: the machine moved"
    assert len(found.baseline.sessions) == 1


def test_doubt_is_refused_unless_forced():
    doubt = measured(Outcome.INCONCLUSIVE)
    found = decide(doubt, stored())
    assert found.refused
    assert found.verdict.detail == "too-noisy; --force stores it all the same"
    assert decide(doubt, stored(), force=True).verdict.reason is Reason.SESSION_ADDED


# -- what is refused in any case


@pytest.mark.parametrize(
    ("one", "told"),
    [
        (measured(Outcome.ERROR), "there is nothing sound to store"),
        (measured(Outcome.INVALID), "there is nothing sound to store"),
        (measured(Outcome.MISSING, runs=()), "there is nothing sound to store"),
        (measured(Outcome.REGRESSED, Reason.OVER_LIMIT), "no baseline mends a broken"),
        (measured(Outcome.INCONCLUSIVE, Reason.DISTURBED), "not fit for a baseline"),
        (measured(Outcome.INCONCLUSIVE, Reason.NOT_STEADY), "not fit for a baseline"),
        (measured(plan=None), "nothing was measured"),
        (measured(Outcome.SKIPPED, Reason.NOT_GATED, runs=()), "nothing was measured"),
        (
            measured(judgements=(), metrics={}, runs=runs(1.0, 1.0, 1.0, metric="own")),
            "does not say what its metrics are",
        ),
    ],
)
def test_what_no_force_stores(one, told):
    for here in (None, stored()):
        found = decide(one, here, force=True)
        assert found.refused
        assert found.verdict.outcome is one.verdict.outcome
        assert told in found.verdict.detail


def test_the_machine_must_be_known():
    found = decide(measured(), environment=None)
    assert "on what machine" in found.verdict.detail
    own = measured(environment=environment("h9"))
    assert not decide(own, environment=None).refused


def test_too_few_runs_are_refused_with_the_rules_of_an_update():
    found = decide(measured(runs=NEW[:2]))
    assert (found.verdict.outcome, found.verdict.reason) == (
        Outcome.INVALID,
        Reason.TOO_FEW_RUNS,
    )
    again = decide(measured(Outcome.RECORDED, runs=NEW[:2]), stored(), force=True)
    assert again.verdict.reason is Reason.TOO_FEW_RUNS


# -- which runs


def test_disturbed_runs_that_were_made_again_are_left_out():
    bad = runs(3.0, disturbed=True)
    assert session_of(decide(measured(runs=NEW + bad))) == NEW
    # too many of them: the rules of an update refuse
    found = decide(measured(runs=NEW[:2] + bad + bad))
    assert found.verdict.reason is Reason.DISTURBED


def session_of(decision):
    return decision.baseline.sessions[-1].runs


def test_fresh_runs_count_unless_they_are_of_another_kind():
    fresh = runs(1.2, 1.21)
    slow = measured(Outcome.REGRESSED, confirmation=fresh)
    assert session_of(decide(slow)) == NEW + fresh
    with_base = replace(slow, base_confirmation=fresh)
    assert session_of(decide(with_base)) == NEW
    again = replace(slow, attempt=2, earlier_runs=3, runs=OLD + NEW)
    assert session_of(decide(again)) == NEW
    # nothing but earlier runs: they are what there is
    assert session_of(decide(replace(again, earlier_runs=6))) == OLD + NEW


def test_an_older_report_defines_its_metrics_by_its_judgements():
    own = Metric(name="own", unit="jobs")
    more = tuple(
        replace(run, statistics=run.statistics | {"own": {}, "latency<=2.0": {}})
        for run in NEW
    )
    judged = (judgement(), judgement(metric=own))
    found = decide(measured(metrics={}, runs=more, judgements=judged))
    assert found.baseline.metrics == LATENCY | {"own": own}


# -- which baseline


def test_the_same_runs_are_stored_once():
    first = decide(measured()).baseline
    here = Shelved(baseline=first, environment=environment())
    found = decide(measured(), here, force=True)
    assert found.refused
    assert found.verdict.detail == "these runs are stored already"


@pytest.mark.parametrize(
    ("one", "here", "told"),
    [
        (measured(Outcome.NO_BASELINE), stored(), "it knew none"),
        (measured(Outcome.RECORDED), stored(), "it knew none"),
        (measured(), stored(plan=replace(PLAN, iterations=50)), "iterations was 50"),
        (measured(), stored(where=environment("h2")), "key was h2, is h1"),
        (
            measured(),
            stored(sessions=(runs(2.0, 2.0, 2.0),)),
            "latency median was 1 there, is 2 here",
        ),
    ],
)
def test_a_report_about_another_baseline_wants_force(one, here, told):
    found = decide(one, here)
    assert found.refused
    assert "the report was not judged by the baseline stored here (" in (
        found.verdict.detail
    )
    assert told in found.verdict.detail
    assert "--force replaces" in found.verdict.detail
    assert not decide(one, here, force=True).refused


def test_what_cannot_tell_the_baselines_apart_does_not():
    here = stored(sessions=(runs(2.0, 2.0, 2.0),))
    nothing = replace(judgement(), comparison=None)
    base = judgement()
    difference = replace(base, comparison=replace(base.comparison, absolute=True))
    anchor = judgement(anchor=True)
    count = judgement(metric=Metric(name="ops", unit="1", exact=True))
    for one in (nothing, difference, anchor, count):
        assert not decide(measured(judgements=(base, one)), stored()).refused
        paired = measured(judgements=(one,), base_confirmation=NEW)
        assert not decide(paired, here).refused
    # a metric that the baseline lacks is no new baseline
    lacking = measured(Outcome.NO_BASELINE, judgements=(judgement(Outcome.UNCHANGED),))
    assert not decide(lacking, stored()).refused


# -- budgets, sketches


def test_budgets_are_those_it_was_judged_by():
    judged = measured(
        judgements=(
            judgement(anchor=True, budget=0.15),
            judgement(gated=False, budget=0.3),
            judgement(budget=0.07),
        )
    )
    assert budget_of(judged, LATENCY["latency"]) == ("median", Budget(value=0.07))
    new = measured(Outcome.NO_BASELINE)
    assert budget_of(new, LATENCY["latency"]) == ("median", Budget(value=0.05))
    assert budget_of(new, METRICS["throughput"]) is None


def test_a_sketch_has_extremes_and_twentieths():
    def one(*values):
        return Measurement(
            benchmark="b",
            nodeid="b",
            run=1,
            plan=PLAN,
            samples=(
                Samples(metric=METRICS["latency"], values=values),
                Samples(metric=METRICS["peak_memory"], values=(1.0,)),
            ),
        )

    found = dict(sketch([one(*map(float, range(1, 52))), one(0.5, 101.0)]))
    assert found.keys() == {"latency"}  # one value a run needs no sketch
    assert (found["latency"][0], found["latency"][-1]) == (0.5, 101.0)
    assert len(found["latency"]) == 21
    assert found["latency"][10] == 26.0
