"""Text is cut to columns, not to characters, and what tells ids apart stays."""

import pytest

from pytest_perfgate.reports.layout import (
    Line,
    Segment,
    clip,
    display_width,
    head,
    line,
    pad,
    shorten_id,
    tail,
    wrap,
)


def test_a_line_gives_its_pieces_with_their_styles():
    made = Line(segments=(Segment(text="a", styles=("red", "bold")), Segment(text="b")))
    assert list(made) == [("a", ("red", "bold")), ("b", ())]
    assert made.text == "ab"
    assert line("x", "green") == Line(segments=(Segment(text="x", styles=("green",)),))


@pytest.mark.parametrize(
    ("text", "width"),
    [
        ("", 0),
        ("abc", 3),
        ("矩阵", 4),
        ("é", 1),
        ("e\u0301", 1),
        ("a\u20dd", 1),
        ("µ×…", 3),
    ],
)
def test_columns(text, width):
    assert display_width(text) == width


def test_a_wide_character_is_not_cut_in_half():
    assert head("a矩阵", 4) == "a矩"
    assert tail("矩阵a", 4) == "阵a"
    assert head("ab", 5) == "ab"


@pytest.mark.parametrize(
    ("text", "width", "clipped"),
    [
        ("abc", 3, "abc"),
        ("abcd", 3, "ab…"),
        ("abcd", 1, "…"),
        ("abcd", 0, ""),
        ("矩阵", 3, "矩…"),
    ],
)
def test_clip(text, width, clipped):
    assert clip(text, width) == clipped


def test_pad():
    assert pad("矩", 4) == "矩  "
    assert pad("ab", 4, right=True) == "  ab"
    assert pad("abcde", 4) == "abcde"


def test_the_test_and_its_parameters_stay():
    name = "benches/models/llama/bench_llama.py::bench_prefill[seq=4096]"
    short = shorten_id(name, 40)
    assert short.endswith("::bench_prefill[seq=4096]")
    assert short.startswith("benches/")
    assert display_width(short) == 40


def test_parameters_stay_where_the_test_does_not_fit():
    name = "benches/bench_a.py::bench_with_quite_a_long_name_indeed[bf16-4096]"
    short = shorten_id(name, 24)
    assert short.endswith("[bf16-4096]")
    assert display_width(short) == 24


def test_both_ends_of_long_parameters_stay():
    name = "benches/bench_a.py::bench[" + "x" * 200 + "-last]"
    short = shorten_id(name, 40)
    assert short.startswith("benches/")
    assert short.endswith("-last]")
    assert display_width(short) == 40


@pytest.mark.parametrize("width", range(80))
@pytest.mark.parametrize(
    "name",
    [
        "benches/bench_a.py::bench[矩阵乘法-大きい行列]",
        "plain",
        "a::b[",
        "::",
        "[" * 90,
        "a[b]::c[d]",
    ],
)
def test_never_wider_than_asked(name, width):
    assert display_width(shorten_id(name, width)) <= width


def test_wrap_breaks_at_spaces_and_indents():
    assert list(wrap("one two three four five", 20, indent="  ")) == [
        "one two three four",
        "  five",
    ]


def test_wrap_keeps_a_command_whole():
    text = "record it with `pytest --perfgate --perfgate-update` (`a b`), then go"
    lines = list(wrap(text, 40))
    assert any("`pytest --perfgate --perfgate-update`" in one for one in lines)
    assert any("(`a b`)," in one for one in lines)
    assert " ".join(lines) == text


def test_wrap_cuts_a_word_longer_than_the_line():
    assert "".join(wrap("x" * 45, 20)) == "x" * 45
    assert all(display_width(one) <= 20 for one in wrap("矩" * 45, 20))


@pytest.mark.parametrize("width", [0, 20])
def test_wrap_of_nothing_is_one_empty_line(width):
    assert list(wrap("", width)) == [""]


def test_wrap_loses_a_lone_backtick_nowhere():
    assert list(wrap("a ` b", 30)) == ["a ` b"]
