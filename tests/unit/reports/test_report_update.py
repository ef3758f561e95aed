"""An update shows old and new, and above all what it refused."""

import pytest

from pytest_perfgate.reports.layout import display_width
from pytest_perfgate.reports.update import Action, Update, render


def _update(benchmark, action, old=1e-3, new=1.1e-3, **rest):
    given = {"metric": "latency", "statistic": "median", "unit": "s"} | rest
    return Update(benchmark=benchmark, action=action, old=old, new=new, **given)


UPDATES = (
    _update("benches/bench_a.py::bench_new", Action.RECORDED, old=None),
    _update("benches/bench_a.py::bench_same[1]", Action.ADDED_SESSION),
    _update("benches/bench_a.py::bench_same[1]", Action.ADDED_SESSION, statistic="p99"),
    _update(
        "benches/bench_a.py::bench_faster",
        Action.REPLACED,
        new=4e-4,
        detail="improved: the old sessions were dropped",
    ),
    _update(
        "benches/bench_b.py::bench_noisy[" + "x" * 120 + "]",
        Action.REFUSED,
        detail="inconclusive: too-noisy; --perfgate-update-force records it all the same",
    ),
    Update(
        benchmark="benches/bench_b.py::bench_broken\n\x1b[31m",
        action=Action.REFUSED,
        detail="error:\nbody-raised",
    ),
    _update(
        "benches/bench_b.py::bench_counts",
        Action.REPLACED,
        metric="syncs",
        statistic="count",
        old=0.0,
        new=3.0,
        unit="1",
    ),
    _update("benches/bench_b.py::bench_gone_metric", Action.REPLACED, new=None),
    _update(
        "benches/bench_c.py::bench_quiet",
        Action.RECORDED,
        sees=0.0647,
        budget=0.05,
        runs=12,
    ),
    _update(
        "benches/bench_c.py::bench_coarse",
        Action.RECORDED,
        sees=0.183,
        budget=0.05,
        runs=12,
    ),
)


@pytest.mark.parametrize("width", [80, 140])
def test_golden(assert_golden, width):
    lines = render(UPDATES, width=width)
    text = "\n".join(one.text.rstrip() for one in lines) + "\n"
    assert_golden(f"report_update_{width}.txt", text)


@pytest.mark.parametrize("width", [10, 50, 80, 140])
def test_nothing_wider_than_the_terminal_and_nothing_that_does_not_print(width):
    for one in render(UPDATES, width=width):
        assert display_width(one.text) <= max(width, 50)
        assert one.text.isprintable()


def test_refused_comes_first_and_all_are_counted():
    lines = [one.text for one in render(UPDATES, width=100)]
    assert lines[0].startswith("✗ ")
    assert lines[0].endswith("refused")
    assert (
        lines[-1] == "baselines: 2 refused, 3 replaced, 3 recorded, 1 added a session"
    )


def test_old_new_and_change():
    (_, figures, _) = render([_update("b", Action.REPLACED)], width=80)
    assert figures.text.split() == [
        "latency·median",
        "1.00",
        "ms",
        "→",
        "1.10",
        "ms",
        "+10.0",
        "%",
    ]


def test_a_refusal_says_what_stays():
    (_, figures, _) = render([_update("b", Action.REFUSED, new=None)], width=80)
    assert figures.text.split() == ["latency·median", "1.00", "ms", "stays"]
    (_, figures, _) = render(
        [_update("b", Action.REFUSED, old=None, new=None)], width=80
    )
    assert figures.text.endswith("nothing is stored")


def test_zero_has_no_percentage():
    text = "\n".join(one.text for one in render(UPDATES, width=100))
    assert "syncs·count" in text
    assert "0 → 3  +3" in text
    assert "inf" not in text


def test_order_of_the_input_does_not_matter():
    assert render(UPDATES, width=80) == render(reversed(UPDATES), width=80)


def test_nothing_changed():
    (only,) = render([], width=80)
    assert only.text == "no baseline was changed"


def test_what_is_too_noisy_for_its_budget_is_warned_of_with_three_ways_out():
    text = " ".join(one.text for one in render(UPDATES, width=400))
    assert "sees slowdowns from 18.3 % on, budget 5 %" in text
    assert "sees slowdowns from 6.47 % on, budget 5 %" in text
    assert f"1 of {len(UPDATES)} would miss a slowdown of twice the budget" in text
    for way in ("--perfgate-runs 3:24", "in pairs", "--perfgate-budget"):
        assert way in text


def test_no_warning_where_all_is_well_or_nothing_is_known():
    quiet = (UPDATES[0], UPDATES[-2], _update("a", Action.RECORDED, sees=0.3))
    assert "twice" not in " ".join(one.text for one in render(quiet, width=400))


def test_why_is_told_to_its_end():
    why = "was incomparable: iterations was 250, is 162; warmup was 27; cache was hot"
    lines = render([_update("a.py::b", Action.REPLACED, detail=why)], width=50)
    told = " ".join(each.text.strip() for each in lines[1:-2])
    assert told == why
    assert all(display_width(each.text) <= 50 for each in lines)
