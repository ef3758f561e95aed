"""Reports of several machines become one verdict, which no report can make greener."""

from collections import Counter
from dataclasses import replace

import pytest

from pytest_perfgate.errors import UsageError
from pytest_perfgate.gate import merging
from pytest_perfgate.gate.judging_again import judge_again
from pytest_perfgate.gate.merging import Broken, merge
from pytest_perfgate.model import BaseCode, Outcome, Reason, Shift
from tests.unit.gate.reports import (
    environment,
    judgement,
    part,
    renamed,
    result,
)

GREEN = part(result("a"))
SLOW = result("a", Outcome.REGRESSED)
BAD = Broken(source="bad.json", problem="bad.json is cut off", exit_code=1)


def judged(*parts, fail_on="policy", broken=()):
    return judge_again(merge(parts, broken), fail_on=fail_on)


def code(*results, **changes):
    return judged(part(*results, **changes)).exit_code


# -- one report


def test_a_sound_report_stays_as_it_is_but_for_what_is_said_again():
    found = judged(GREEN)
    summary = "1 benchmark: 1 unchanged"
    assert found.report == replace(GREEN.report, summary=summary)
    assert (found.exit_code, found.codes) == (0, ())


@pytest.mark.parametrize(
    ("outcome", "expected"),
    [
        (Outcome.REGRESSED, 1),
        (Outcome.ERROR, 1),
        (Outcome.INVALID, 12),
        (Outcome.INCOMPARABLE, 11),
        (Outcome.MISSING, 14),
        (Outcome.NO_BASELINE, 10),
        (Outcome.INCONCLUSIVE, 0),
        (Outcome.IMPROVED, 0),
        (Outcome.SKIPPED, 5),
    ],
)
def test_the_exit_code_comes_from_the_results(outcome, expected):
    found = judged(part(result(outcome=outcome), exit_code=0))
    assert found.exit_code == found.report.exit_code == expected
    told = [note for note in found.report.notes if "has exit code 0, and" in note]
    assert bool(told) == bool(expected)


def test_all_codes_are_kept_the_winner_first():
    outcomes = (Outcome.MISSING, Outcome.INVALID, Outcome.NO_BASELINE)
    found = judged(
        part(*(result(f"{i}", one) for i, one in enumerate(outcomes)), exit_code=12)
    )
    assert found.codes == (12, 14, 10)


def test_the_policy_of_the_report_holds():
    none, doubt = result(outcome=Outcome.NO_BASELINE), result("d", Outcome.INCONCLUSIVE)
    assert code(none, policy={"--perfgate-on-missing": "warn"}) == 5
    assert code(doubt, policy={"--perfgate-on-inconclusive": "fail"}) == 13
    assert code(doubt, policy={"--perfgate-update": "True"}) == 13


def test_an_absorbed_regression_does_not_fail():
    assert code(replace(SLOW, absorbed=True)) == 0
    failed = result(outcome=Outcome.ERROR, absorbed=True)
    assert code(failed) == 0  # its body ran: that is something


def test_what_says_nothing_is_never_green():
    found = judged(part())
    assert found.exit_code == 5
    assert found.report.summary.startswith("nothing was measured")
    assert "in one/report.json there is no benchmark" in found.report.notes[0]
    found = judged(part(result(outcome=Outcome.SKIPPED)))
    assert "in one/report.json nothing was measured" in found.report.notes[0]


def test_an_interrupted_report():
    found = judged(part(result(), interrupted=True, exit_code=2))
    assert (found.exit_code, found.report.notes) == (2, ())
    assert found.report.summary == "interrupted; so far 1 benchmark: 1 unchanged"
    assert judged(part(SLOW, interrupted=True, exit_code=2)).codes == (1, 2)


def test_what_failed_besides_the_benchmarks_counts():
    for stored, expected in ((0, 1), (1, 1), (3, 3), (77, 1)):
        found = judged(part(result(), exit_code=stored, problem="the disk is full"))
        assert found.exit_code == expected
        assert found.report.problem == "the disk is full"
        assert found.report.summary.endswith("and something else failed")


@pytest.mark.parametrize(("stored", "expected"), [(3, 3), (1, 1), (14, 14), (77, 1)])
def test_an_exit_code_that_no_result_explains_is_not_forgotten(stored, expected):
    found = judged(part(result(), exit_code=stored))
    assert found.exit_code == expected
    assert f"has exit code {stored}, which no result" in found.report.notes[0]


def test_a_report_that_contradicts_itself_cannot_be_used():
    lie = result("a", judgements=(judgement(Outcome.REGRESSED),))
    found = judged(part(lie), renamed(GREEN, "two/report.json"))
    assert found.exit_code == 1
    assert "one/report.json contradicts itself: results[0] (a)" in found.report.problem
    assert len(found.report.results) == 1
    assert found.report.summary.endswith("; 1 of 2 reports cannot be used")


