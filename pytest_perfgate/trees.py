"""The two checkouts of a pair, and what lies in them.

PYTEST_DONT_REWRITE: no asserts here; in the base worker this runs before pytest.

It imports nothing but the standard library.
"""

import importlib.metadata
import json
import os
import site
import sys
import sysconfig
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

OWN = os.path.dirname(os.path.realpath(__file__))
OWN_NAME = "pytest_perfgate"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trees:
    """The two checkouts of a pair, as one worker needs to know them."""

    side: str
    """`base` or `candidate`: whose worker reads this."""
    candidate: str
    base: str
    start: str
    """Where the base worker works."""
    roots: tuple[str, ...]
    """Folders, relative to a tree, from which a library may be imported."""
    overlaid: tuple[str, ...]
    """Files of the candidate in the base tree, relative; folders end with a slash."""

    def write(self, path: str) -> None:
        with open(path, "w", encoding="utf-8") as file:
            json.dump(asdict(self), file)

    @classmethod
    def read(cls, path: str) -> "Trees":
        with open(path, encoding="utf-8") as file:
            fields = json.load(file)
        fields["roots"] = tuple(fields["roots"])
        fields["overlaid"] = tuple(fields["overlaid"])
        return cls(**fields)


def within(path: str, folder: str) -> bool:
    """Return whether a path is a folder or lies below it; both resolved."""
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)


class Tree:
    """The files of a checkout, less the environment and this package.

    A virtual environment inside the repository is common, and so is a project
    that measures itself.
    """

    def __init__(self, root: str) -> None:
        self.root = os.path.realpath(root)
        self._real_folders: dict[str, str] = {}
        apart = {os.path.realpath(folder) for folder in _environment()}
        # an environment around the checkout, /usr around /usr/src, takes nothing out
        self._apart = tuple(
            folder
            for folder in sorted(apart)
            if folder != self.root and within(folder, self.root)
        )

    def real(self, path: str) -> str:
        """Resolve a path; most modules share their folder with others."""
        folder, name = os.path.split(path)
        if folder not in self._real_folders:
            self._real_folders[folder] = os.path.realpath(folder)
        real = os.path.join(self._real_folders[folder], name)
        return os.path.realpath(real) if os.path.islink(real) else real

    def relative(self, path: str) -> str | None:
        """Return where in the tree a file or folder really lies, or None."""
        real = self.real(path)
        if not within(real, self.root) or self.apart(real):
            return None
        return os.path.relpath(real, self.root)

    def apart(self, real: str) -> bool:
        """Return whether a real path belongs to the environment."""
        return any(within(real, folder) for folder in self._apart)


def _environment() -> Iterator[str]:
    """Yield the folders of the interpreter, of what is installed, and our own."""
    yield from (sys.prefix, sys.exec_prefix, sys.base_prefix, sys.base_exec_prefix)
    yield from sysconfig.get_paths().values()
    yield from site.getsitepackages()
    yield site.getusersitepackages()
    yield OWN
    yield from (entry for entry in sys.path if is_installation(entry))


def is_installation(folder: str) -> bool:
    """Return whether packages were installed into a folder, by whatever tool."""
    try:
        return any(name.endswith(".dist-info") for name in os.listdir(folder or "."))
    except OSError:
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Installed:
    """A distribution that was installed from a tree."""

    distribution: importlib.metadata.Distribution
    folder: str
    """Relative to the tree."""
    editable: bool


def installed_from(tree: Tree) -> Iterator[Installed]:
    """Yield what says that it was installed from a tree."""
    for distribution in importlib.metadata.distributions():
        said = _direct_url(distribution)
        url = urlsplit(str(said.get("url", "")))
        folder = tree.relative(url2pathname(url.path)) if url.scheme == "file" else None
        if folder is not None:
            yield Installed(
                distribution=distribution,
                folder=folder,
                editable=bool((said.get("dir_info") or {}).get("editable")),
            )


def _direct_url(distribution: importlib.metadata.Distribution) -> dict[str, Any]:
    try:
        said = json.loads(distribution.read_text("direct_url.json") or "{}")
    except (OSError, ValueError):  # damaged: it then says nothing, as most do
        return {}
    return said if isinstance(said, dict) else {}
