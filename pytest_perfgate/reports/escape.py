"""Text from test ids, bodies and file names made harmless for where it goes.

Jinja2 escapes HTML by itself; this module serves the terminal and Markdown.
"""

import re
import unicodedata
from collections.abc import Iterator

ZERO_WIDTH_SPACE = "&#8203;"

_MARKDOWN = re.compile(
    r"""
      [&<>|`*\[\]~\\$@\#]        # markup, table cells, mathematics, mentions
    | (?<![^\W_])_ | _(?![^\W_])  # emphasis; inside a word it is only a letter
    | :(?=//) | (?<!\w)w(?=ww\.)  # addresses that GitHub makes links of
    """,
    re.VERBOSE | re.IGNORECASE,
)
_BREAKS_AFTER = "@#"
"""GitHub links `@name` and `#12` after rendering, so an entity alone is not enough."""
_ISSUE = re.compile(r"\b(GH)-(?=\d)", re.IGNORECASE)
_MAIL = re.compile(r"[\w.+-]")
"""What stands before the sign in an address of mail. That becomes a link in code, too,
for this is no code span; an empty comment keeps it from it, and what is copied has no
trace of that."""


def visible(text: str) -> str:
    r"""Write out what does not print: a newline becomes `\n`, a bidi mark `\u202e`.

    Covers control characters (and with them terminal escape sequences), format
    characters (bidirectional overrides, zero-width marks), separators other than
    the space, surrogates and unassigned code points.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(map(_visible_character, text))


def _visible_character(character: str) -> str:
    category = unicodedata.category(character)
    if character == " " or category[0] not in "CZ":
        return character
    if category == "Zs":
        return " "
    return character.encode("unicode-escape").decode("ascii")


def one_line(text: str) -> str:
    """Fold all white space into single spaces, then `visible`."""
    return visible(" ".join(text.split()))


def markdown(text: str) -> str:
    """Escape prose for a cell of a GitHub table: one line, no markup, no mentions."""
    return _ISSUE.sub(rf"\1{ZERO_WIDTH_SPACE}-", _MARKDOWN.sub(_entity, one_line(text)))


def _entity(match: re.Match[str]) -> str:
    character = match.group()
    tail = ZERO_WIDTH_SPACE if character in _BREAKS_AFTER else ""
    return f"&#{ord(character)};{tail}"


def markdown_code(text: str) -> str:
    """Escape an id for a cell of a GitHub table, in code, where nothing is linked.

    The HTML element is used, not backticks: backticks and pipes inside an id
    cannot be escaped in a code span.
    """
    return f"<code>{_MARKDOWN.sub(_code_entity, visible(text))}</code>"


def _code_entity(match: re.Match[str]) -> str:
    character, at = match.group(), match.start()
    mail = character == "@" and _MAIL.match(match.string[at - 1 : at])
    return f"{'<!-- -->' if mail else ''}&#{ord(character)};"


def markdown_prose(text: str) -> str:
    """Escape our own sentences, where only what stands in backticks is code."""
    return "".join(
        markdown_code(part) if index % 2 else _spaced(part)
        for index, part in enumerate(text.split("`"))
    )


def _spaced(text: str) -> str:
    inner = markdown(text)
    before = " " if text[:1].isspace() else ""
    after = " " if text[-1:].isspace() and inner else ""
    return before + inner + after


def fenced(text: str, *, most: int) -> Iterator[str]:
    """Quote a text of many lines in a fence longer than any inside.

    Parameters
    ----------
    text : of a body or a crash
    most : characters kept, from its end
    """
    lines = [visible(line.expandtabs()) for line in text[-most:].splitlines()]
    longest = max(map(len, re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    yield f"{fence}text"
    if len(text) > most:
        yield f"… the last {most:,} of {len(text):,} characters:"
    yield from lines
    yield fence