def test_without_any_report():
    found = judged()
    assert (found.exit_code, found.codes) == (5, (5,))
    assert found.report.summary.startswith("no report was found")
    found = judged(broken=[BAD])
    assert found.exit_code == 1
    assert found.report.summary == "none of 1 reports can be used: nothing was judged"


# -- several


def two(*results, source="two/report.json", **changes):
    return part(*results, source=source, **changes)


def test_results_of_two_machines_stand_side_by_side():
    found = judged(GREEN, two(SLOW, environment=environment("h2"), exit_code=1))
    assert found.exit_code == 1
    assert found.report.environment is None
    keys = [(one.environment.key, one.verdict.outcome) for one in found.report.results]
    assert keys == [("h1", Outcome.UNCHANGED), ("h2", Outcome.REGRESSED)]


def test_a_merged_report_can_be_merged_again():
    elsewhere = two(result("a"), environment=environment("h2"))
    once = merge([GREEN, elsewhere]).report
    third = two(result("z"), source="z", environment=environment("h3"))
    again = merge([renamed(GREEN, "m"), third]).report
    assert len(again.results) == 2
    twice = merge([renamed(GREEN, "m", **fields(once)), third]).report
    keys = [one.environment.key for one in twice.results]
    assert keys == ["h1", "h2", "h3"]


def fields(report):
    return {"results": report.results, "environment": report.environment}


def test_one_environment_is_the_reports_own():
    report = judged(GREEN, two(result("b"))).report
    assert report.environment == environment()
    assert [one.environment for one in report.results] == [None, None]


def test_other_software_is_another_environment():
    report = judged(GREEN, two(result("b"), environment=environment(torch="2"))).report
    assert report.environment is None
    assert report.results[1].environment.software == {"torch": "2"}


def test_what_nothing_was_measured_for_has_no_environment():
    gone = two(result("b", Outcome.MISSING), environment=None, exit_code=14)
    for parts in ([GREEN, gone], [gone, GREEN]):
        report = judged(*parts).report
        assert [one.environment for one in report.results if one.benchmark == "b"] == [
            None
        ]
        assert report.environment is None


def test_of_the_same_benchmark_on_the_same_machine_the_worse_counts():
    for parts in ([GREEN, two(SLOW, exit_code=1)], [two(SLOW, exit_code=1), GREEN]):
        found = judged(*parts)
        (one,) = found.report.results
        assert (found.exit_code, one.verdict) == (1, SLOW.verdict)
        assert one.remarks == (
            "in one/report.json as well: unchanged, within-budget; the worse counts",
        )


def test_worse_is_what_asks_for_more():
    absorbed = replace(SLOW, absorbed=True)
    doubt = result("a", Outcome.INCONCLUSIVE)
    strict = {"--perfgate-on-inconclusive": "fail"}
    found = judged(part(absorbed), two(doubt, policy=strict, exit_code=13))
    assert found.exit_code == 13
    assert found.report.results[0].verdict == doubt.verdict
    found = judged(part(absorbed), two(result("a")))
    assert found.report.results[0].verdict.outcome is Outcome.UNCHANGED


def test_of_two_policies_the_stricter_holds_for_all():
    lax = {"--perfgate-on-missing": "warn", "--perfgate-budget": "5%"}
    none = result("n", Outcome.NO_BASELINE)
    found = judged(
        part(result("a"), none, policy=lax), two(result("c"), policy={"--x": "1"})
    )
    assert found.exit_code == 10
    assert found.report.policy == {
        "--perfgate-on-missing": "fail",
        "--perfgate-budget": "5%",
        "--x": "1",
    }
    assert any("stricter, fail, holds for all" in one for one in found.report.notes)


def test_equal_policies_stay_and_unequal_values_are_all_told():
    parts = [
        part(result("a"), policy={"--perfgate-on-missing": "warn", "--b": "1"}),
        two(result("c"), policy={"--perfgate-on-missing": "warn", "--b": "2"}),
    ]
    assert judged(*parts).report.policy == {
        "--perfgate-on-missing": "warn",
        "--b": "1 | 2",
    }


def test_a_leg_that_measured_nothing_is_seen_beside_one_that_did():
    found = judged(GREEN, two())
    assert found.exit_code == 5
    assert "in two/report.json there is no benchmark" in found.report.notes[-2]


