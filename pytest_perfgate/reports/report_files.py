"""The files that a report is written as beside its `report.json`."""

from collections.abc import Iterator

from pytest_perfgate.model import Report
from pytest_perfgate.reports import html, markdown


def report_files(report: Report) -> Iterator[tuple[str, str]]:
    """Yield name and text of each page."""
    yield "report.md", markdown.render(report)
    yield "report.html", html.render(report)
