"""What a job prints and writes is read by the runner as it was meant."""

import re

import pytest

from pytest_perfgate.github.commands import (
    Annotation,
    Level,
    annotate,
    command,
    harmless,
    output_lines,
    summary_room,
    write_outputs,
    write_summary,
)


def runner_reads(text):
    """Read a file of outputs as the runner does."""
    found, lines = {}, text.split("\n")
    while lines:
        line = lines.pop(0)
        if not line:
            continue
        assert re.match(r"[^=]*<<", line), "Invalid format"
        name, delimiter = line.split("<<", 1)
        value = []
        while (line := lines.pop(0)) != delimiter:
            value.append(line)
        found[name] = "\n".join(value)
    return found


def is_command(line):
    return line.lstrip().startswith("::") or "##[" in line


VALUES = [
    "",
    "x",
    "a=b",
    "a<<b",
    "two\nlines\n",
    "\n",
    "perfgate_00\nX=1",
    "1e-3 < x",
    "ü",
]


@pytest.mark.parametrize("value", VALUES)
def test_outputs_come_back_equal(value):
    text = output_lines({"verdict": value, "exit-code": "1"})
    assert runner_reads(text) == {"verdict": value, "exit-code": "1"}


def test_a_delimiter_that_a_value_holds_is_not_used():
    words = iter(["aa", "aa", "bb", "cc"])
    text = output_lines({"x": "perfgate_aa"}, token=lambda: next(words))
    assert text == "x<<perfgate_bb\nperfgate_aa\nperfgate_bb\n"


def test_delimiters_cannot_be_guessed():
    assert output_lines({"x": "y"}) != output_lines({"x": "y"})


@pytest.mark.parametrize("name", ["", "a b", "a=b", "a\nb", "1a", "a<<b", "ü"])
def test_a_name_is_a_name(name):
    with pytest.raises(ValueError, match="cannot be the name of an output"):
        output_lines({name: "x"})


def test_outputs_are_appended(tmp_path):
    file = tmp_path / "out"
    file.write_text("before=1\n")
    assert write_outputs({"GITHUB_OUTPUT": str(file)}, {"a": "b"}) == ""
    assert file.read_text().startswith("before=1\na<<")


@pytest.mark.parametrize("path", [None, "", "/nowhere/at/all"])
def test_files_that_are_not_there_are_warnings(path):
    env = (
        {"GITHUB_OUTPUT": path, "GITHUB_STEP_SUMMARY": path} if path is not None else {}
    )
    assert "outputs not written: GITHUB_OUTPUT" in write_outputs(env, {"a": "b"})
    assert "the summary not written: GITHUB_STEP_SUMMARY" in write_summary(env, "x")


# the summary ------------------------------------------------------------------


def test_the_summary_is_appended(tmp_path):
    file = tmp_path / "summary"
    file.write_text("of others\n")
    assert write_summary({"GITHUB_STEP_SUMMARY": str(file)}, "ours\n") == ""
    assert file.read_text() == "of others\nours\n"


def test_a_summary_that_would_drop_all_of_it_is_not_written(tmp_path):
    file = tmp_path / "summary"
    file.write_text("x" * 600_000)
    env = {"GITHUB_STEP_SUMMARY": str(file)}
    assert summary_room(env) == 400_000
    told = write_summary(env, "ü" * 200_001)
    assert "400,002 bytes beside 600,000" in told
    assert file.stat().st_size == 600_000
    assert write_summary(env, "y" * 400_000) == ""
    assert summary_room(env) == 0
    assert summary_room({}) == 1_000_000


# commands ---------------------------------------------------------------------


def test_an_annotation_is_one_line_whatever_it_says():
    found = command(
        Annotation(
            level=Level.ERROR,
            message="100 %\r\n::error::x",
            title="a:b,c\n%",
            file="benches/a,b.py",
            line=3,
        )
    )
    assert found == (
        "::error file=benches/a%2Cb.py,line=3,title=a%3Ab%2Cc%0A%25::"
        "100 %25%0D%0A::error::x"
    )


def test_an_annotation_of_the_whole_run():
    assert command(Annotation(level=Level.NOTICE, message="m")) == "::notice::m"


@pytest.mark.parametrize(
    ("count", "shown"), [(0, 0), (1, 1), (10, 10), (11, 10), (99, 10)]
)
def test_no_more_than_the_runner_shows_of_a_kind(count, shown):
    def made(level):
        return [Annotation(level=level, message=f"{n}") for n in range(count)]

    lines = annotate(made(Level.WARNING) + made(Level.ERROR))
    for level in ("error", "warning"):
        of_kind = [line for line in lines if line.startswith(f"::{level}")]
        assert len(of_kind) == shown
        if count > 10:
            assert of_kind[:9] == [f"::{level}::{n}" for n in range(9)]
            assert f"and {count - 9} more" in of_kind[9]


@pytest.mark.parametrize(
    "text",
    [
        "::error::x",
        "   ::set-output name=x::y",
        "\t::add-mask::e",
        "before\n::error::x",
        "before\r::error::x",
        "before\r\n  ::error::x",
        "anything ##[error]x",
        "##[group]a ##[group]b",
        "\u00a0\u2003::error::x",
    ],
)
def test_printed_text_holds_no_command(text):
    lines = harmless(text).replace("\r", "\n").split("\n")
    assert not any(map(is_command, lines))
    assert "".join(harmless(text).split()) == "".join(text.split())


@pytest.mark.parametrize("text", ["a::b", "bench_a.py::test[x]", "# [x]", "a: :b", ""])
def test_ordinary_text_is_as_it_was(text):
    assert harmless(text) == text
