"""Notices what torch compiles, by callbacks that run only when it does."""

import contextlib
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

_BY_DYNAMO = "DYNAMO"


@dataclass(slots=True, kw_only=True)
class Compiles:
    """How often a function was compiled while it was watched."""

    count: int = 0


@contextlib.contextmanager
def watching_compiles(*, every: bool = False) -> Iterator[Compiles]:
    """Count compilations from here on; costs nothing where nothing is compiled.

    Whoever imports torch's compiler only now is counted by its own counters.

    Parameters
    ----------
    every : count backward passes compiled late and graphs recorded, too
    """
    seen = Compiles()
    handler = _handler()
    if handler is None:
        yield seen
        seen.count = _stats("unique_graphs")
        return

    def started(event: Any) -> None:  # noqa: ANN401 (torch's)
        seen.count += every or event.callback_trigger.name == _BY_DYNAMO

    handler.register_start_callback(started)
    try:
        yield seen
    finally:
        handler.remove_start_callback(started)


@dataclass(slots=True, kw_only=True)
class BreakBook:
    """Knows for each compiled graph how often tracing it broke off.

    A graph is compiled once a process, by whichever benchmark comes first; so
    its breaks are kept here, by its id, for all that run it later.
    """

    breaks: dict[str, int] = field(default_factory=dict)
    before: int | None = None
    """Breaks of graphs compiled before the book was opened; None: not open."""
    _at_start: tuple[int, int] = (0, 0)
    _carried: int = 0

    def open(self) -> None:
        """Start keeping the book, if torch's compiler is there."""
        if self.before is not None:
            return
        handler = _handler()
        if handler is not None:
            self.before = _graph_breaks()
            handler.register_start_callback(self._started)
            handler.register_end_callback(self._ended)

    def close(self) -> None:
        """Stop; a second call does nothing."""
        handler = _handler()
        if self.before is not None and handler is not None:
            handler.remove_start_callback(self._started)
            handler.remove_end_callback(self._ended)
        self.before = None

    def of(self, graphs: frozenset[str]) -> int | None:
        """Sum up the breaks of the graphs that a call ran; None: not known."""
        unknown = graphs - self.breaks.keys()
        if unknown and (_graph_breaks() if self.before is None else self.before):
            return None
        return sum(self.breaks.get(graph, 0) for graph in graphs)

    def _started(self, event: Any) -> None:  # noqa: ANN401 (torch's)
        del event
        self._at_start = _graph_breaks(), _stats("unique_graphs")

    def _ended(self, event: Any) -> None:  # noqa: ANN401 (torch's)
        broken, graphs = self._at_start
        more = _graph_breaks() - broken + self._carried
        if _stats("unique_graphs") == graphs:
            self._carried = more  # no graph before the break: the next one's
            return
        self._carried = 0
        name = str(event.compile_id)
        self.breaks[name] = self.breaks.get(name, 0) + more


def _handler() -> Any:  # noqa: ANN401 (torch's)
    """Return what torch calls when it compiles; None where there is no such thing."""
    module = sys.modules.get("torch._dynamo.callback")
    return getattr(module, "callback_handler", None)


def _counters() -> Any:  # noqa: ANN401 (torch's)
    module = sys.modules.get("torch._dynamo.utils")
    return getattr(module, "counters", {})


def _graph_breaks() -> int:
    return int(sum(_counters().get("graph_break", {}).values()))


def _stats(name: str) -> int:
    return int(_counters().get("stats", {}).get(name, 0))
