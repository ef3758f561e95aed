"""Each option once, under one name in all four places."""

import re

import pytest

from pytest_perfgate.options import MARKER_KEYWORDS, MARKER_ONLY, OPTIONS, Option


def test_one_name_four_times():
    option = Option("max-time", "S", "3", "seconds", "Measuring", marker=True)
    assert option.flag == "--perfgate-max-time"
    assert option.dest == "perfgate_max_time"
    assert option.keyword == "max_time"
    assert OPTIONS[0].flag == "--perfgate"
    assert OPTIONS[0].dest == "perfgate"


def test_names_are_unique_and_tell_nothing_new():
    for names in (
        [o.flag for o in OPTIONS],
        [o.dest for o in OPTIONS],
        MARKER_KEYWORDS,
    ):
        assert len(names) == len(set(names))


@pytest.mark.parametrize("option", OPTIONS, ids=lambda option: option.flag)
def test_each_option_is_well_formed(option):
    assert re.fullmatch(r"--perfgate(-[a-z]+)*", option.flag)
    assert option.help
    assert not option.help.endswith(".")
    if option.choices:
        assert option.default in option.choices
    if option.metavar is None:  # a flag: nothing to write in an ini file or marker
        assert not any((option.ini, option.marker, option.default))


def test_the_marker_knows_options_that_make_sense_for_one_benchmark():
    assert {"budget", "limit", "iterations", "timeout", "warmup"} <= set(
        MARKER_KEYWORDS
    )
    assert {name for name, _ in MARKER_ONLY} <= set(MARKER_KEYWORDS)
    assert not {"runs", "baselines", "report", "device"} & set(MARKER_KEYWORDS)


def test_help_and_ini_list_them_all(pytester, monkeypatch):
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    text = " ".join(
        pytester.runpytest_inprocess("-p", "pytest_perfgate.plugin", "--help")
        .stdout.str()
        .split()
    )
    for option in OPTIONS:
        assert option.flag in text
        assert not option.ini or f" {option.dest} (" in text
        assert not option.default or f"(default: {option.default})" in text


def test_the_marker_is_registered(pytester, monkeypatch):
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    shown = pytester.runpytest_inprocess("-p", "pytest_perfgate.plugin", "--markers")
    shown.stdout.fnmatch_lines(
        [f"@pytest.mark.perfgate({', '.join(MARKER_KEYWORDS)})*"]
    )
