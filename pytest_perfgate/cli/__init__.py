"""The `perfgate` command: one module for each of its commands."""

import argparse
import os
import sys
from collections.abc import Callable, Sequence

from pytest_perfgate import __version__
from pytest_perfgate.cli import (
    accept,
    action,
    baselines,
    bisect,
    canary,
    comment,
    doctor,
    gate,
    report,
)
from pytest_perfgate.errors import PerfGateError, StoreUnreachable, UsageError

USAGE, INTERNAL, INTERRUPTED = 4, 3, 2
Command = Callable[[argparse.Namespace], int]
_COMMANDS = (report, gate, accept, comment, baselines, doctor, canary, bisect, action)
"""In the order in which `perfgate --help` lists them."""
_HANDING_ON = frozenset({"canary", "bisect"})


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code: 3 and 4 as pytest's."""
    parser = _parser()
    own, handed_on = _parted(sys.argv[1:] if arguments is None else arguments)
    try:
        given = parser.parse_args(own, argparse.Namespace(handed_on=handed_on))
    except SystemExit as end:
        # argparse ends with 2 on wrong usage, which is pytest's "interrupted"
        return USAGE if end.code else 0
    try:
        code = _run(given)
        sys.stdout.flush()
    except BrokenPipeError:
        return _drop_output()
    except KeyboardInterrupt:
        print("perfgate: interrupted", file=sys.stderr)
        return INTERRUPTED
    return code


def _parted(arguments: Sequence[str]) -> tuple[Sequence[str], tuple[str, ...]]:
    """Take off what follows `--` where the command hands that on to pytest."""
    if "--" not in arguments or arguments[0] not in _HANDING_ON:
        return arguments, ()
    at = arguments.index("--")
    return arguments[:at], tuple(arguments[at + 1 :])


def _run(given: argparse.Namespace) -> int:
    run: Command = given.run
    try:
        return run(given)
    except StoreUnreachable as error:
        return _fail(error, INTERNAL)
    except UsageError as error:
        return _fail(error, USAGE)
    except PerfGateError as error:
        return _fail(error, 1)


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
