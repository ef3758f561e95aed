"""The folder of one session: what its workers were asked, said and measured."""

import os
import shutil
import weakref
from dataclasses import dataclass
from pathlib import Path

from pytest_perfgate.errors import StoreUnreachable, UsageError
from pytest_perfgate.model import Report
from pytest_perfgate.store.atomic import (
    holder_of,
    try_lock,
    unreachable,
    write_atomically,
)
from pytest_perfgate.store.codec_report import REPORT

DEFAULT = Path(".perfgate", "last")

_REPORT = "report.json"
_MARKER = ".perfgate-run-folder"
"""Its presence says that the folder's content is ours to replace; it is also
the lock of the session that runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerFiles:
    """The files of one worker process."""

    task: Path
    """What it is asked to do, written by the manager."""
    records: Path
    """What it measured, appended by the worker."""
    log: Path
    """What it wrote to standard output and error."""


class RunFolder:
    """A session's folder; nothing is touched before `prepare`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._release: weakref.finalize[[int], RunFolder] | None = None

    @property
    def report(self) -> Path:
        return self.path / _REPORT

    def worker(self, run: int, *, side: str = "", part: int = 1) -> WorkerFiles:
        """Return the files of a worker.

        Parameters
        ----------
        run : the number of the run
        side : of a pair, `base` or `candidate`; empty where there are no pairs
        part : counts the workers of one run, where one was lost or isolated
        """
        parts = [f"run-{run:03d}", side, str(part) if part > 1 else ""]
        stem = "-".join(part for part in parts if part)
        runs = self.path / "runs"
        return WorkerFiles(
            task=runs / f"{stem}.task.json",
            records=runs / f"{stem}.records.jsonl",
            log=runs / f"{stem}.log",
        )

    def prepare(self) -> None:
        """Begin a session: claim the folder and clear what an earlier one left.

        The claim lasts until `release`, or the end of the process.

        Raises
        ------
        UsageError
            Where the folder holds anything but an earlier session.
        StoreUnreachable
            Where it cannot be written, or another session is using it.
        """
        self.release()
        try:
            self._refuse_foreign()
            self.path.mkdir(parents=True, exist_ok=True)
            self._claim()
            self._clear()
            (self.path / "runs").mkdir()
        except OSError as error:
            raise unreachable(self.path, "prepared", error) from error
        # so that no `git add` ever takes measurements in
        write_atomically(self.path / ".gitignore", b"*\n")

    def release(self) -> None:
        """Let the next session have the folder; its content stays."""
        if self._release is not None:
            self._release()

    def _refuse_foreign(self) -> None:
        if self.path.exists() and not self.path.is_dir():
            raise UsageError(f"{self.path} is a file; name a folder for the report")
        there = self.path.iterdir() if self.path.exists() else ()
        names = sorted(entry.name for entry in there)
        if names and _MARKER not in names:
            raise UsageError(
                f"{self.path} holds {names[0]!r}, which no earlier session wrote, and "
                "a session replaces the whole content of its folder; name a new or "
                "empty folder for the report"
            )

    def _claim(self) -> None:
        marker = self.path / _MARKER
        descriptor = try_lock(marker)
        if descriptor is None:
            raise StoreUnreachable(
                f"{self.path} is in use by the session of {holder_of(marker)}; wait "
                "for its end, or name another folder with --perfgate-report"
            )
        self._release = weakref.finalize(self, os.close, descriptor)

    def _clear(self) -> None:
        for entry in self.path.iterdir():
            if entry.name == _MARKER:
                continue
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry)
            else:
                entry.unlink()

    def write_report(self, report: Report) -> Path:
        """Write `report.json` as a whole and return its path.

        Raises
        ------
        StoreUnreachable
            Where the disk refuses.
        ValueError
            For a number that is NaN or infinite where neither can be.
        """
        write_atomically(self.report, REPORT.text(report).encode())
        return self.report


def load_report(path: Path) -> Report:
    """Read a `report.json`, or that of a run folder.

    Raises
    ------
    UsageError
        Where there is none.
    BaselineCorrupt, SchemaTooNew
        Where it cannot be used as it is.
    StoreUnreachable
        Where it is there and cannot be read.
    """
    file = path / _REPORT if path.is_dir() else path
    try:
        data = file.read_bytes()
    except FileNotFoundError as error:
        raise UsageError(
            f"there is no report at {file}; name a report.json or the folder of a "
            "session (see --perfgate-report)"
        ) from error
    except OSError as error:
        raise unreachable(file, "read", error) from error
    return read_report(data, source=str(file))


def read_report(data: bytes, *, source: str) -> Report:
    """Read the text of a `report.json`; `source` names it in messages.

    Raises
    ------
    BaselineCorrupt, SchemaTooNew
        Where it cannot be used as it is.
    """
    return REPORT.read(data, source=source)
