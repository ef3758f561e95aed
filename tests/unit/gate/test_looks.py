import pytest

from pytest_perfgate.gate.looks import Look, planned_looks


@pytest.mark.parametrize(
    ("minimum", "maximum", "looks"),
    [
        (3, 12, (3, 6, 12)),
        (5, 20, (5, 10, 20)),
        (3, 5, (3, 5)),
        (3, 6, (3, 6)),
        (3, 3, (3,)),
    ],
)
def test_looks_at_stored_data(minimum, maximum, looks):
    assert planned_looks(minimum, maximum) == looks


@pytest.mark.parametrize(
    ("minimum", "maximum", "looks"),
    [(3, 12, (5, 8, 12)), (6, 12, (6, 9, 12)), (3, 4, (5,)), (5, 6, (5, 6))],
)
def test_looks_at_pairs(minimum, maximum, looks):
    assert planned_looks(minimum, maximum, paired=True) == looks


def test_each_look_has_its_own_levels():
    looks = [Look(index=0, last=False), Look(index=1, last=False), Look(index=2)]
    assert [look.red for look in looks] == [0.01, 0.03, 0.06]
    assert [look.green for look in looks] == [0.020, 0.015, 0.015]


def test_a_plan_of_fewer_looks_spends_the_last_level_on_its_last():
    assert Look(index=0, last=True).red == 0.06
    assert Look(index=5, last=False).red == 0.03


def test_the_level_of_identity_pays_for_the_family_unless_fresh_base_runs_can_confirm():
    assert Look(comparisons=300).identity == pytest.approx(0.01 / 900)
    assert Look(comparisons=300, base_code=True).identity == 0.001
    assert Look(comparisons=300, paired=True).identity == 0.001


def test_three_runs_or_five_pairs():
    assert Look().fewest_runs == 3
    assert Look(paired=True).fewest_runs == 5


@pytest.mark.parametrize(
    "field", [{"index": -1}, {"comparisons": 0}, {"final_runs": 0}]
)
def test_an_impossible_look_is_refused(field):
    with pytest.raises(ValueError, match=f"Look.{next(iter(field))}="):
        Look(**field)
