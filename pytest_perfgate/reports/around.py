"""What is told around a report: links, acceptance, edited baselines."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Links:
    """Where the numbers come from; what is not known is empty."""

    run: str = ""
    """The page of the run that measured."""
    attempt: int = 1
    commit: str = ""
    """The commit to show, in full."""
    repository: str = ""
    """The page of the repository, for a link to the commit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """Who took responsibility for the regressions, and why."""

    by: str
    at: str = ""
    reason: str = ""
    label: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselineEdit:
    """One statistic of a baseline that a pull request changes; None: not there."""

    benchmark: str
    hardware: str
    metric: str
    statistic: str
    unit: str = ""
    old: float | None = None
    new: float | None = None
    told: str = ""
    """What to say where there are no numbers: a file that cannot be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Around:
    """What a comment says besides the report."""

    accepted: Accepted | None = None
    edits: tuple[BaselineEdit, ...] = ()
    edits_note: str = ""
    """Why the list of edits is missing or not whole."""
    label: str = ""
    """The label that accepts a regression; empty where none does."""
    leg: str = ""
    """Which of several reports of one run this is."""
    notes: tuple[str, ...] = ()
    """Said below the verdict: why a label does not count, say."""


def plain(text: str) -> str:
    """Take backticks out of foreign text that goes into a sentence of ours."""
    return text.replace("`", "'")
