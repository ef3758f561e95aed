"""The `perfgate` command: render reports, keep baselines in order."""

import argparse
import os
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from pytest_perfgate import __version__
from pytest_perfgate.errors import PerfGateError, StoreUnreachable, UsageError
from pytest_perfgate.model import Baseline
from pytest_perfgate.reports import terminal
from pytest_perfgate.reports.escape import visible
from pytest_perfgate.reports.words import counted
from pytest_perfgate.store import BaselineStore, benchmark_file_of, load_report

USAGE, INTERNAL = 4, 3
Command = Callable[[argparse.Namespace], int]
_ID = "id as `baselines list` shows it: FILE::NAME"


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
    report = commands.add_parser("report", help="show a report.json as a table")
    report.add_argument("report", type=Path, help="report.json or a session's folder")
    report.add_argument(
        "--verbose", action="store_true", help="show everything that was measured"
    )
    report.set_defaults(run=_report)
    _add_baselines(
        commands.add_parser("baselines", help="list, prune, rename baselines")
    )
    return parser


def _add_baselines(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--baselines",
        type=Path,
        default=Path("baselines"),
        metavar="DIR",
        help="folder of the baselines (default: baselines)",
    )
    parser.add_argument("--hardware", metavar="KEY", help="only this kind of machine")
    actions = parser.add_subparsers(required=True, metavar="ACTION")
    listing = actions.add_parser("list", help="list what is stored")
    listing.set_defaults(run=_list)
    prune = actions.add_parser("prune", help="drop benchmarks that are gone for good")
    prune.add_argument("benchmarks", nargs="+", metavar="BENCHMARK", help=_ID)
    prune.set_defaults(run=_prune)
    rename = actions.add_parser("rename", help="keep a renamed benchmark's baseline")
    rename.add_argument("old", metavar="OLD", help=_ID)
    rename.add_argument("new", metavar="NEW", help="its id from now on")
    rename.set_defaults(run=_rename)


def _report(given: argparse.Namespace) -> int:
    report = load_report(given.report)
    width = shutil.get_terminal_size().columns
    for line in terminal.render(report, width=width, verbose=given.verbose):
        print(line.text)
    return 0


def _keys(store: BaselineStore, given: argparse.Namespace) -> tuple[str, ...]:
    keys = store.keys()
    if given.hardware and given.hardware not in keys:
        raise UsageError(
            f"--hardware={given.hardware!r} has no baselines in {store.root}; "
            f"there are: {', '.join(keys) or 'none'}"
        )
    if not keys:
        raise UsageError(
            f"no baselines in {store.root}/; record them with "
            "`pytest --perfgate --perfgate-update`, or name their folder: "
            "`perfgate baselines --baselines DIR ACTION`"
        )
    return (given.hardware,) if given.hardware else keys


def _list(given: argparse.Namespace) -> int:
    store = BaselineStore(given.baselines)
    for key in _keys(store, given):
        print(key)
        for name in store.files(key):
            file = store.load(key, name)
            for benchmark, baseline in sorted(file.benchmarks.items()) if file else ():
                print(f"  {visible(benchmark)}")
                print(f"    {_sessions(baseline)}")
    return 0


def _sessions(baseline: Baseline) -> str:
    newest = baseline.sessions[-1]
    return (
        f"{counted(len(baseline.sessions), 'session')}, "
        f"{counted(len(baseline.runs), 'run')}, newest {newest.time}"
    )


def _prune(given: argparse.Namespace) -> int:
    store = BaselineStore(given.baselines)
    holders = {name: _holders(store, given, name) for name in given.benchmarks}
    for benchmark, keys in holders.items():  # all are there: now nothing is refused
        for key in keys:
            store.prune(key, benchmark_file_of(benchmark), (benchmark,))
            print(f"pruned {benchmark} from {key}")
    return 0


def _rename(given: argparse.Namespace) -> int:
    store = BaselineStore(given.baselines)
    for key in _holders(store, given, given.old):
        store.rename(key, given.old, given.new)
        print(f"renamed {given.old} to {given.new} in {key}")
    return 0


def _holders(
    store: BaselineStore, given: argparse.Namespace, benchmark: str
) -> list[str]:
    """Return the kinds of hardware that hold a benchmark; refuse if none does."""
    holders = []
    for key in _keys(store, given):
        file = store.load(key, benchmark_file_of(benchmark))
        if file and benchmark in file.benchmarks:
            holders.append(key)
    if not holders:
        raise UsageError(
            f"{benchmark!r} is in no baseline; `perfgate baselines list` shows what is"
        )
    return holders
