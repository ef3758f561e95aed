"""A worker's arguments and environment, said for another checkout."""

import os
import shlex
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pytest_perfgate.errors import WorktreeFailed


def place_below(path: Path, root: Path) -> Path | None:
    """Return a path's place below a folder, or None; the path itself may be a link."""
    if path.name in {"", ".."}:
        real = path.resolve()
    else:
        real = path.parent.resolve() / path.name
    return real.relative_to(root) if real.is_relative_to(root) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Translation:
    """From the candidate's checkout to the base's; all paths are resolved."""

    candidate: Path
    base: Path
    rootdir: Path
    """pytest's, in the candidate."""
    started: Path
    """Where the user started pytest."""
    inifile: Path | None

    @property
    def start(self) -> Path:
        """Where the base's workers start: the same place, or the very one outside."""
        return self.path(self.started)

    def path(self, path: Path) -> Path:
        """Return the same place in the base; outside the candidate, the path itself."""
        place = place_below(path, self.candidate)
        return path if place is None else self.base / place

    def roots(self, pythonpath: Iterable[Path]) -> tuple[str, ...]:
        """Return the folders from which a library may be imported, relative."""
        folders = [self.rootdir, self.candidate]
        sources = [
            *pythonpath,
            *(place for folder in folders for place in (folder / "src", folder)),
        ]
        found = [
            source.resolve().relative_to(self.candidate).as_posix()
            for source in sources
            if source.resolve().is_relative_to(self.candidate)
        ]
        return tuple(dict.fromkeys(found))

    # -- arguments

    def provide(self, arguments: Iterable[str]) -> None:
        """Let exist what pytest is told to collect, or it would refuse to start.

        What holds benchmarks was laid over before; the rest may be new.

        Raises
        ------
        WorktreeFailed
            Where the disk refuses.
        """
        try:
            self.start.mkdir(parents=True, exist_ok=True)
            for argument in arguments:
                meant = self.started / argument.partition("::")[0]
                there = self.path(meant)
                if there.exists() or not there.is_relative_to(self.base):
                    continue
                if meant.is_dir():
                    there.mkdir(parents=True)
                elif meant.is_file():
                    there.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copy2(meant, there)
        except OSError as error:
            raise WorktreeFailed(
                f"{self.base} cannot be made ready: {error}; check the disk, or name "
                "another one with TMPDIR"
            ) from error

    def arguments(self, own: Sequence[str], *, basetemp: Path) -> tuple[str, ...]:
        """Return pytest's arguments for the base.

        Its rootdir and settings are said outright: a file that the base has and
        the candidate lacks must not decide them, or node ids would differ.
        """
        end = own.index("--") if "--" in own else len(own)
        said = [
            f"--rootdir={self.path(self.rootdir)}",
            # a benchmark of what is new cannot be imported there; the others can
            "--continue-on-collection-errors",
        ]
        if self.inifile is not None:
            said += ["-c", str(self.path(self.inifile))]
        if any(argument.startswith("--basetemp") for argument in own[:end]):
            # pytest empties it, and the candidate's worker is using it
            said.append(f"--basetemp={basetemp}")
        return (
            *map(self._argument, own[:end]),
            *said,
            *map(self._argument, own[end:]),
        )

    def _argument(self, argument: str) -> str:
        name, equals, value = argument.partition("=")
        if argument.startswith("-"):
            turned = self._turned(value) if equals else None
            return argument if turned is None else f"{name}={turned}"
        file, colons, test = argument.partition("::")
        turned = self._turned(file) or self._from_outside(file)
        return argument if turned is None else f"{turned}{colons}{test}"

    def _turned(self, text: str) -> str | None:
        """Translate an absolute path of the candidate that the base has too."""
        if not os.path.isabs(text):  # noqa: PTH117 (most arguments are no paths at all)
            return None
        there = self.path(Path(text))
        return str(there) if there != Path(text) and there.exists() else None

    def _from_outside(self, text: str) -> str | None:
        """Translate a relative path, where the base starts elsewhere than it is meant."""
        meant = self.started / text
        inside = self.started.is_relative_to(self.candidate)
        if not text or os.path.isabs(text) or not meant.exists():  # noqa: PTH117 (an empty text is no path)
            return None
        there = self.path(meant.resolve())
        if inside:  # the same words mean the same place, unless they lead out
            return None if there.is_relative_to(self.base) else str(meant.resolve())
        return str(there) if there.is_relative_to(self.base) else None

    # -- environment

    def environment(self, own: Mapping[str, str]) -> dict[str, str]:
        """Return an environment that names the base where it named the candidate."""
        found = dict(own)
        if found.get("PYTHONPATH"):
            entries = found["PYTHONPATH"].split(os.pathsep)
            found["PYTHONPATH"] = os.pathsep.join(self._entries(entries))
        if found.get("PYTEST_ADDOPTS"):
            words = shlex.split(found["PYTEST_ADDOPTS"])
            found["PYTEST_ADDOPTS"] = shlex.join(map(self._argument, words))
        if "PWD" in found:
            found["PWD"] = str(self.start)
        return found

    def _entries(self, entries: Iterable[str]) -> Iterator[str]:
        for entry in entries:
            absolute = os.path.isabs(entry)  # noqa: PTH117 (an empty entry is no path)
            yield str(self.path(Path(entry))) if absolute else entry
