"""Run pytest over another tree: what comes from one checkout is taken from the other.

PYTEST_DONT_REWRITE: no asserts here; in the base worker this runs before pytest.

The base worker of a pair works in the checkout of the base commit, but the
environment it runs in was made for the candidate: an editable install, a `.pth`
file, a finder of a build backend or a conftest may point into the candidate's
checkout. Started as `python -P -m pytest_perfgate.redirect MANIFEST -- ARGUMENTS`,
this module turns every such import over to the base tree, and then runs pytest.
No knowledge of any build backend is needed: other finders are asked, and only
where their answer lies is looked at.

It imports nothing but the standard library and `trees`, which does so too.
"""

import importlib.machinery
import importlib.util
import os
import runpy
import sys
from collections.abc import Iterator, Sequence
from importlib.machinery import FileFinder, ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

from pytest_perfgate.trees import (
    OWN,
    OWN_NAME,
    Tree,
    Trees,
    installed_from,
    is_installation,
    within,
)

VARIABLE = "_PERFGATE_TREES"
"""Names the manifest to both workers of a pair."""


# -- finding modules in the other tree


class Redirect:
    """A finder that answers with the base tree's file for the candidate's."""

    def __init__(self, candidate: Tree, base: str, roots: Sequence[str]) -> None:
        self._candidate = candidate
        self._base = base
        self._roots = list(roots)

    def translated(self, path: str) -> str:
        """Return the same place in the base tree; elsewhere the path itself."""
        relative = self._candidate.relative(path)
        return path if relative is None else self._there(relative)

    def _there(self, relative: str) -> str:
        return os.path.normpath(os.path.join(self._base, relative))

    # -- sys.meta_path

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None = None,
        target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        """Ask the finders behind this one, and turn over what is the candidate's.

        Raises
        ------
        ModuleNotFoundError
            Where the base tree has no such module: another finder would
            otherwise bring the candidate's.
        """
        __tracebackhide__ = True  # pytest's sign; the fault is not in here
        spec = self._ask_others(fullname, path, target)
        if spec is None:
            return None
        relative = None
        if spec.origin is not None and spec.has_location:
            relative = self._candidate.relative(spec.origin)
        if relative is None:
            return self._built_in_base(spec, path) or self._with_locations_turned(spec)
        found = self._in_base(spec, relative, path or self._roots)
        if found is None:
            raise _only_in_candidate(fullname, relative)
        return found

    def _ask_others(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None
    ) -> ModuleSpec | None:
        at = next((n for n, f in enumerate(sys.meta_path) if f is self), -1)
        for finder in sys.meta_path[at + 1 :]:
            find = getattr(finder, "find_spec", None)
            spec: ModuleSpec | None = find(fullname, path, target) if find else None
            if spec is not None:
                return spec
        return None

    def _built_in_base(
        self, spec: ModuleSpec, path: Sequence[str] | None
    ) -> ModuleSpec | None:
        """Find what a set-up built beside the base's code.

        A backend may have put the candidate's into the environment instead.
        """
        places = [entry for entry in path or () if within(entry, self._base)]
        if not places or not spec.has_location or within(str(spec.origin), self._base):
            return None
        found = PathFinder.find_spec(spec.name, places)
        return found if found is not None and found.has_location else None

    def _with_locations_turned(self, spec: ModuleSpec) -> ModuleSpec:
        """Turn over the folders of a package: a namespace has no file of its own."""
        locations = list(spec.submodule_search_locations or ())
        turned = [self.translated(location) for location in locations]
        if turned == locations:
            return spec
        here = [folder for folder in turned if os.path.isdir(folder)]
        if not here:
            where = os.path.relpath(
                self._candidate.real(locations[0]), self._candidate.root
            )
            raise _only_in_candidate(spec.name, where)
        spec.submodule_search_locations = here
        return spec

    def _in_base(
        self, spec: ModuleSpec, relative: str, places: Sequence[str]
    ) -> ModuleSpec | None:
        is_package = spec.submodule_search_locations is not None
        file = self._there(relative)
        folder = os.path.dirname(file)
        if os.path.isfile(file):
            return importlib.util.spec_from_file_location(
                spec.name,
                file,
                submodule_search_locations=[folder] if is_package else None,
            )
        # it may have been a package there, or a module, in another layout, or built
        # in place where the candidate has a folder for builds
        around = os.path.dirname(folder) if is_package else folder
        return PathFinder.find_spec(spec.name, [around, *places])

    # -- sys.path_hooks: pytest's own finder asks PathFinder without asking us

    def path_hook(self, entry: str) -> Any:  # noqa: ANN401 (whatever finder another hook makes)
        """Make the finder of an entry of `sys.path` that lies in the candidate.

        Raises
        ------
        ImportError
            For every other entry, as hooks do.
        """
        relative = self._candidate.relative(entry)
        if relative is None:
            raise ImportError(entry)
        there = self._there(relative)
        for hook in sys.path_hooks:
            if hook != self.path_hook:
                try:
                    return hook(there)
                except ImportError:
                    continue
        return FileFinder(there)  # finds nothing


