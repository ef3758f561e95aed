"""What of the candidate is laid over the base tree, so that only libraries differ.

Both trees run the candidate's benchmarks, conftests and pytest settings. What
stands beside the benchmarks and belongs to them goes with them; library code
must not, or the candidate would be measured against itself.
"""

import importlib.machinery
import os
import re
import shutil
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath

from pytest_perfgate.campaign.repository import Repository
from pytest_perfgate.campaign.translation import place_below
from pytest_perfgate.errors import UsageError, WorktreeFailed

_BENCHMARKS = re.compile(
    r"(?:.*[_-])?(?:bench|benches|benchmarks?|perf|performance|tests?)(?:[_-].*)?",
    re.IGNORECASE,
)
"""Names of folders that hold benchmarks and what belongs to them."""
_SETTINGS = (
    "pytest.toml",
    ".pytest.toml",
    "pytest.ini",
    ".pytest.ini",
    "pyproject.toml",
    "tox.ini",
    "setup.cfg",
)
_NOT_COPIED = {
    ".git",
    ".mypy_cache",
    ".perfgate",
    ".pytest_cache",
    ".ruff_cache",
    "__pycache__",
}
_LARGE_BYTES = 32 * 1024**2
_COMPILED = (*importlib.machinery.EXTENSION_SUFFIXES, ".so", ".pyd", ".dylib")


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """What of the candidate is to be measured with."""

    root: Path
    """Of the checkout."""
    rootdir: Path
    """pytest's."""
    inifile: Path | None
    files: tuple[Path, ...]
    """Benchmark files and conftests that were collected."""
    extra: tuple[str, ...]
    """What the user named, relative to `rootdir`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Overlay:
    """Paths relative to the checkout."""

    folders: tuple[str, ...]
    """Replaced as a whole."""
    files: tuple[str, ...]
    """Replaced, or removed where the candidate has none."""
    lonely: tuple[str, ...] = ()
    """Benchmark files that stand among library code, which is not touched."""


def plan(project: Project) -> Overlay:
    """Choose what is laid over the base tree.

    Raises
    ------
    UsageError
        Where the user names what is not there, or lies outside the repository.
    """
    folders: dict[str, None] = {}
    files: dict[str, None] = {}
    lonely = []
    for path in project.files:
        relative = _relative(path, project.root)
        if relative is None:
            continue
        files.update(dict.fromkeys(_conftests(relative, project)))
        folder = _folder_of_benchmarks(relative, project)
        if folder is not None:
            folders[folder] = None
        else:
            files[relative] = None
            if PurePath(relative).name != "conftest.py":
                lonely.append(relative)
    for name in project.extra:
        relative = _named_by_user(name, project)
        kind = folders if (project.root / relative).is_dir() else files
        kind[relative] = None
    files.update(dict.fromkeys(_settings(project)))
    outermost = [one for one in folders if not _below_any(one, set(folders) - {one})]
    return Overlay(
        folders=tuple(sorted(outermost)),
        files=tuple(sorted(f for f in files if not _below_any(f, outermost))),
        lonely=tuple(sorted(f for f in lonely if not _below_any(f, outermost))),
    )


def _relative(path: Path, root: Path) -> str | None:
    place = place_below(path, root)
    return None if place is None else place.as_posix()


def _below_any(path: str, folders: Iterable[str]) -> bool:
    return any(PurePath(path).is_relative_to(folder) for folder in folders)


def _conftests(relative: str, project: Project) -> Iterator[str]:
    """Yield the conftests that pytest reads on the way to a file."""
    for folder in PurePath(relative).parents:
        if (project.root / folder).is_relative_to(project.rootdir):
            yield (folder / "conftest.py").as_posix()


def _folder_of_benchmarks(relative: str, project: Project) -> str | None:
    """Return the outermost folder that by its name holds benchmarks, or None."""
    top = project.rootdir.relative_to(project.root)
    library = _names_of_library(project)
    for folder in reversed(PurePath(relative).parents):
        if folder == top:
            if top.name and not _is_project(project.rootdir) and _fits(top.name):
                return top.as_posix()
        elif folder.is_relative_to(top):
            is_library = folder.parent.name == "src" or _plain(folder.name) in library
            if _fits(folder.name) and not is_library:
                return folder.as_posix()
    return None


def _fits(name: str) -> bool:
    return _BENCHMARKS.fullmatch(name) is not None


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _pyproject(folder: Path) -> dict[str, object]:
    try:
        return tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))
    except (OSError, ValueError):  # none, or not TOML: its own tool will say so
        return {}


def _is_project(folder: Path) -> bool:
    keys = _pyproject(folder).keys()
    return bool(keys & {"project", "build-system"}) or (folder / "setup.py").exists()


def _names_of_library(project: Project) -> set[str]:
    names = set()
    for folder in (project.root, project.rootdir):
        table = _pyproject(folder).get("project")
        if isinstance(table, dict) and isinstance(table.get("name"), str):
            names.add(_plain(table["name"]))
    return names


def _named_by_user(name: str, project: Project) -> str:
    path = project.rootdir / name
    relative = _relative(path, project.root)
    if not path.exists():
        raise UsageError(
            f"--perfgate-overlay={name!r}: {path} does not exist; name a file or "
            "folder of the candidate that the base is to be measured with"
        )
    if relative is None or relative == ".":
        raise UsageError(
            f"--perfgate-overlay={name!r}: {path} is not below {project.root}; name a "
            "file or folder inside the repository"
        )
    return relative


def _settings(project: Project) -> Iterator[str]:
    """Yield pytest's settings; where it found none, whatever it would look at."""
    if project.inifile is not None:
        relative = _relative(project.inifile, project.root)
        if relative is not None:
            yield relative
        return
    for folder in (project.rootdir, *project.rootdir.parents):
        if folder.is_relative_to(project.root):
            for name in _SETTINGS:
                yield (folder / name).relative_to(project.root).as_posix()


