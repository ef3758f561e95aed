"""Slow creep is told by the pinned first session, with proof, and by nothing less."""

from dataclasses import replace

import pytest

from pytest_perfgate.errors import UsageError
from pytest_perfgate.gate.confirm import FreshPairs
from pytest_perfgate.gate.looks import Look
from pytest_perfgate.gate.policy import resolve_policy
from pytest_perfgate.gate.update import Recording, update_baseline
from pytest_perfgate.model import Outcome, Reason, Session

MEDIAN = "latency__median"


def since(make, start, now, *, key=MEDIAN, sd=0.004, metrics=None):
    """A baseline whose latest sessions are at `now`, and its anchor at `start`."""
    anchor = make.noisy(key, 10, center=start, sd=sd)
    latest = make.noisy(key, 10, center=now, sd=sd, seed=1)
    baseline = make.baseline(latest, latest, metrics=metrics)
    session = Session(
        time="2024-01-02T03:04:05Z",
        commit="0123abc",
        environment_digest="",
        runs=anchor,
    )
    return replace(baseline, anchor=session)


def anchored(judged):
    return [one for one in judged.judgements if one.anchor]


def test_creep_past_the_anchor_is_flagged_though_the_last_step_was_small(make):
    judged = make.judge(since(make, 1.0, 1.26), make.noisy(MEDIAN, 3, center=1.28))
    assert judged.flagged
    assert judged.decided
    assert judged.verdict.outcome is Outcome.REGRESSED
    assert judged.verdict.reason is Reason.FLAGGED
    assert judged.verdict.detail == (
        "against the anchor session of 2024-01-02 of commit 0123abc"
    )
    (told,) = anchored(judged)
    assert told.gated
    assert told.budget == pytest.approx(0.15)
    assert told.bound == "15 %"
    assert told.comparison.ratio == pytest.approx(1.28, abs=0.01)
    main = judged.judgements[0]
    assert (main.outcome, main.anchor) == (Outcome.UNCHANGED, False)


def test_fresh_runs_confirm_it_by_its_own_reason(make):
    judged = make.judge(
        since(make, 1.0, 1.26),
        make.noisy(MEDIAN, 3, center=1.28),
        confirmation=make.noisy(MEDIAN, 5, center=1.28, sd=0.004),
    )
    assert not judged.flagged
    assert judged.verdict.outcome is Outcome.REGRESSED
    assert judged.verdict.reason is Reason.CREPT
    assert "2024-01-02" in judged.verdict.detail


def test_fresh_pairs_confirm_it_by_their_candidate_half(make):
    fresh = FreshPairs(
        baseline=make.noisy(MEDIAN, 5, center=1.26, sd=0.004),
        candidate=make.noisy(MEDIAN, 5, center=1.28, sd=0.004),
    )
    judged = make.judge(
        since(make, 1.0, 1.26), make.noisy(MEDIAN, 3, center=1.28), confirmation=fresh
    )
    assert judged.verdict.reason is Reason.CREPT


def test_fresh_runs_that_do_not_bear_it_out_leave_doubt(make):
    judged = make.judge(
        since(make, 1.0, 1.26),
        make.noisy(MEDIAN, 3, center=1.28),
        confirmation=make.noisy(MEDIAN, 5, center=1.10, sd=0.004),
    )
    assert judged.verdict.outcome is Outcome.INCONCLUSIVE
    assert judged.verdict.reason is Reason.UNCONFIRMED
    assert "anchor" in judged.verdict.detail


def test_within_its_budget_it_is_only_shown(make):
    judged = make.judge(since(make, 1.0, 1.05), make.noisy(MEDIAN, 3, center=1.05))
    assert judged.verdict.outcome is Outcome.UNCHANGED
    (told,) = anchored(judged)
    assert not told.gated
    assert told.reason is Reason.NOT_GATED


