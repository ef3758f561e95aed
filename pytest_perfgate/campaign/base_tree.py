"""The base tree of a pair: the merge base, checked out beside the candidate.

Both trees run the candidate's benchmarks, conftests and pytest settings over
their own library code. The base's workers are started through
`pytest_perfgate.redirect`, which turns imports over to this tree.
"""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from pytest_perfgate import __version__, redirect
from pytest_perfgate.campaign import overlay
from pytest_perfgate.campaign.base_notes import Brought, notes_on
from pytest_perfgate.campaign.custody import Custody, remove_dead
from pytest_perfgate.campaign.overlay import Overlay
from pytest_perfgate.campaign.repository import Repository, outside_of_hooks
from pytest_perfgate.campaign.translation import Translation
from pytest_perfgate.errors import (
    BasePythonUnusable,
    BaseSetupFailed,
    WorktreeFailed,
)
from pytest_perfgate.trees import Tree, Trees, installed_from

_CACHES = {
    "TORCHINDUCTOR_CACHE_DIR": "inductor",
    "TRITON_CACHE_DIR": "triton",
    "CUDA_CACHE_PATH": "cuda",
    "TORCH_EXTENSIONS_DIR": "extensions",
}
_TAIL = 20
_PROBE = (
    "import pytest, pytest_perfgate; print('perfgate', pytest_perfgate.__version__)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class BaseRequest:
    """What a base tree is wanted for."""

    ref: str
    rootdir: Path
    """pytest's."""
    start: Path
    """The directory of the invocation."""
    inifile: Path | None
    files: tuple[Path, ...]
    """Benchmark files and conftests that were collected."""
    arguments: tuple[str, ...] = ()
    """What the user told pytest to collect: `config.args`."""
    overlay: tuple[str, ...] = ()
    """More paths that the base takes from the candidate, relative to `rootdir`."""
    pythonpath: tuple[Path, ...] = ()
    """pytest's `pythonpath`."""
    python: str | None = None
    """The base's interpreter, where it is not our own."""
    setup: str | None = None
    """A command for `sh -c`, run in the base tree before anything is laid over it."""


class BaseTree:
    """A checkout of the base, ready for workers, until it is closed."""

    def __init__(
        self,
        custody: Custody,
        *,
        commit: str,
        translation: Translation,
        python: str,
        overlaid: tuple[str, ...],
        notes: tuple[str, ...],
    ) -> None:
        self.commit = commit
        self.root = custody.tree
        self.start = translation.start
        self.overlaid = overlaid
        """Relative paths of what is the candidate's; folders end with a slash."""
        self.notes = notes
        """What a reader of the report should know of this tree."""
        self._custody = custody
        self._translation = translation
        self._python = python

    def command(self, worker: Sequence[str]) -> tuple[str, ...]:
        """Turn a worker's command line into one that runs over this tree."""
        manifest = str(_manifest(self._custody, "base"))
        at = worker.index("-m", 1)
        while worker[at + 1] != "pytest":  # a launcher may stand before it
            at = worker.index("-m", at + 1)
        before = [part for part in worker[1:at] if part != "-P"]
        as_module = () if "-P" in worker[:at] else ("--as-module",)
        return (
            self._python,
            "-P",
            *before,
            *("-m", "pytest_perfgate.redirect", manifest, *as_module, "--"),
            *self._translation.arguments(
                worker[at + 2 :], basetemp=self._custody.private / "basetemp"
            ),
        )

    def environment(self, own: Mapping[str, str]) -> dict[str, str]:
        """Return the environment of this tree's workers, made from a worker's."""
        return {
            **self._translation.environment(own),
            **private_caches(self._custody.private / "caches" / "base"),
            redirect.VARIABLE: str(_manifest(self._custody, "base")),
        }

    def candidate_environment(self, own: Mapping[str, str]) -> dict[str, str]:
        """Return the environment of the candidate's workers: as cold, and asked for proof."""
        return {
            **own,
            **private_caches(self._custody.private / "caches" / "candidate"),
            redirect.VARIABLE: str(_manifest(self._custody, "candidate")),
        }

    def close(self) -> None:
        """Remove the checkout and all that belongs to it; again is nothing."""
        self._custody.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def open_base_tree(request: BaseRequest, *, temporary: Path | None = None) -> BaseTree:
    """Check out the merge base, prepare it, and lay the candidate's benchmarks over it.

    Parameters
    ----------
    temporary : where to make a private folder; the system's choice by default

    Raises
    ------
    NotARepository, UnknownRef, ShallowClone, UnrelatedHistories
        Where there is nothing to compare with.
    WorktreeFailed, BaseSetupFailed, BasePythonUnusable
        Where it cannot be made ready.
    UsageError
        Where `overlay` names what cannot be laid over.
    """
    rootdir = request.rootdir.resolve()
    repository = Repository(rootdir)
    commit = repository.merge_base(request.ref)
    project = overlay.Project(
        root=repository.root,
        rootdir=rootdir,
        inifile=request.inifile,
        files=request.files,
        extra=request.overlay,
    )
    chosen = overlay.plan(project)
    remove_dead(repository, temporary=temporary)
    custody = Custody(repository, temporary=temporary)
    try:
        return _Preparation(request, project, repository, custody).tree(commit, chosen)
    except BaseException:
        custody.close()
        raise


class _Preparation:
    """From an empty folder to a base tree."""

    def __init__(
        self,
        request: BaseRequest,
        project: overlay.Project,
        repository: Repository,
        custody: Custody,
    ) -> None:
        self._request = request
        self._repository = repository
        self._custody = custody
        self._translation = Translation(
            candidate=repository.root,
            base=custody.tree,
            rootdir=project.rootdir,
            started=request.start.resolve(),
            inifile=request.inifile,
        )

    def tree(self, commit: str, chosen: Overlay) -> BaseTree:
        tree = self._custody.tree
        self._repository.add_worktree(tree, commit)
        # before the overlay: the base is built from its own build settings
        self._set_up()
        laid = overlay.lay_over(chosen, candidate=self._repository.root, tree=tree)
        generated = overlay.bring_generated(self._repository, tree)
        self._translation.provide(self._request.arguments)
        overlaid = tuple(sorted((*laid.entries, *generated.copied)))
        self._write_manifests(overlaid)
        return BaseTree(
            self._custody,
            commit=commit,
            translation=self._translation,
            python=self._python(),
            overlaid=overlaid,
            notes=notes_on(
                self._repository,
                tree,
                commit=commit,
                brought=Brought(
                    linked=laid.linked,
                    lonely=chosen.lonely,
                    copied=generated.copied,
                    refused=generated.refused,
                ),
            ),
        )

    def _set_up(self) -> None:
        command = self._request.setup
        if command is None:
            return
        folder, tree = self._translation.start, self._custody.tree
        where = folder if folder.is_dir() and folder.is_relative_to(tree) else tree
        try:
            done = subprocess.run(  # noqa: S603 (the user's own command)
                ["/bin/sh", "-c", command],
                cwd=where,
                env=self._translation.environment(outside_of_hooks(os.environ)),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                check=False,
            )
        except OSError as error:
            raise BaseSetupFailed(
                f"--perfgate-base-setup={command!r} cannot be run: {error}"
            ) from error
        if done.returncode:
            last = "\n".join(done.stdout.splitlines()[-_TAIL:])
            raise BaseSetupFailed(
                f"--perfgate-base-setup={command!r} ended with exit code "
                f"{done.returncode} in {where}, the base tree; its last lines:\n"
                f"{last or '(it printed nothing)'}"
            )
        self._refuse_to_measure_the_base_twice(command)

    def _refuse_to_measure_the_base_twice(self, command: str) -> None:
        """See whether a set-up put the base where the candidate was installed."""
        for installed in installed_from(Tree(str(self._custody.tree))):
            name = installed.distribution.metadata["Name"]
            raise BaseSetupFailed(
                f"--perfgate-base-setup={command!r} installed the base's {name} into the "
                "candidate's own environment; install the candidate again, and let the "
                "command make an environment for the base, which --perfgate-base-python "
                "then names"
            )

    def _write_manifests(self, overlaid: tuple[str, ...]) -> None:
        try:
            for side in ("base", "candidate"):
                Trees(
                    side=side,
                    candidate=str(self._repository.root),
                    base=str(self._custody.tree),
                    start=str(self._translation.start),
                    roots=self._translation.roots(self._request.pythonpath),
                    overlaid=overlaid,
                ).write(str(_manifest(self._custody, side)))
        except OSError as error:
            raise WorktreeFailed(
                f"{self._custody.private} cannot be written: {error}; check the disk, or "
                "name another one with TMPDIR"
            ) from error

    def _python(self) -> str:
        given = self._request.python
        if given is None:
            return sys.executable
        python = self._place_of(given)
        try:
            done = subprocess.run(  # noqa: S603 (the user's own interpreter)
                [python, "-P", "-c", _PROBE],
                cwd=self._translation.start,
                env=self._translation.environment(os.environ),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                check=False,
            )
        except OSError as error:
            raise BasePythonUnusable(
                f"--perfgate-base-python={given!r} cannot be run: {error}; name a "
                "Python interpreter, one that the base's set-up makes perhaps"
            ) from error
        if done.stdout.split() != ["perfgate", __version__]:
            said = (done.stderr or done.stdout).strip().splitlines()[-1:]
            raise BasePythonUnusable(
                f"--perfgate-base-python={given!r} has not what a worker needs "
                f"({' '.join(said) or 'it printed nothing'}); install "
                f"pytest-perfgate=={__version__} and what your benchmarks import for it"
            )
        return python

    def _place_of(self, python: str) -> str:
        """Return an interpreter's path: one the set-up made, the user's, or on PATH."""
        if os.sep in python:
            for folder in (self._translation.start, self._custody.tree):
                if (folder / python).exists():
                    return str(folder / python)
            return str(self._request.start / python)
        return python


def _manifest(custody: Custody, side: str) -> Path:
    return custody.private / f"{side}.json"


def private_caches(folder: Path) -> dict[str, str]:
    """Return the variables that keep compiled kernels of one tree from the other."""
    return {variable: str(folder / name) for variable, name in _CACHES.items()}
