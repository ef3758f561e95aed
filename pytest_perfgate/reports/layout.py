"""Lines of styled segments, and text that fits a number of terminal columns."""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

ELLIPSIS = "…"
_WORD = re.compile(r"(?:`[^`]*`|[^\s`]+|`)+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """A piece of one line; `styles` are names of pytest's terminal markup."""

    text: str
    styles: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line of the terminal, without its newline."""

    segments: tuple[Segment, ...] = ()

    @property
    def text(self) -> str:
        """The line without its styles."""
        return "".join(segment.text for segment in self.segments)

    def __iter__(self) -> Iterator[tuple[str, tuple[str, ...]]]:
        """Give each piece with its styles, as a terminal writer wants them."""
        return ((segment.text, segment.styles) for segment in self.segments)


def line(text: str, *styles: str) -> Line:
    """Make a line of one style."""
    return Line(segments=(Segment(text=text, styles=styles),))


def display_width(text: str) -> int:
    """Count terminal columns: wide characters take two, combining ones none."""
    if text.isascii():
        return len(text)
    return sum(map(_character_width, text))


@lru_cache(maxsize=1024)
def _character_width(character: str) -> int:
    if unicodedata.combining(character) or unicodedata.category(character) == "Me":
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def head(text: str, width: int) -> str:
    """Take the longest start of the text that fits."""
    used = 0
    for index, character in enumerate(text):
        used += _character_width(character)
        if used > width:
            return text[:index]
    return text


def tail(text: str, width: int) -> str:
    """Take the longest end of the text that fits."""
    return head(text[::-1], width)[::-1]


def clip(text: str, width: int) -> str:
    """Shorten at the end, with an ellipsis."""
    if display_width(text) <= width:
        return text
    return head(text, width - 1) + ELLIPSIS if width > 0 else ""


def shorten_id(text: str, width: int) -> str:
    """Shorten a node id in the middle; what tells benchmarks apart stays.

    The end is kept from the test's name on where that leaves a fifth of the
    width to the file's path, else from its parameters, `[...]`, on; only
    parameters longer than that are cut themselves.
    """
    if display_width(text) <= width:
        return text
    room = max(0, width - 1)
    path, colons, test = text.partition("::")
    bracket = test.find("[")
    for end in (colons + test, test[bracket:] if bracket >= 0 else ""):
        kept = display_width(end)
        if path and 0 < kept <= room * 4 // 5:
            kept = max(kept, room * 2 // 3)
            return head(text, room - kept) + ELLIPSIS + tail(text, kept)
    return head(text, room // 3) + ELLIPSIS[:width] + tail(text, room - room // 3)


def pad(text: str, width: int, *, right: bool = False) -> str:
    """Fill with spaces to a width in columns; `right` aligns to the right."""
    space = " " * max(0, width - display_width(text))
    return space + text if right else text + space


def wrap(text: str, width: int, *, indent: str = "") -> Iterator[str]:
    """Break prose at spaces; a word longer than the line is cut, not lost.

    A command in backticks stays on one line if it can, to be copied whole.
    Continuation lines start with `indent`. A width of less than 20 is taken
    as 20: nothing readable fits less.
    """
    room = max(20, width)
    current = ""
    for word in _pieces(_WORD.findall(text), room - len(indent)):
        if current.strip() and display_width(current) + 1 + display_width(word) > room:
            yield current
            current = indent
        current += (" " if current.strip() else "") + word
    yield current


def _pieces(words: Sequence[str], width: int) -> Iterator[str]:
    for word in words:
        rest = word
        while display_width(rest) > width:
            piece = head(rest, width)
            yield piece
            rest = rest[len(piece) :]
        yield rest