def _only_in_candidate(fullname: str, relative: str) -> ModuleNotFoundError:
    hint = ""
    if relative.endswith(tuple(importlib.machinery.EXTENSION_SUFFIXES)):
        hint = "; it is compiled: build the base tree's with --perfgate-base-setup"
    return ModuleNotFoundError(
        f"No module named {fullname!r} in the base tree: {relative} exists only in "
        f"the candidate{hint}",
        name=fullname,
    )


# -- where the base tree is imported from


def _base_roots(trees: Trees, candidate: Tree, base: Tree) -> tuple[str, ...]:
    """Return what is put on the path, so that nothing installed goes before it.

    An ordinary wheel of the candidate lies in no tree at all: only a folder
    before it on the path helps. Where this interpreter has the base tree
    installed, that is what is to be imported: there may be built files in it.
    """
    if next(installed_from(base), None) is not None:
        return ()
    installed = [one.folder for one in installed_from(candidate)]
    named = [*trees.roots]
    for relative in installed:
        named += [relative, os.path.join(relative, "src")]
    folders = [os.path.normpath(os.path.join(base.root, name)) for name in named]
    return tuple(dict.fromkeys(filter(os.path.isdir, folders)))


def _hides_standard_library(folder: str) -> bool:
    """Return whether a module in a folder has the name of a standard one."""
    for name in os.listdir(folder):
        stem, suffix = os.path.splitext(name)
        if suffix in {"", ".py"} and stem in sys.stdlib_module_names:
            return True
    return False


def install(trees: Trees, *, as_module: bool) -> None:
    """Turn this process over to the base tree.

    Parameters
    ----------
    as_module : the user wrote `python -m pytest`, which puts the working
        directory on the path
    """
    candidate, base = Tree(trees.candidate), Tree(trees.base)
    roots = _base_roots(trees, candidate, base)
    redirect = Redirect(candidate, base.root, roots)
    path = [redirect.translated(entry) for entry in sys.path]
    if as_module and trees.start not in path[:1]:
        path.insert(0, trees.start)
    # before what is installed, behind the standard library
    at = next((n for n, entry in enumerate(path) if is_installation(entry)), len(path))
    path[at:at] = [root for root in roots if root not in path[:at]]
    sys.path[:] = dict.fromkeys(path)
    # all that processes which a benchmark starts will know of the base tree
    given = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    handed_on = [
        *(redirect.translated(entry) for entry in given if entry),
        *(root for root in roots if not _hides_standard_library(root)),
    ]
    os.environ["PYTHONPATH"] = os.pathsep.join(dict.fromkeys(handed_on))
    sys.meta_path.insert(0, redirect)
    sys.path_hooks.insert(0, redirect.path_hook)
    sys.path_importer_cache.clear()


# -- proving it


def proof() -> dict[str, Any] | None:
    """Return what this worker imported from where; None outside a pair."""
    manifest = os.environ.get(VARIABLE)
    return evidence(Trees.read(manifest)) if manifest else None


def evidence(trees: Trees) -> dict[str, Any]:
    """Look at what this process has imported.

    Returns
    -------
    dict
        `foreign`: modules of the other side's tree, as pairs of name and file;
        `mapped`: its compiled libraries; `library`: names of the modules that
        came from this worker's own tree, benchmarks apart; `installed`: those of
        the same library that came from elsewhere; `itself`: whether the
        candidate is this very package.
    """
    candidate, base = Tree(trees.candidate), Tree(trees.base)
    own, other = (base, candidate) if trees.side == "base" else (candidate, base)
    return {
        "side": trees.side,
        "foreign": sorted(_foreign(other)),
        "mapped": sorted(_mapped(other)),
        **_library(own, trees),
        "itself": within(OWN, candidate.root),
    }


