"""The line that tells what goes on stays one line."""

import io
import sys

import pytest

from pytest_perfgate.campaign.progress import TerminalProgress, terminal_stream


def shown(stream):
    """Everything that stood on the line, one after another."""
    pieces = stream.getvalue().split("\r")
    return pieces[2::2]  # each is written over blanks first


def test_it_says_run_decided_time_left_and_benchmark():
    stream = io.StringIO()
    progress = TerminalProgress(stream, width=120)
    progress.run_begins(4, 6, benchmarks=10, undecided=3, left_s=95.0)
    progress.benchmark_begins("benches/bench_a.py::bench_one")
    head = "perfgate: run 4 of 6 · 7 of 10 decided · about 95.0 s left"
    assert shown(stream) == [head, f"{head} · benches/bench_a.py::bench_one"]


def test_before_the_first_run_no_time_is_guessed():
    stream = io.StringIO()
    progress = TerminalProgress(stream, width=120)
    progress.run_begins(1, 3, benchmarks=2, undecided=2, left_s=None)
    assert shown(stream) == ["perfgate: run 1 of 3 · 0 of 2 decided"]


@pytest.mark.parametrize("nodeid", ["a" * 500, "new\nline\x1b[2J\ttab", "ä·中"])
def test_the_cursor_stays_on_its_line(nodeid):
    stream = io.StringIO()
    progress = TerminalProgress(stream, width=40)
    progress.run_begins(1, 3, benchmarks=1, undecided=1, left_s=1.0)
    progress.benchmark_begins(nodeid)
    for piece in stream.getvalue().split("\r"):
        assert piece.isprintable()
        assert len(piece) < 40


def test_a_shorter_text_leaves_nothing_of_a_longer_one():
    stream = io.StringIO()
    progress = TerminalProgress(stream, width=40)
    progress.benchmark_begins("long" * 5)
    progress.done()
    assert stream.getvalue().endswith("\r" + " " * 39 + "\r")


def test_without_a_terminal_it_is_silent():
    TerminalProgress(None, width=80).benchmark_begins("a")  # and writes nowhere


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(
    ("stream", "verbosity", "expected"),
    [
        (Terminal(), 0, True),
        (Terminal(), -1, False),
        (io.StringIO(), 0, False),
        (None, 0, False),
    ],
    ids=["terminal", "quiet", "file", "none"],
)
def test_only_a_terminal_is_written_to(monkeypatch, stream, verbosity, expected):
    monkeypatch.setattr(sys, "__stderr__", stream)
    found = terminal_stream(verbosity=verbosity)
    assert found is (stream if expected else None)