def test_doubt_about_the_anchor_changes_no_outcome(make):
    # 16 % with a spread of 3 %: beyond 15 %, and not proven
    baseline = since(make, 1.0, 1.16, sd=0.03)
    judged = make.judge(baseline, make.noisy(MEDIAN, 12, center=1.16, sd=0.001))
    assert judged.verdict.outcome is Outcome.UNCHANGED
    assert not judged.flagged


def test_an_estimate_beyond_the_budget_is_followed_to_the_last_look(make):
    baseline = since(make, 1.0, 1.16, sd=0.01)
    now = make.noisy(MEDIAN, 3, center=1.16, sd=0.01)
    assert not make.judge(baseline, now, look=Look(index=0, last=False)).decided
    assert make.judge(baseline, now, look=Look(index=2, last=True)).decided
    near = since(make, 1.0, 1.10, sd=0.01)
    now = make.noisy(MEDIAN, 3, center=1.10, sd=0.01)
    assert make.judge(near, now, look=Look(index=0, last=False)).decided


def test_the_only_session_is_its_own_anchor_and_says_nothing_twice(make):
    runs = make.noisy(MEDIAN, 10, center=1.0)
    judged = make.judge(make.baseline(runs), make.noisy(MEDIAN, 3, center=1.0))
    assert anchored(judged) == []


def test_no_baseline_has_no_anchor(make):
    judged = make.judge(None, make.noisy(MEDIAN, 3), limits=["median<=9s"])
    assert anchored(judged) == []


def test_an_anchor_older_than_the_metric_is_silent(make):
    baseline = since(make, 1.0, 1.26)
    old = replace(baseline.anchor, runs=make.noisy("cpu_time__median", 10))
    judged = make.judge(
        replace(baseline, anchor=old), make.noisy(MEDIAN, 3, center=1.28)
    )
    assert anchored(judged) == []
    assert judged.verdict.outcome is Outcome.UNCHANGED


def test_a_metric_that_cannot_be_compared_is_told_once(make):
    judged = make.judge(since(make, 1.0, 1.26), (make.run(cpu_time__median=1.0),) * 3)
    assert anchored(judged) == []
    assert judged.verdict.reason is Reason.METRIC_ABSENT


def test_a_count_that_crept_needs_no_confirming(make):
    key = "kernel_launches__max"
    baseline = since(make, 100.0, 107.0, key=key, sd=0.0)
    anchor = replace(baseline.anchor, runs=make.runs(key, [100.0] * 3))
    sessions = tuple(
        replace(session, runs=make.runs(key, [107.0] * 3))
        for session in baseline.sessions
    )
    baseline = replace(baseline, anchor=anchor, sessions=sessions)
    judged = make.judge(
        baseline,
        make.runs(key, [108.0] * 3),
        specs=["kernel_launches=+2"],
        look=Look(index=0, last=False),
    )
    assert judged.decided
    assert not judged.flagged
    assert judged.verdict.reason is Reason.CREPT
    (told,) = anchored(judged)
    assert told.bound == "+6"


def test_a_session_without_a_commit_is_named_by_its_day(make):
    baseline = since(make, 1.0, 1.26)
    nameless = replace(baseline, anchor=replace(baseline.anchor, commit=None))
    judged = make.judge(nameless, make.noisy(MEDIAN, 3, center=1.28))
    assert judged.verdict.detail == "against the anchor session of 2024-01-02"


# the budget of the anchor


def budgets(make, metric="latency", **policy):
    gates = resolve_policy("b.py::bench", **policy).anchor_gates(make.metric(metric))
    return {gate.statistic: gate.budget.text() for gate in gates}


def test_it_is_three_times_the_usual_of_the_main_statistic(make):
    assert budgets(make) == {"median": "15 %"}
    assert budgets(make, "peak_memory") == {"max": "15 %"}
    assert budgets(make, specs=["2%"]) == {"median": "6 %"}
    assert budgets(make, gate=False) == {}


def test_a_statistic_that_a_budget_names_is_held_against_it_too(make):
    assert budgets(make, specs=["p99=8%"]) == {"median": "15 %", "p99": "24 %"}


