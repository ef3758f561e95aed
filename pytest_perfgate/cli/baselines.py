"""`perfgate baselines`: list, prune and rename what is stored."""

import argparse
from pathlib import Path
from typing import Any

from pytest_perfgate.errors import UsageError
from pytest_perfgate.model import Baseline
from pytest_perfgate.reports.escape import visible
from pytest_perfgate.reports.words import counted
from pytest_perfgate.store import BaselineStore, benchmark_file_of

_ID = "id as `baselines list` shows it: FILE::NAME"


def add(commands: Any) -> None:  # noqa: ANN401 (argparse keeps the type private)
    """Add the command to those of the parser."""
    parser = commands.add_parser("baselines", help="list, prune, rename baselines")
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
