"""Tables of words for the terminal."""

from collections.abc import Iterator, Sequence

from pytest_perfgate.reports.layout import display_width, pad, wrap

_GAP = "  "
_NARROWEST = 20
"""Columns of a cell below which nothing is broken any further."""


def table(rows: Sequence[Sequence[str]], *, width: int) -> Iterator[str]:
    """Lay out rows; where they do not fit, the widest column is broken into lines.

    Parameters
    ----------
    rows : the first one holds the headings; all have as many cells
    width : columns of the terminal
    """
    sizes = [max(map(display_width, column)) for column in zip(*rows, strict=True)]
    excess = sum(sizes) + len(_GAP) * (len(sizes) - 1) - width
    while excess > 0 and max(sizes) > _NARROWEST:
        sizes[sizes.index(max(sizes))] -= 1
        excess -= 1
    for row in rows:
        yield from _lines(row, sizes)


def _lines(row: Sequence[str], sizes: Sequence[int]) -> Iterator[str]:
    cells = [list(wrap(cell, size)) for cell, size in zip(row, sizes, strict=True)]
    for at in range(max(map(len, cells))):
        parts = [cell[at] if at < len(cell) else "" for cell in cells]
        yield _GAP.join(map(pad, parts, sizes)).rstrip()
