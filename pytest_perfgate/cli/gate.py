"""`perfgate gate`: merge the reports of all machines, and judge them again."""

import argparse
import os
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from pytest_perfgate.errors import BaselineError, StoreUnreachable, UsageError
from pytest_perfgate.gate.judging_again import FAIL_ON, Judged, judge_again
from pytest_perfgate.gate.merging import Broken, Part, merge
from pytest_perfgate.gate.suite import EXIT_INTERNAL, EXIT_RED
from pytest_perfgate.model import Report
from pytest_perfgate.reports import terminal
from pytest_perfgate.reports.report_files import report_files
from pytest_perfgate.store import RunFolder, load_report, write_atomically
from pytest_perfgate.store.atomic import unreachable

REPORT = "report.json"


def add(commands: Any) -> None:  # noqa: ANN401 (argparse keeps the type private)
    """Add the command to those of the parser."""
    parser = commands.add_parser(
        "gate", help="merge reports, judge them again, and exit with the verdict"
    )
    parser.add_argument(
        "reports",
        nargs="+",
        type=Path,
        metavar="REPORT",
        help="report.json, a session's folder, or a folder of many",
    )
    parser.add_argument(
        "--fail-on",
        choices=FAIL_ON,
        default="policy",
        help="what gives another exit code than 0 (default: policy, every one)",
    )
    parser.add_argument(
        "--out", type=Path, metavar="DIR", help="write the merged report there"
    )
    parser.add_argument(
        "--verbose", action="store_true", help="show everything that was measured"
    )
    parser.set_defaults(run=_gate)


def _gate(given: argparse.Namespace) -> int:
    judged = judge(given.reports, fail_on=given.fail_on, out=given.out)
    width = shutil.get_terminal_size().columns
    for line in terminal.render(judged.report, width=width, verbose=given.verbose):
        print(line.text)
    if judged.exit_code != judged.report.exit_code:
        print(
            f"exit code {judged.exit_code} and not {judged.report.exit_code}, by"
            f" --fail-on={given.fail_on}"
        )
    return judged.exit_code


def judge(
    paths: Iterable[Path], *, fail_on: str = "policy", out: Path | None = None
) -> Judged:
    """Find, read, merge and judge reports; write the merged one to `out`.

    Raises
    ------
    UsageError
        Where a path is not there, or the reports are of different commits, or
        `out` holds one of them or anything foreign.
    StoreUnreachable
        Where a folder cannot be read, or `out` cannot be written.
    """
    named = list(paths)
    files = list(find(named, leave_out=out))
    if out is not None:
        _refuse_own_input(files, out)
    parts, broken = read(files)
    judged = judge_again(merge(parts, broken), fail_on=fail_on)
    if not files:
        where = f"no {REPORT} below {', '.join(map(str, named))}"
        judged = replace(judged, report=replace(judged.report, notes=(where,)))
    if out is not None:
        write(judged.report, out)
    return judged


def find(paths: Iterable[Path], *, leave_out: Path | None = None) -> Iterator[Path]:
    """Yield the report files that are named, or stand below a folder that is.

    Parameters
    ----------
    leave_out : a folder that is not searched: what is written there is no input

    Raises
    ------
    UsageError
        Where one of the paths is not there.
    StoreUnreachable
        Where a folder cannot be read.
    """
    seen: set[Path] = set()
    for path in paths:
        if not path.exists():
            raise UsageError(
                f"there is no report at {path}; name a report.json, the folder of a "
                "session (see --perfgate-report), or a folder of several"
            )
        for file in _below(path, leave_out) if path.is_dir() else (path,):
            if _real(file) not in seen:
                seen.add(_real(file))
                yield file


def _below(folder: Path, leave_out: Path | None) -> Iterator[Path]:
    hidden = None if leave_out is None else _real(leave_out)
    for parent, folders, names in os.walk(folder, onerror=_unreadable):
        folders[:] = sorted(n for n in folders if _real(Path(parent, n)) != hidden)
        if REPORT in names and _real(Path(parent)) != hidden:
            yield Path(parent, REPORT)


def _real(path: Path) -> Path:
    # Path.resolve raises where links go round in a circle
    return Path(os.path.realpath(path))


def _unreadable(error: OSError) -> None:
    raise unreachable(Path(error.filename), "read", error) from error


def _refuse_own_input(files: Iterable[Path], out: Path) -> None:
    for file in files:
        if _real(file).is_relative_to(_real(out)):
            raise UsageError(
                f"--out={out} holds {file}, which is to be judged, and the whole "
                "content of that folder would be replaced; name another folder"
            )


def read(files: Iterable[Path]) -> tuple[list[Part], list[Broken]]:
    """Read reports; one that cannot be used does not hide the others."""
    parts, broken = [], []
    for file in files:
        try:
            parts.append(Part(source=str(file), report=load_report(file)))
        except (BaselineError, StoreUnreachable) as error:
            down = isinstance(error, StoreUnreachable)
            broken.append(
                Broken(
                    source=str(file),
                    problem=str(error),
                    exit_code=EXIT_INTERNAL if down else EXIT_RED,
                )
            )
    return parts, broken


def write(report: Report, out: Path) -> None:
    """Write a report in all its forms to a folder that replaces its content.

    Raises
    ------
    UsageError
        Where the folder holds anything but an earlier report.
    StoreUnreachable
        Where it cannot be written.
    """
    folder = RunFolder(out)
    folder.prepare()
    folder.write_report(report)
    for name, text in report_files(report):
        write_atomically(out / name, text.encode())
    folder.release()
