"""`perfgate report`: show a report as a table."""

import argparse
import shutil
from pathlib import Path
from typing import Any

from pytest_perfgate.reports import terminal
from pytest_perfgate.store import load_report


def add(commands: Any) -> None:  # noqa: ANN401 (argparse keeps the type private)
    """Add the command to those of the parser."""
    parser = commands.add_parser("report", help="show a report.json as a table")
    parser.add_argument("report", type=Path, help="report.json or a session's folder")
    parser.add_argument(
        "--verbose", action="store_true", help="show everything that was measured"
    )
    parser.set_defaults(run=_report)


def _report(given: argparse.Namespace) -> int:
    report = load_report(given.report)
    width = shutil.get_terminal_size().columns
    for line in terminal.render(report, width=width, verbose=given.verbose):
        print(line.text)
    return 0
