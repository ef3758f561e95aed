"""What a worker's log says of its end."""

from collections.abc import Iterator, Sequence
from pathlib import Path

_LINES = 30
_BEFORE = 5
_FATAL = "Fatal Python error:"
_EXTENSIONS = "Extension modules:"
_MACHINERY = ("/_pytest/", "/pluggy/", "/pytest/__main__.py", "<frozen runpy>")


def last_words(log: Path) -> str:
    """Return the stack that a crash or hang left in a log, else its last lines.

    The innermost frame of such a stack stands first, so that the end of the
    log is its least telling part; pytest's own frames tell nothing at all.
    """
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    # on a line with pytest's progress, most of the time
    fatal = [at for at, line in enumerate(lines) if _FATAL in line]
    if not fatal:
        return "\n".join(lines[-_LINES:])
    before = lines[max(0, fatal[-1] - _BEFORE) : fatal[-1]]
    return "\n".join((*before, *_stack(lines[fatal[-1] :])))


def _stack(lines: Sequence[str]) -> Iterator[str]:
    telling = [
        line
        for line in lines
        if not line.startswith(_EXTENSIONS)
        and not any(part in line for part in _MACHINERY)
    ]
    yield from telling[:_LINES]
    if len(telling) > _LINES:
        yield f"… and {len(telling) - _LINES} more lines"
