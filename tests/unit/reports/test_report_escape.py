"""Names and texts cannot leave the place they are written to."""

import re

import pytest

from pytest_perfgate.reports.escape import markdown, markdown_code, one_line, visible


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain[4096]", "plain[4096]"),
        ("a\nb\r\tc", r"a\nb\r\tc"),
        ("\x1b[31mred\x07", r"\x1b[31mred\x07"),
        ("\u202etxt.exe\u2066\u200b", r"\u202etxt.exe\u2066\u200b"),
        ("\u2028\u2029\x85", r"\u2028\u2029\x85"),
        ("\udc80", r"\udc80"),
        ("wide\u3000space\u00a0", "wide space "),
        ("矩阵 é ß", "矩阵 é ß"),
        ("\U000e0001", r"\U000e0001"),
    ],
)
def test_what_does_not_print_is_written_out(text, shown):
    assert visible(text) == shown


def test_one_line_folds_white_space():
    assert one_line("  a\n\n  b\tc \x00") == r"a b c \x00"


@pytest.mark.parametrize("character", "&<>|`*[]~\\$@#")
def test_markup_becomes_entities(character):
    for escaped in (markdown(f"a{character}b"), markdown_code(f"a{character}b")):
        inside = escaped.removeprefix("<code>").removesuffix("</code>")
        assert f"&#{ord(character)};" in inside
        assert character not in re.sub(r"&#\d+;", "", inside)


def test_mentions_and_issue_numbers_are_broken_up_in_prose():
    assert markdown("ask @octocat about #12") == (
        "ask &#64;&#8203;octocat about &#35;&#8203;12"
    )


def test_addresses_do_not_become_links():
    escaped = markdown("http://evil.example and WWW.evil.example and www.evil.example")
    assert "://" not in escaped
    assert "www." not in escaped.lower()


def test_underscores_inside_words_stay_readable():
    assert markdown_code("bench_a.py::bench_b[x]") == (
        "<code>bench_a.py::bench_b&#91;x&#93;</code>"
    )
    assert markdown("__init__ _x_") == "&#95;&#95;init&#95;&#95; &#95;x&#95;"


def test_code_keeps_line_breaks_visible_and_prose_folds_them():
    assert markdown_code("a\nb") == r"<code>a&#92;nb</code>"
    assert markdown("a\nb") == "a b"
