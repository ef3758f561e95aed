"""The folder of the baselines: `<root>/<hardware key>/<benchmark file>.json`."""

import os
from collections.abc import Callable, Collection, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import NoReturn

from pytest_perfgate.errors import BaselineCorrupt, UsageError
from pytest_perfgate.model import Baseline, BaselineFile, Environment
from pytest_perfgate.store.atomic import (
    locked,
    remove,
    unreachable,
    write_atomically,
)
from pytest_perfgate.store.codec_baseline import BASELINE
from pytest_perfgate.store.edits import (
    benchmark_file_of,
    merged,
    placed,
    renamed,
    without,
)

_SUFFIX = ".json"

Change = Callable[[BaselineFile | None], BaselineFile]


@dataclass(frozen=True, slots=True)
class BaselineStore:
    """Baselines kept in a folder, one small file a benchmark file and hardware."""

    root: Path

    def path_for(self, key: str, benchmark_file: str) -> Path:
        """Return where the baselines of a benchmark file are, or would be.

        Raises
        ------
        UsageError
            For a key or a file that leads out of the store's folder.
        """
        folder = self._folder(key)
        parts = PurePosixPath(benchmark_file).parts
        if not parts or parts[0] == "/" or ".." in parts or "\0" in benchmark_file:
            raise UsageError(
                f"the benchmark file {benchmark_file!r} is not inside the project, so "
                f"that {self.root} has no place for it; run pytest with a rootdir "
                "that holds it"
            )
        path = folder.joinpath(*parts[:-1], parts[-1] + _SUFFIX)
        if not path.resolve().is_relative_to(self.root.resolve()):
            raise UsageError(
                f"{path} leads out of {self.root} through a symbolic link; replace "
                "the link by a folder"
            )
        return path

    def load(self, key: str, benchmark_file: str) -> BaselineFile | None:
        """Read the baselines of a benchmark file; None where nothing is stored.

        Raises
        ------
        BaselineCorrupt, SchemaTooNew
            Where the file cannot be used as it is.
        StoreUnreachable
            Where it is there and cannot be read.
        """
        path = self.path_for(key, benchmark_file)
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise unreachable(path, "read", error) from error
        return BASELINE.read(data, source=str(path))

    def save(self, key: str, benchmark_file: str, file: BaselineFile) -> Path:
        """Write the baselines of a benchmark file as a whole, and return its path.

        Raises
        ------
        BaselineCorrupt
            Where a value could not be read back; nothing is written then.
        StoreUnreachable
            Where the disk refuses; the file is as it was.
        """
        path = self.path_for(key, benchmark_file)
        text = _checked_text(file, path=path)
        write_atomically(path, text.encode())
        return path

    def update(self, key: str, benchmark_file: str, change: Change) -> BaselineFile:
        """Read, change and write one file under its lock; return what was written."""
        with locked(self.path_for(key, benchmark_file)):
            file = change(self.load(key, benchmark_file))
            self.save(key, benchmark_file, file)
        return file

    def merge(
        self,
        key: str,
        benchmark_file: str,
        benchmarks: Mapping[str, Baseline],
        *,
        environment: Environment,
    ) -> BaselineFile:
        """Store baselines recorded in `environment`; the file's others stay."""
        return self.update(
            key,
            benchmark_file,
            lambda file: merged(file, benchmarks, environment=environment),
        )

    def keys(self) -> tuple[str, ...]:
        """Return the kinds of hardware that have baselines, sorted."""
        try:
            names = sorted(
                entry.name for entry in self.root.iterdir() if entry.is_dir()
            )
        except FileNotFoundError:
            return ()
        except OSError as error:
            raise unreachable(self.root, "read", error) from error
        return tuple(name for name in names if self.files(name))

    def files(self, key: str) -> tuple[str, ...]:
        """Return the benchmark files that have baselines on a kind of hardware."""
        folder = self._folder(key)
        if not folder.is_dir():
            return ()
        found = (
            Path(parent, name).relative_to(folder).as_posix().removesuffix(_SUFFIX)
            for parent, _, names in os.walk(folder, onerror=_unreadable)
            for name in names
            if name.endswith(_SUFFIX)
        )
        return tuple(sorted(found))

    def prune(self, key: str, benchmark_file: str, names: Collection[str]) -> None:
        """Forget benchmarks of one file; a file left without any is removed.

        Raises
        ------
        UsageError
            Where one of them is not stored; nothing is changed then.
        """
        self._required(key, benchmark_file)  # or the lock would make its folder
        with locked(self.path_for(key, benchmark_file)):
            file = without(self._required(key, benchmark_file), names)
            self._put(key, benchmark_file, file)

    def rename(self, key: str, old: str, new: str) -> None:
        """Let a benchmark keep its baseline under a new id, in another file if need be.

        Raises
        ------
        UsageError
            Where the old id is not stored, or the new one is already.
        """
        source, target = benchmark_file_of(old), benchmark_file_of(new)
        self._required(key, source)
        if source == target:
            self.update(
                key, source, lambda _: renamed(self._required(key, source), old, new)
            )
            return
        with ExitStack() as stack:
            for name in sorted((source, target)):  # in one order: no deadlock
                stack.enter_context(locked(self.path_for(key, name)))
            self._move(key, old, new)

    def _move(self, key: str, old: str, new: str) -> None:
        source, target = benchmark_file_of(old), benchmark_file_of(new)
        origin = self._required(key, source)
        rest = without(origin, [old])
        # the new place first: a crash in between leaves two, never none
        destination = self.load(key, target)
        self.save(key, target, placed(destination, origin, old=old, new=new))
        self._put(key, source, rest)

    def _put(self, key: str, benchmark_file: str, file: BaselineFile) -> None:
        if file.benchmarks:
            self.save(key, benchmark_file, file)
        else:
            remove(self.path_for(key, benchmark_file))

    def _required(self, key: str, benchmark_file: str) -> BaselineFile:
        file = self.load(key, benchmark_file)
        if file is None:
            raise UsageError(
                f"{benchmark_file} has no baselines on {key!r} in {self.root}; "
                "`perfgate baselines list` shows what there is"
            )
        return file

    def _folder(self, key: str) -> Path:
        if key in {"", ".", ".."} or "/" in key or "\0" in key:
            raise UsageError(f"{key!r} cannot be the name of a kind of hardware")
        return self.root / key


def read_baselines(data: bytes, *, source: str) -> BaselineFile:
    """Read the text of a baseline file that is not in a folder, but in git say.

    Raises
    ------
    BaselineCorrupt, SchemaTooNew
        Where it cannot be used as it is.
    """
    return BASELINE.read(data, source=source)


def _unreadable(error: OSError) -> NoReturn:
    raise unreachable(Path(error.filename), "read", error) from error


def _checked_text(file: BaselineFile, *, path: Path) -> str:
    """Return a file's text after proving that it can be read again."""
    try:
        text = BASELINE.text(file)
        BASELINE.read(text, source=str(path))
    except (BaselineCorrupt, ValueError) as error:
        raise BaselineCorrupt(f"{path} was not written: {error}") from error
    return text
