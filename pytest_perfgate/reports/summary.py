"""The job's summary: what the comment says, with far more room."""

from pytest_perfgate.model import Report
from pytest_perfgate.reports.comment import Around, Links
from pytest_perfgate.reports.comment import render as render_comment

LIMIT = 1_000_000
"""Bytes; a runner drops the whole summary of a step above 1 MiB."""


def render(
    report: Report,
    *,
    links: Links,
    limit: int = LIMIT,
    around: Around | None = None,
) -> str:
    """Render the summary of a job; ends with the links to run and commit.

    Parameters
    ----------
    report : what the session found
    links : where the numbers come from
    limit : bytes of the whole text
    around : acceptance, edited baselines, notes
    """
    return render_comment(report, links=links, limit=limit, around=around).text