def test_facts_are_added_up():
    first = part(
        result("a"),
        cost={"runs": 3.0, "seconds": 1.0},
        notes=("a note",),
        shift=Shift(ratio=1.06, benchmarks=20, share=0.9),
        problem="p",
        exit_code=1,
        commit="abc+dirty",
    )
    second = two(result("b"), cost={"runs": 4.0}, created="2026-11-03", problem="p")
    report = judged(first, second).report
    assert report.cost == {"runs": 7.0, "seconds": 1.0}
    assert (report.created, report.commit) == ("2026-11-03", "abc+dirty")
    assert (report.shift, report.problem) == (None, "p")
    assert "one/report.json: a note" in report.notes
    moved = "one/report.json: the machine as a whole moved by +6.0 %: the median of 20"
    assert any(note.startswith(moved) for note in report.notes)


def test_an_attempt_that_is_left_out_leaves_one_report_whole():
    shift = Shift(ratio=1.06, benchmarks=20, share=0.9)
    last = part(result("a"), source="perfgate-x-2/r.json", shift=shift, notes=("n",))
    report = judged(renamed(GREEN, "perfgate-x-1/r.json"), last).report
    assert report.shift == shift
    assert report.notes[0].startswith("perfgate-x-1/r.json (attempt 1 of x) is left")
    assert report.notes[1:] == ("n",)
    assert report.results == last.report.results


def test_base_code_is_kept_where_it_is_one():
    base, other = (BaseCode(ref="main", commit=commit) for commit in ("c1", "c2"))
    same = [part(result("a"), base=base), two(result("b"), base=base)]
    assert judged(*same).report.base == base
    for another, told in ((other, "c2 (two"), (None, "nothing (two")):
        report = judged(same[0], two(result("b"), base=another)).report
        assert report.base is None
        assert any("c1 (one/report.json), " + told in one for one in report.notes)


def test_reports_of_two_commits_are_refused():
    with pytest.raises(UsageError, match=r"different commits: abc \(one.*def \(two"):
        merge([GREEN, two(result("b"), commit="def")])
    assert merge([GREEN, two(result("b"), commit=None)]).report.commit == "abc"


# -- the family


def confirmed(name, p, reason=Reason.CONFIRMED):
    one = judgement(Outcome.REGRESSED, reason, p=p)
    return result(name, Outcome.REGRESSED, reason, judgements=(one,))


def test_what_the_union_cannot_bear_out_stays_red_and_is_told():
    many = [result(f"n{i}") for i in range(400)]
    doubtful, sure = confirmed("x", 0.007), confirmed("y", 1e-5)
    alone = confirmed("z", 0.007, Reason.CONFIRMED_WITHOUT_BASE)
    found = judged(
        part(doubtful, sure, alone, exit_code=1), two(*many), two(source="3")
    )
    by_name = {one.benchmark: one for one in found.report.results}
    assert found.exit_code == 1
    assert "would have to be below 0.0062" in by_name["x"].remarks[0]
    assert by_name["y"].remarks == by_name["z"].remarks == ()
    (note,) = [one for one in found.report.notes if "comparisons" in one]
    assert note.startswith(
        "403 comparisons in 2 reports, each judged in its own family"
    )


def test_q_values_are_of_the_union_and_of_one_report_its_own():
    report = judged(GREEN, two(confirmed("s", 1e-4))).report
    found = [one.judgements[0].comparison.q_value for one in report.results]
    assert found == [0.5, 2e-4]
    assert judged(GREEN).report.results[0].judgements[0].comparison.q_value is None


# -- what to fail on


@pytest.mark.parametrize(
    ("parts", "policy", "regressed", "never"),
    [
        ([GREEN], 0, 0, 0),
        ([part(SLOW, exit_code=1)], 1, 1, 0),
        ([part(result(outcome=Outcome.MISSING), exit_code=14)], 14, 0, 0),
        ([part()], 5, 5, 0),
        ([part(result(), interrupted=True, exit_code=2)], 2, 2, 0),
        ([part(result(), problem="p", exit_code=3)], 3, 3, 3),
    ],
)
def test_fail_on(parts, policy, regressed, never):
    expected = {"policy": policy, "regressed": regressed, "never": never}
    for fail_on, wanted in expected.items():
        found = judged(*parts, fail_on=fail_on)
        assert (found.exit_code, found.report.exit_code) == (wanted, policy)
        assert judged(*parts, fail_on=fail_on, broken=[BAD]).exit_code in {1, 3}


def test_another_fail_on_is_refused():
    with pytest.raises(UsageError, match="'maybe' is not one of policy, regressed"):
        judged(GREEN, fail_on="maybe")


def test_the_family_of_a_union_is_counted_once_however_long_it_is(monkeypatch):
    counted = Counter()
    real = merging.tests_of

    def tests_of(one):
        counted[one.benchmark] += 1
        return real(one)

    monkeypatch.setattr(merging, "tests_of", tests_of)
    names = [f"b{index}" for index in range(40)]
    merge([part(*map(result, names)), part(result("z"), source="z.json")])
    assert max(counted.values()) <= 3
