"""What a session's report says of a commit."""

import math
from dataclasses import replace

import pytest

from pytest_perfgate.cli import bisect_answers as answers
from pytest_perfgate.cli.bisection import Answer, Commit, Found, State, Step
from pytest_perfgate.measured import METRICS
from pytest_perfgate.model import (
    BenchmarkResult,
    Comparison,
    Judgement,
    Outcome,
    Reason,
    Report,
    Verdict,
)

BAD = (Outcome.REGRESSED, Reason.CONFIRMED)
GOOD = (Outcome.UNCHANGED, Reason.WITHIN_BUDGET)
NOISY = (Outcome.INCONCLUSIVE, Reason.TOO_NOISY)
FEW = (Outcome.INCONCLUSIVE, Reason.TOO_FEW_TAIL_SAMPLES)
RAISED = (Outcome.ERROR, Reason.BODY_RAISED)
NO_BASE = (Outcome.INVALID, Reason.BASE_NOT_MEASURED)
SKIPPED = (Outcome.SKIPPED, Reason.SKIPPED)


def judgement(kind, ratio=1.0, *, statistic="median", **changes):
    comparison = Comparison(
        baseline=1.0,
        candidate=ratio,
        ratio=ratio,
        low=ratio - 0.01,
        high=ratio + 0.01,
        p_identity=0.5,
        baseline_runs=3,
        candidate_runs=3,
        spread=0.01,
        detectable=0.05,
    )
    fields = {
        "metric": METRICS["latency"],
        "statistic": statistic,
        "verdict": Verdict(outcome=kind[0], reason=kind[1]),
        "comparison": comparison,
    }
    return Judgement(**fields | changes)


def result(name, kind, *judgements, **changes):
    return BenchmarkResult(
        benchmark=name,
        nodeid=name,
        verdict=Verdict(outcome=kind[0], reason=kind[1]),
        judgements=judgements,
        **changes,
    )


def report(*results):
    return Report(
        created="2026-11-02T09:30:00Z",
        commit=None,
        environment=None,
        results=results,
        exit_code=0,
        summary="",
    )


@pytest.fixture
def targets():
    """The median of `a` is slower at bad; `b` is as it was."""
    bad = report(
        result("a", BAD, judgement(BAD, 1.3), judgement(FEW, statistic="p99")),
        result("b", GOOD, judgement(GOOD)),
    )
    return answers.regressed(bad)


def test_what_is_looked_for_is_each_statistic_that_regressed(targets):
    assert [(one.benchmark, one.statistic) for one in targets] == [
        ("a", "latency·median")
    ]
    shown = judgement(BAD, 1.5, gated=False)
    assert answers.regressed(report(result("a", GOOD, shown))) == ()


@pytest.mark.parametrize(
    ("kind", "ratio", "state", "text"),
    [
        (BAD, 1.3, State.BAD, ""),
        (GOOD, 1.01, State.GOOD, ""),
        ((Outcome.IMPROVED, Reason.FASTER), 0.7, State.GOOD, ""),
        (NOISY, 1.1, State.SKIPPED, "a: inconclusive: too-noisy"),  # like neither
        (
            NOISY,
            1.005,
            State.GOOD,
            "a: inconclusive: too-noisy, but like GOOD, and not like BAD",
        ),
        (
            NOISY,
            1.29,
            State.BAD,
            "a: inconclusive: too-noisy, but like BAD, and not like GOOD",
        ),
    ],
)
def test_a_statistic_is_bad_good_or_skipped(targets, kind, ratio, state, text):
    # what else of the benchmark is in doubt does not matter
    tail = judgement(FEW, statistic="p99")
    found = answers.answer(
        report(result("a", FEW, judgement(kind, ratio), tail)), targets
    )
    assert (found.state, found.text) == (state, text)
    assert found.worst.ratio == ratio


@pytest.mark.parametrize(
    ("results", "text"),
    [
        ([], "a: not measured"),
        ([result("b", GOOD, judgement(GOOD))], "a: not measured"),
        (
            [result("a", RAISED, text="Traceback\nImportError: no x\n")],
            "a: error: body-raised: ImportError: no x",
        ),
        ([result("a", NO_BASE)], "a: invalid: base-not-measured"),
    ],
)
def test_what_was_not_judged_is_skipped_and_says_why(targets, results, text):
    assert answers.answer(report(*results), targets) == Answer(
        state=State.SKIPPED, text=text
    )


