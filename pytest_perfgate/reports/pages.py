"""The Markdown templates, and the filters without which nothing gets into them."""

import functools
import re
from collections.abc import Callable
from typing import TYPE_CHECKING
from urllib.parse import quote

from pytest_perfgate.reports.escape import (
    fenced,
    markdown,
    markdown_code,
    markdown_prose,
    visible,
)
from pytest_perfgate.reports.layout import shorten_id

if TYPE_CHECKING:
    from jinja2 import Environment

LONGEST_ID = 120
_LONGEST_TEXT = 600
_LONGEST_QUOTE = 1_500
_ADDRESS = re.compile(r"https?://[^\s/]+", re.IGNORECASE)


def render_page(page: object) -> str:
    """Render what is below a comment's verdict."""
    return _environment().get_template("comment.md.j2").render(page=page)


def render_status(status: object) -> str:
    """Render a comment's verdict."""
    return _environment().get_template("status.md.j2").render(status=status)


def code(value: str) -> str:
    """Show an id or a value as code; a long one loses its middle."""
    if len(value) > 4 * LONGEST_ID:  # of a foreign report: no need to look at all of it
        value = f"{value[:LONGEST_ID]}…{value[-LONGEST_ID:]}"
    return markdown_code(shorten_id(visible(value), LONGEST_ID))


def text(value: str) -> str:
    """Show foreign text as nothing but text, on one line."""
    return markdown(_clipped(value))


def num(value: object) -> str:
    """Show a number, or one that is written out already."""
    return markdown(f"{value:,}" if isinstance(value, int) else _clipped(str(value)))


def prose(value: str) -> str:
    """Show a sentence of ours, whose backticks mark code."""
    return markdown_prose(_clipped(value))


def command(value: str) -> str:
    """Show a command as code, whole, so that it can be copied."""
    return markdown_code(value)


def quoted(value: str) -> str:
    """Show a text of many lines as it is."""
    return "\n".join(fenced(value, most=_LONGEST_QUOTE))


def url(value: str) -> str:
    """Write an address inside the parentheses of a link; others lead nowhere."""
    if not _ADDRESS.match(value):
        return "#"
    return quote(value, safe=":/?#@&=+,;%~-._")


FILTERS: dict[str, Callable[..., str]] = {
    "code": code,
    "text": text,
    "num": num,
    "prose": prose,
    "command": command,
    "fenced": quoted,
    "url": url,
}
"""Every value in a Markdown template ends in one of these."""


@functools.cache
def _environment() -> "Environment":
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("pytest_perfgate.reports"),
        autoescape=False,  # noqa: S701 (this is Markdown: the filters escape)
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters.update(FILTERS)
    return environment


def _clipped(value: str) -> str:
    if len(value) <= _LONGEST_TEXT:
        return value
    return f"{value[:_LONGEST_TEXT]}…"
