"""The `perfgate` command: one module for each of its commands."""

import argparse
import os
import sys
from collections.abc import Callable, Sequence

from pytest_perfgate import __version__
from pytest_perfgate.cli import baselines, comment, gate, report
from pytest_perfgate.errors import PerfGateError, StoreUnreachable, UsageError

USAGE, INTERNAL = 4, 3
Command = Callable[[argparse.Namespace], int]
_COMMANDS = (report, gate, comment, baselines)
"""In the order in which `perfgate --help` lists them."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code: 3 and 4 as pytest's."""
    parser = _parser()
    try:
        given = parser.parse_args(arguments)
    except SystemExit as end:
        # argparse ends with 2 on wrong usage, which is pytest's "interrupted"
        return USAGE if end.code else 0
    run: Command = given.run
    try:
        code = run(given)
        sys.stdout.flush()
    except StoreUnreachable as error:
        return _fail(error, INTERNAL)
    except UsageError as error:
        return _fail(error, USAGE)
    except PerfGateError as error:
        return _fail(error, 1)
    except BrokenPipeError:
        return _drop_output()
    return code


def _drop_output() -> int:
    """End well: whoever reads (head, less) has seen enough."""
    # or the interpreter would try to flush once more, and complain
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def _fail(error: PerfGateError, code: int) -> int:
    print(f"perfgate: {error}", file=sys.stderr)
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="perfgate",
        description="Render reports of pytest --perfgate, and keep baselines in order.",
    )
    version = f"pytest-perfgate {__version__}"
    parser.add_argument("--version", action="version", version=version)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for command in _COMMANDS:
        command.add(commands)
    return parser