def test_it_can_be_said_by_option_and_by_marker(make):
    specs = {"anchor_specs": ["20%", "other*:50%", "peak_memory=9%"]}
    assert budgets(make, **specs) == {"median": "20 %", "p99": "40 %"}
    assert budgets(make, "peak_memory", **specs) == {"max": "9 %"}
    both = specs | {"marker_anchor_budget": {"median": "12%"}}
    assert budgets(make, **both) == {"median": "12 %", "p99": "40 %"}


@pytest.mark.parametrize(
    ("policy", "where"),
    [
        ({"anchor_specs": ["much"]}, "--perfgate-anchor-budget"),
        ({"anchor_specs": ["0%"]}, "--perfgate-anchor-budget='0%'"),
        ({"marker_anchor_budget": "much"}, "@pytest.mark.perfgate anchor_budget"),
    ],
)
def test_a_wrong_one_is_refused_by_name(policy, where):
    with pytest.raises(UsageError) as error:
        resolve_policy("b", **policy)
    assert where in str(error.value)


def test_a_marker_that_names_what_is_not_measured_is_an_error(make):
    runs = make.noisy(MEDIAN, 5)
    policy = resolve_policy("b", marker_anchor_budget={"latencies": "9%"})
    judged = make.judge(make.baseline(runs), runs, policy=policy)
    assert judged.verdict.reason is Reason.METRIC_ABSENT


# many small steps


def merges(make, step, count, *, force=False, **budgets):
    """Judge one merge after another and accept each; yields outcomes and details."""
    policy = resolve_policy("b.py::bench", **budgets)
    stored = None
    for number in range(count):
        runs = make.noisy(MEDIAN, 10, center=step**number, sd=0.001, seed=number)
        verdict = None
        if stored is not None:
            judged = make.judge(stored, runs, policy=policy)
            verdict = judged.verdict
            yield verdict.outcome, verdict.detail
        recording = Recording(
            plan=make.baseline(runs).plan,
            metrics={"latency": make.metric("latency")},
            session=Session(
                time=f"2024-01-01T00:{number:02}:00Z",
                commit=None,
                environment_digest="",
                runs=runs,
            ),
        )
        decision = update_baseline(stored, recording, verdict=verdict, force=force)
        stored = decision.baseline or stored


def test_twelve_merges_of_two_percent_are_accepted_and_the_thirteenth_is_told(make):
    # a budget wide enough that the latest sessions alone would never object
    told = list(merges(make, 1.02, 14, specs=["30%"], anchor_specs=["27%"]))
    assert [outcome for outcome, _ in told[:12]] == [Outcome.UNCHANGED] * 12
    assert told[12] == (
        Outcome.REGRESSED,
        "against the anchor session of 2024-01-01",
    )


def test_forcing_doubtful_steps_in_does_not_move_the_anchor(make):
    told = [outcome for outcome, _ in merges(make, 1.02, 12, force=True)]
    red = told.index(Outcome.REGRESSED)
    assert Outcome.INCONCLUSIVE in told[:red]
    assert 1.15 < 1.02 ** (red + 1) < 1.2


def test_what_crept_is_named_where_an_update_accepts_it(make):
    baseline = since(make, 1.0, 1.26)
    runs = make.noisy(MEDIAN, 10, center=1.28)
    recording = Recording(
        plan=baseline.plan, metrics=baseline.metrics, session=baseline.anchor
    )
    verdict = make.judge(baseline, runs).verdict
    decision = update_baseline(baseline, recording, verdict=verdict)
    assert decision.verdict.reason is Reason.REPLACED
    assert decision.verdict.detail == (
        "was regressed, against the anchor session of 2024-01-02 of commit 0123abc"
    )


@pytest.mark.parametrize(("step", "merged"), [(1.04, 10), (1.02, 12), (1.003, 60)])
def test_with_the_usual_budgets_no_creep_goes_far_untold(make, step, merged):
    told = [outcome for outcome, _ in merges(make, step, merged)]
    accepted = next(
        count for count, one in enumerate(told) if one is not Outcome.UNCHANGED
    )
    assert step ** (accepted + 1) < 1.2
