"""The page on statistics shows what the code computes, in figures and pictures."""

import importlib.util
import re
from pathlib import Path

import pytest

from pytest_perfgate.gate.looks import Look, planned_looks
from pytest_perfgate.options import OPTIONS

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "statistics.md").read_text(encoding="utf-8")


def _script():
    path = ROOT / "scripts" / "draw_statistics.py"
    spec = importlib.util.spec_from_file_location("draw_statistics", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


DRAW = _script()


@pytest.mark.parametrize("name", DRAW.PICTURES)
def test_every_picture_is_up_to_date_and_shown(name):
    written = (ROOT / "docs" / "img" / name).read_text(encoding="utf-8")
    assert written == DRAW.PICTURES[name](), "run `make docs`"
    assert f"](img/{name})" in PAGE


def test_every_picture_says_in_words_what_it_shows():
    described = re.findall(r"!\[([^\]]+)\]\(img/", PAGE)
    assert len(described) == len(DRAW.PICTURES)
    assert min(map(len, described)) > 30


def test_the_table_of_what_can_be_seen_is_computed():
    rows = re.findall(r"^\| ([\d.]+) % \| (.+) \|$", PAGE, re.MULTILINE)
    assert [float(spread) / 100 for spread, _ in rows] == list(DRAW.SPREADS)
    for spread, cells in rows:
        seen = [DRAW.sees(float(spread) / 100, runs) for runs in (3, 6, 12, 24)]
        assert cells.split(" | ") == [
            f"{change:.1%}".replace("%", " %") for change in seen
        ]


def test_the_five_cases_come_out_as_they_are_drawn():
    found = [DRAW.judged(case) for case in DRAW.CASES]
    assert [one.outcome for one in found] == [
        "unchanged",
        "improved",
        "regressed",
        "inconclusive",
        "inconclusive",
    ]
    assert [one.reason for one in found][2:] == [
        "confirmed-without-base",
        "too-noisy",
        "suspect",
    ]


def test_looks_and_levels_are_those_of_the_code():
    assert planned_looks(3, 12) == (3, 6, 12)
    looks = [Look(index=index, last=index == 2) for index in range(3)]
    assert [look.red for look in looks] == [0.01, 0.03, 0.06]
    assert "levels 1, 3 and 6 %" in PAGE
    assert [look.green for look in looks] == [0.02, 0.015, 0.015]
    assert "levels 2, 1.5 and 1.5 %" in PAGE


def test_every_option_that_it_names_exists():
    known = {option.flag for option in OPTIONS}
    assert set(re.findall(r"--perfgate[a-z-]*", PAGE)) <= known


def test_every_page_that_it_links_to_exists():
    for link in re.findall(r"\]\(([^)#]+)", PAGE):
        assert (ROOT / "docs" / link).is_file(), link