def _loaded() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield names and contents; libraries leave all sorts of things among modules."""
    loaded: list[tuple[str, object]] = list(sys.modules.items())
    for name, module in loaded:
        if isinstance(module, ModuleType) and name.partition(".")[0] != OWN_NAME:
            # not by getattr: modules that load lazily would begin to
            yield name, module.__dict__


def _file(module: dict[str, Any]) -> str | None:
    file = module.get("__file__")
    return file if isinstance(file, str) else None


def _folders(module: dict[str, Any]) -> list[str]:
    try:
        return [entry for entry in module.get("__path__", ()) if isinstance(entry, str)]
    except (TypeError, KeyError):  # no list; a namespace whose parent is gone
        return []


def _foreign(other: Tree) -> Iterator[tuple[str, str]]:
    for name, module in _loaded():
        file = _file(module)
        for place in (*([file] if file else []), *_folders(module)):
            relative = other.relative(place)
            if relative is not None:
                yield name, relative
                break


def _mapped(other: Tree) -> set[str]:
    """Return what is mapped to be executed; mapped data are no code."""
    try:
        with open(
            "/proc/self/maps", encoding="utf-8", errors="surrogateescape"
        ) as maps:
            fields = [line.rstrip("\n").split(maxsplit=5) for line in maps]
    except OSError:  # no such file on this system
        return set()
    paths = {row[5] for row in fields if len(row) == 6 and "x" in row[1]}
    found = (other.relative(path) for path in paths if path.startswith(os.sep))
    return {relative for relative in found if relative is not None}


def _library(tree: Tree, trees: Trees) -> dict[str, list[str]]:
    """Sort the library's modules by whether they came from a tree or elsewhere.

    Elsewhere may be a wheel, or what a backend compiled for an editable install.
    """
    built = dict(_built_files(tree))
    library: list[str] = []
    elsewhere: list[str] = []
    copies: list[tuple[str, bool]] = []
    for name, module in _loaded():
        file = _file(module)
        if file is None:
            continue
        relative = tree.relative(file)
        if relative is None:
            whole = built.get(tree.real(file))
            if whole is None:
                elsewhere.append(name)
            else:
                copies.append((name, whole))
        elif not _is_overlaid(relative, trees.overlaid):
            library.append(name)
    tops = {name.partition(".")[0] for name in elsewhere}
    owned = {*library, *(top for top in tops if _has_package(tree, trees, top))}
    installed = [name for name in elsewhere if not owned.isdisjoint(_prefixes(name))]
    # an editable install also has the backend's own modules, which are no library
    copied = [n for n, whole in copies if whole or not owned.isdisjoint(_prefixes(n))]
    # a set-up has just installed the base; the candidate may have changed since
    (library if trees.side == "base" else installed).extend(copied)
    return {"library": sorted(library), "installed": sorted(installed)}


def _prefixes(name: str) -> Iterator[str]:
    """Yield a module's name and those of the packages around it."""
    while name:
        yield name
        name = name.rpartition(".")[0]


def _is_overlaid(relative: str, overlaid: Sequence[str]) -> bool:
    return any(
        relative.startswith(entry) if entry.endswith("/") else relative == entry
        for entry in overlaid
    )


def _built_files(tree: Tree) -> Iterator[tuple[str, bool]]:
    """Yield the files of what was installed from a tree, and whether it is whole."""
    for installed in installed_from(tree):
        for file in installed.distribution.files or ():
            path = str(installed.distribution.locate_file(file))
            yield tree.real(path), not installed.editable


def _has_package(tree: Tree, trees: Trees, top: str) -> bool:
    """Return whether a tree has a package or module of that name of its own."""
    if top in sys.stdlib_module_names or top == "__main__":
        return False
    for root in trees.roots:
        place = os.path.join(tree.root, root, top)
        for file in (os.path.join(place, "__init__.py"), f"{place}.py"):
            relative = tree.relative(file) if os.path.isfile(file) else None
            if relative is not None and not _is_overlaid(relative, trees.overlaid):
                return True
    return False


def main() -> None:
    """Be a base worker: MANIFEST [--as-module] -- ARGUMENTS OF PYTEST."""
    end = sys.argv.index("--")
    manifest, *options = sys.argv[1:end]
    install(Trees.read(manifest), as_module="--as-module" in options)
    del sys.argv[1 : end + 1]
    runpy.run_module("pytest", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    # the worker will import this module by its name: let there be one of it
    from pytest_perfgate.redirect import main as start

    start()
