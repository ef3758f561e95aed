"""One line on the terminal that tells what goes on; silent elsewhere."""

import sys
from typing import TextIO

from pytest_perfgate.units import format_duration


class TerminalProgress:
    """A line that is written over and over, on a terminal only."""

    def __init__(self, stream: TextIO | None, *, width: int) -> None:
        self._stream = stream
        self._width = width
        self._head = ""

    def run_begins(
        self,
        run: int,
        of: int,
        *,
        benchmarks: int,
        undecided: int,
        left_s: float | None,
    ) -> None:
        left = f" · about {format_duration(left_s)} left" if left_s else ""
        decided = f"{benchmarks - undecided} of {benchmarks} decided"
        self._head = f"perfgate: run {run} of {of} · {decided}{left}"
        self._show(self._head)

    def benchmark_begins(self, nodeid: str) -> None:
        self._show(f"{self._head} · {nodeid}")

    def done(self) -> None:
        self._show("")

    def _show(self, text: str) -> None:
        if self._stream is None:
            return
        # ids may hold anything; the cursor must stay on this line
        line = "".join(c if c.isprintable() else "?" for c in text)[: self._width - 1]
        self._stream.write(f"\r{line:<{self._width - 1}}\r{line}")
        self._stream.flush()


def terminal_stream(*, verbosity: int) -> TextIO | None:
    """Return standard error where it is a terminal and nobody asked for quiet."""
    stream = sys.__stderr__
    return stream if stream and stream.isatty() and verbosity >= 0 else None
