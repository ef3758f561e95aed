"""A report whose verdict its own judgements do not bear out is found, with the place."""

from dataclasses import replace

import pytest

from pytest_perfgate.gate.consistency import contradictions
from pytest_perfgate.model import Outcome, Reason
from tests.unit.gate.reports import REASONS, judgement, report, result

SOUND = [
    *(result(outcome=outcome) for outcome in Outcome),
    result(outcome=Outcome.REGRESSED, absorbed=True),
    result(outcome=Outcome.ERROR, absorbed=True),
    result(judgements=(judgement(), judgement(Outcome.IMPROVED))),
    # only shown: worth nothing
    result(judgements=(judgement(), judgement(Outcome.REGRESSED, gated=False))),
    # a flag that nothing could confirm any more
    result(
        outcome=Outcome.INCONCLUSIVE,
        reason=Reason.UNCONFIRMED,
        judgements=(judgement(Outcome.REGRESSED, Reason.FLAGGED),),
    ),
    # health overrules whatever the numbers say
    result(
        outcome=Outcome.INVALID,
        reason=Reason.BUSY,
        judgements=(judgement(Outcome.REGRESSED),),
    ),
    # a limit is no budget
    result(
        outcome=Outcome.REGRESSED,
        reason=Reason.OVER_LIMIT,
        judgements=(
            judgement(Outcome.REGRESSED, Reason.OVER_LIMIT, ratio=0.9, budget=None),
        ),
    ),
    result(judgements=(judgement(comparison=None),)),
]


@pytest.mark.parametrize("one", SOUND)
def test_what_the_gate_writes_is_sound(one):
    assert list(contradictions(report(one))) == []


def judged(outcome, *judgements, **changes):
    return result(outcome=outcome, judgements=judgements, **changes)


RED, FLAG = Outcome.REGRESSED, Reason.FLAGGED


@pytest.mark.parametrize(
    ("one", "told"),
    [
        (
            judged(Outcome.UNCHANGED, judgement(), judgement(RED)),
            "is unchanged, and judgements[1] (latency median) is regressed: confirmed",
        ),
        (judged(Outcome.IMPROVED, judgement(RED, FLAG)), "is regressed: flagged"),
        (
            judged(Outcome.UNCHANGED, judgement(Outcome.INCONCLUSIVE)),
            "is inconclusive: too-noisy",
        ),
        (judged(Outcome.INCONCLUSIVE, judgement(RED)), "verdict is inconclusive, and"),
        (judged(Outcome.SKIPPED, judgement(RED, FLAG)), "the verdict is skipped, and"),
        (judged(Outcome.NO_BASELINE, judgement(Outcome.ERROR)), "is no-baseline, and"),
        (judged(Outcome.INCOMPARABLE, judgement(RED)), "is incomparable, and"),
        (judged(Outcome.UNCHANGED), "is unchanged, and no statistic was judged"),
        (judged(RED, judgement()), "is regressed, and no statistic of it is"),
        (judged(RED), "is regressed, and no statistic of it is"),
        (result(runs=()), "the verdict is unchanged, and there is no run"),
        (result(outcome=Outcome.RECORDED, runs=()), "recorded, and there is no run"),
        (result(absorbed=True), "unchanged is said to be absorbed"),
        (
            judged(Outcome.UNCHANGED, judgement(ratio=1.06)),
            "judgements[0] (latency median) is unchanged, and its ratio is beyond its",
        ),
        (
            judged(RED, judgement(RED, ratio=1.04)),
            "is regressed, and its ratio is within its budget",
        ),
    ],
)
def test_a_contradiction_is_told_with_its_place(one, told):
    found = list(contradictions(report(result("fine"), one)))
    assert len(found) >= 1
    assert all(text.startswith("results[1] (b): ") for text in found)
    assert any(told in text for text in found)


def test_a_difference_is_not_held_against_a_fraction():
    one = judgement(ratio=3.0)
    absolute = replace(one, comparison=replace(one.comparison, absolute=True))
    assert not list(contradictions(report(judged(Outcome.UNCHANGED, absolute))))


def test_a_session_that_records_decides_about_storing_only():
    refused = judged(Outcome.INCONCLUSIVE, judgement(Outcome.ERROR))
    assert list(contradictions(report(refused)))
    for option in ("--perfgate-update", "--perfgate-update-force"):
        assert not list(contradictions(report(refused, policy={option: "True"})))


def test_a_policy_that_cannot_be():
    found = list(contradictions(report(policy={"--perfgate-on-missing": "maybe"})))
    assert found == [
        "policy.--perfgate-on-missing is 'maybe', and can be only fail or warn"
    ]


def test_every_outcome_has_a_sound_form():
    assert REASONS.keys() == set(Outcome)