def test_one_of_several_is_enough_to_be_bad_and_all_are_needed_to_be_good():
    both = report(
        result("a", BAD, judgement(BAD, 1.3)), result("b", BAD, judgement(BAD, 1.2))
    )
    targets = answers.regressed(both)
    assert len(targets) == 2

    def state(one, other):
        kinds = {"a": one, "b": other}
        results = [result(n, k, judgement(k, 1.1)) for n, k in kinds.items()]
        return answers.answer(report(*results), targets).state

    assert state(BAD, NOISY) is State.BAD
    assert state(GOOD, BAD) is State.BAD
    assert state(GOOD, NOISY) is State.SKIPPED
    assert state(GOOD, GOOD) is State.GOOD


def test_an_interval_that_holds_both_or_a_difference_tells_nothing(targets):
    wide = Comparison(
        baseline=1.0,
        candidate=1.1,
        ratio=1.1,
        low=0.9,
        high=1.4,
        p_identity=0.5,
        baseline_runs=3,
        candidate_runs=3,
        spread=0.1,
        detectable=0.5,
    )
    for comparison in (wide, replace(wide, low=0.9, high=1.0, absolute=True)):
        noisy = judgement(NOISY, comparison=comparison)
        found = answers.answer(report(result("a", NOISY, noisy)), targets)
        assert found.state is State.SKIPPED


def test_a_judgement_without_numbers_is_told_as_that(targets):
    missing = judgement(NOISY, comparison=None)
    found = answers.answer(report(result("a", NOISY, missing)), targets)
    assert math.isnan(found.worst.ratio)
    assert answers.in_percent(found.worst) == "no numbers"
    step = Step(commit=Commit(sha="c", parents=()), answer=found)
    assert answers.step_tree(step)["effects"][0]["ratio"] is None


@pytest.mark.parametrize(
    ("kinds", "code"),
    [
        ([GOOD], 1),
        ([GOOD, SKIPPED], 1),
        ([GOOD, NOISY], 13),
        ([GOOD, NO_BASE], 12),
        ([RAISED], 12),
        ([SKIPPED], 12),
        ([], 12),
    ],
)
def test_nothing_regressed_is_not_always_nothing_to_find(kinds, code):
    results = [result(f"b{at}", kind) for at, kind in enumerate(kinds)]
    assert answers.not_regressed(report(*results))[0] == code


def test_the_numbers_are_told():
    lines = list(
        answers.numbers(
            report(
                result("a", GOOD, judgement(GOOD, 1.02)),
                result("b", RAISED, text="it\nfell"),
            )
        )
    )
    assert lines == [
        "b: error: body-raised: it fell",
        "a: +2.0 % [+1.0…+3.0]: unchanged: within-budget",
    ]


# -- the end


def commit(sha, *parents):
    return Commit(
        sha=sha, parents=parents, author="Ann <a@x>", date="2026", subject=f"Do {sha}"
    )


def conclude(suspects, steps, targets):
    found = Found(
        suspects=tuple(suspects),
        steps=tuple(Step(commit=c, answer=a) for c, a in steps),
    )
    return answers.conclusion(found, targets)


def test_the_culprit_is_named_with_its_effect_and_its_parents(targets):
    bad = answers.answer(report(result("a", BAD, judgement(BAD, 1.3))), targets)
    good = answers.answer(report(result("a", GOOD, judgement(GOOD, 1.01))), targets)
    culprit = commit("c2", "c1")
    steps = [(culprit, bad), (commit("c1", "c0"), good)]
    assert conclude([culprit], steps, targets) == (
        0,
        (
            "first bad commit: c2 Do c2 (Ann <a@x>, 2026)",
            "  a: latency·median +30.0 % [+29.0…+31.0] against GOOD: regressed: confirmed",
            "  its parent: +1.0 % [+0.0…+2.0]",
        ),
    )


def test_what_another_commit_slowed_is_said():
    both = report(
        result("a", BAD, judgement(BAD, 1.3)), result("b", BAD, judgement(BAD, 1.2))
    )
    targets = answers.regressed(both)
    only_a = report(
        result("a", BAD, judgement(BAD, 1.3)), result("b", GOOD, judgement(GOOD))
    )
    culprit = commit("c2", "c1")
    _, lines = conclude(
        [culprit], [(culprit, answers.answer(only_a, targets))], targets
    )
    assert lines[-1] == (
        "another commit slowed b: bisect again with GOOD=c2 and those alone"
    )


def test_several_suspects_are_listed_with_what_is_known(targets):
    told = [
        (commit("c3", "c2"), Answer(state=State.BAD)),
        (commit("c2", "c1"), Answer(state=State.SKIPPED, text="?")),
    ]
    code, lines = conclude([one for one, _ in told], told, targets)
    assert code == 13
    assert lines == (
        "the first bad commit is one of these 2; 1 commit could not be told:",
        "  c3 Do c3 (Ann <a@x>, 2026) (bad)",
        "  c2 Do c2 (Ann <a@x>, 2026) (skipped)",
    )
