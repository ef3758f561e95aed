"""Text from test ids, bodies and file names made harmless for where it goes.

Jinja2 escapes HTML by itself; this module serves the terminal and Markdown.
"""

import re
import unicodedata

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
    return _MARKDOWN.sub(_entity, one_line(text))


def _entity(match: re.Match[str]) -> str:
    character = match.group()
    tail = ZERO_WIDTH_SPACE if character in _BREAKS_AFTER else ""
    return f"&#{ord(character)};{tail}"


def markdown_code(text: str) -> str:
    """Escape an id for a cell of a GitHub table, in code, where nothing is linked.

    The HTML element is used, not backticks: backticks and pipes inside an id
    cannot be escaped in a code span.
    """
    entities = _MARKDOWN.sub(lambda match: f"&#{ord(match.group())};", visible(text))
    return f"<code>{entities}</code>"
