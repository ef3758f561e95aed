"""`perfgate action`: the steps of the GitHub action, after the first one.

What they need to know comes in environment variables, for nothing that a user
wrote may stand in a line that a shell reads.
"""

import argparse
import os
from collections.abc import Callable, Mapping
from typing import Any

from pytest_perfgate.cli.action_comment import comment
from pytest_perfgate.cli.action_gate import gate
from pytest_perfgate.cli.action_measure import measure
from pytest_perfgate.cli.action_report import report

_STEPS: Mapping[str, Callable[[Mapping[str, str]], int]] = {
    "measure": measure,
    "report": report,
    "comment": comment,
    "gate": gate,
}


def add(commands: Any) -> None:  # noqa: ANN401 (argparse keeps the type private)
    """Add the command to those of the parser."""
    parser = commands.add_parser("action", help="run a step of the GitHub action")
    parser.add_argument("step", choices=tuple(_STEPS))
    parser.set_defaults(run=_run)


def _run(given: argparse.Namespace) -> int:
    return _STEPS[given.step](os.environ)
