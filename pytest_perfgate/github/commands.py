"""What a job prints and writes for the runner: commands, outputs, the summary."""

import re
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

MOST_SHOWN = 9
"""The runner shows ten of a kind a step; the tenth counts the rest."""
SUMMARY_LIMIT = 1_000_000
"""Bytes; above 1 MiB the runner drops the whole summary of a step."""

_LINES = re.compile(r"\r\n|\r|\n")


class Level(StrEnum):
    """The kinds of annotation."""

    ERROR = "error"
    WARNING = "warning"
    NOTICE = "notice"


@dataclass(frozen=True, slots=True, kw_only=True)
class Annotation:
    """One note on a line of a file, or on the whole run where `file` is empty."""

    level: Level
    message: str
    title: str = ""
    file: str = ""
    """Relative to the repository, with `/`."""
    line: int | None = None


def harmless(text: str) -> str:
    """Return text that the runner takes for no command when it is printed.

    A command starts a line, after spaces, with two colons; the old form has
    `##[` anywhere. A space in between spoils both; one of no width might not,
    for a comparison by the rules of a language passes over it.
    """
    return "\n".join(map(_harmless_line, _LINES.split(text)))


def _harmless_line(line: str) -> str:
    bare = line.lstrip()
    if bare.startswith("::"):
        line = f"{line[: len(line) - len(bare)]}: {bare[1:]}"
    return line.replace("##[", "# #[")


def command(annotation: Annotation) -> str:
    """Write an annotation as the runner's command, on one line."""
    given = {
        "file": annotation.file,
        "line": str(annotation.line) if annotation.line else "",
        "title": annotation.title,
    }
    parts = [f"{name}={_property(value)}" for name, value in given.items() if value]
    head = f"{annotation.level} {','.join(parts)}" if parts else annotation.level
    return f"::{head}::{_data(annotation.message)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def annotate(annotations: Iterable[Annotation]) -> tuple[str, ...]:
    """Write annotations, worst first as given, and of each kind no more than show.

    Above ten of a kind nine are written and one counts the rest, so that nothing
    is dropped unseen.
    """
    groups: dict[Level, list[Annotation]] = {level: [] for level in Level}
    for annotation in annotations:
        groups[annotation.level].append(annotation)
    lines: list[str] = []
    for level, group in groups.items():
        lines += map(command, _capped(level, group))
    return tuple(lines)


def _capped(level: Level, group: Sequence[Annotation]) -> Iterator[Annotation]:
    if len(group) <= MOST_SHOWN + 1:
        yield from group
        return
    yield from group[:MOST_SHOWN]
    rest = len(group) - MOST_SHOWN
    yield Annotation(
        level=level, message=f"and {rest:,} more; see the job's summary", title="more"
    )


def output_lines(
    values: Mapping[str, str], *, token: Callable[[], str] = secrets.token_hex
) -> str:
    """Write outputs as the runner reads them, whatever the values hold.

    Parameters
    ----------
    values : by name; a name is letters, digits, `-` and `_`
    token : gives a fresh random word for the delimiter

    Raises
    ------
    ValueError
        For a name that could be read as something else.
    """
    parts = []
    for name, value in values.items():
        if not re.fullmatch(r"[A-Za-z_][\w-]*", name, re.ASCII):
            raise ValueError(f"{name!r} cannot be the name of an output")
        delimiter = f"perfgate_{token()}"
        while delimiter in value:
            delimiter = f"perfgate_{token()}"
        parts.append(f"{name}<<{delimiter}\n{value}\n{delimiter}\n")
    return "".join(parts)


def write_outputs(env: Mapping[str, str], values: Mapping[str, str]) -> str:
    """Append outputs to the step's file; return a warning, empty where it went well."""
    return _append(env, "GITHUB_OUTPUT", output_lines(values), what="outputs")


def write_summary(
    env: Mapping[str, str], text: str, *, limit: int = SUMMARY_LIMIT
) -> str:
    """Append to the step's summary; return a warning, empty where it went well.

    Nothing is written where the summary would grow above the limit, for the
    runner would drop all of it, what others wrote included.
    """
    size = len(text.encode("utf-8", "replace"))
    there = _size(env.get("GITHUB_STEP_SUMMARY", ""))
    if there + size > limit:
        return (
            f"the summary was not written: with {size:,} bytes beside {there:,} it "
            f"would exceed {limit:,}, and the runner would drop all of it"
        )
    return _append(env, "GITHUB_STEP_SUMMARY", text, what="the summary")


def summary_room(env: Mapping[str, str], *, limit: int = SUMMARY_LIMIT) -> int:
    """Return how many bytes may still be added to the step's summary."""
    return max(0, limit - _size(env.get("GITHUB_STEP_SUMMARY", "")))


def _size(path: str) -> int:
    try:
        return Path(path).stat().st_size if path else 0
    except OSError:
        return 0


def _append(env: Mapping[str, str], name: str, text: str, *, what: str) -> str:
    path = env.get(name, "")
    if not path:
        return f"{what} not written: {name} is not set"
    try:
        with Path(path).open("a", encoding="utf-8", errors="replace") as file:
            file.write(text)
    except OSError as error:
        return f"{what} not written: {name}={path}: {error.strerror}"
    return ""