# -- doing it


@dataclass(frozen=True, slots=True, kw_only=True)
class LaidOver:
    """What was laid over a base tree."""

    entries: tuple[str, ...]
    """Relative paths; folders end with a slash."""
    linked: tuple[str, ...]
    """Large files, not copied but linked to."""


def lay_over(overlay: Overlay, *, candidate: Path, tree: Path) -> LaidOver:
    """Make the base tree agree with the candidate in what the overlay names.

    Raises
    ------
    WorktreeFailed
        Where the disk refuses.
    """
    linked: list[str] = []
    entries = [f"{folder}/" for folder in overlay.folders]
    try:
        for folder in overlay.folders:
            _remove(tree / folder)
            linked += _copy_folder(folder, candidate, tree)
        for name in overlay.files:
            there = (tree / name).exists()
            _remove(tree / name)
            if (candidate / name).is_file():
                linked += _copy_file(name, candidate, tree)
                there = True
            if there:
                entries.append(name)
    except OSError as error:
        raise _refused(tree, error) from error
    return LaidOver(entries=tuple(sorted(entries)), linked=tuple(linked))


def _refused(tree: Path, error: OSError) -> WorktreeFailed:
    return WorktreeFailed(
        f"the candidate's benchmarks cannot be copied into {tree}: {error}; check the "
        "disk, or name another one with TMPDIR"
    )


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _copy_folder(folder: str, candidate: Path, tree: Path) -> Iterator[str]:
    for name, names, files in os.walk(candidate / folder):
        here = Path(name)
        names[:] = [
            one
            for one in sorted(names)
            if one not in _NOT_COPIED and not (here / one / "pyvenv.cfg").exists()
        ]
        (tree / here.relative_to(candidate)).mkdir(parents=True, exist_ok=True)
        # a link to a folder is listed among folders, and not walked into
        links = [one for one in names if (here / one).is_symlink()]
        for one in (*sorted(files), *links):
            yield from _copy_file(
                (here / one).relative_to(candidate).as_posix(), candidate, tree
            )


def _copy_file(name: str, candidate: Path, tree: Path) -> Iterator[str]:
    """Copy a file; yields its name where it is linked to instead."""
    source, target = candidate / name, tree / name
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_symlink():
        points_at = source.readlink()
        if points_at.is_absolute() and points_at.is_relative_to(candidate):
            points_at = tree / points_at.relative_to(candidate)
        target.symlink_to(points_at)
    elif source.is_file() and source.stat().st_size > _LARGE_BYTES:
        target.symlink_to(source)
        yield name
    elif source.is_file():  # neither a socket nor a pipe
        shutil.copy2(source, target)


# -- what git does not know, and a library may need


@dataclass(frozen=True, slots=True, kw_only=True)
class Generated:
    """Files that git ignores and a checkout lacks, relative."""

    copied: tuple[str, ...]
    """Written by a tool in Python alone, as `_version.py` often is."""
    refused: tuple[str, ...]
    """Compiled from the candidate's source: the base's would be others."""


def bring_generated(repository: Repository, tree: Path) -> Generated:
    """Copy ignored Python files that stand inside packages; name compiled ones.

    What is there already, made by the user's set-up or laid over, stays.

    Raises
    ------
    WorktreeFailed
        Where the disk refuses.
    """
    copied, refused = [], []
    for name in _ignored_in_packages(repository, tree):
        target = tree / name
        if target.exists():
            continue
        if name.endswith(_COMPILED):
            refused.append(name)
        elif name.endswith(".py"):
            try:
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(repository.root / name, target)
            except OSError as error:
                raise _refused(tree, error) from error
            copied.append(name)
    return Generated(copied=tuple(copied), refused=tuple(refused))


def _ignored_in_packages(repository: Repository, tree: Path) -> Iterator[str]:
    """Yield single ignored files beside tracked ones, and what a package ignores.

    A wholly ignored folder is part of a library only inside a package: others
    are environments, builds and data. What the base has no folder for, it does
    not import.
    """
    root = repository.root
    for entry in repository.ignored():
        if not (tree / entry).parent.is_dir():
            continue
        if not entry.endswith("/"):
            yield entry
        elif (root / entry).parent.joinpath("__init__.py").exists():
            yield from _files_below(root, entry)


def _files_below(root: Path, folder: str) -> Iterator[str]:
    for name, names, files in os.walk(root / folder):
        names[:] = sorted(set(names) - _NOT_COPIED)
        if Path(name).name not in _NOT_COPIED:
            for file in sorted(files):
                yield (Path(name) / file).relative_to(root).as_posix()


def named(paths: Sequence[str], most: int = 5) -> str:
    """List some paths, and say how many more there are."""
    more = f" and {len(paths) - most} more" if len(paths) > most else ""
    return ", ".join(paths[:most]) + more
