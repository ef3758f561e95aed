"""The base code of a session: which commit, and the tree it is measured in."""

import ast
import functools
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

import pytest

from pytest_perfgate.campaign import git
from pytest_perfgate.campaign.base_tree import BaseRequest, BaseTree, open_base_tree
from pytest_perfgate.campaign.repository import Repository
from pytest_perfgate.campaign.selection import file_of
from pytest_perfgate.model import BaseCode
from pytest_perfgate.settings import Settings

_CONFTEST = "conftest.py"


class Base:
    """Opened where pairs are made; gone when the session ends, however it does."""

    def __init__(
        self, config: pytest.Config, settings: Settings, nodeids: Sequence[str]
    ) -> None:
        self._config = config
        self._settings = settings
        self._nodeids = nodeids
        self._tree: BaseTree | None = None
        self.told: BaseCode | None = None
        """For the report; None where no base code was measured."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._tree is not None:
            self._tree.close()

    def check(self) -> None:
        """Refuse a ref that leads to no base, before minutes are spent.

        Raises
        ------
        PerfGateError
            No repository, an unknown ref, a shallow clone, unrelated histories.
        """
        ref = self._settings.pairing.ref
        if ref is not None:
            Repository(self._settings.rootdir.resolve()).merge_base(ref)

    def open(self) -> BaseTree:
        """Check the base tree out and make it ready."""
        pairing = self._settings.pairing
        ref = pairing.ref or ""
        tree = self._tree = open_base_tree(
            BaseRequest(
                ref=ref,
                rootdir=self._settings.rootdir,
                start=self._config.invocation_params.dir,
                inifile=self._config.inipath,
                files=tuple(self._files()),
                arguments=tuple(map(str, self._config.args)),
                overlay=pairing.overlay,
                pythonpath=tuple(map(Path, self._pythonpath())),
                python=pairing.python,
                setup=pairing.setup,
            )
        )
        self.told = BaseCode(
            ref=ref,
            commit=tree.commit,
            overlaid=tree.overlaid,
            notes=tree.notes,
        )
        return tree

    def commit(self) -> str | None:
        """Return the commit that is measured; None where none is."""
        return self.told.commit if self.told else None

    def _pythonpath(self) -> Sequence[str]:
        with suppress(ValueError):  # no such ini value: the plugin is blocked
            return [str(entry) for entry in self._config.getini("pythonpath")]
        return ()

    def _files(self) -> Iterator[Path]:
        """Yield the benchmark files, and each conftest on the way to them."""
        root = self._settings.rootdir
        found: dict[Path, None] = {}
        for name in dict.fromkeys(map(file_of, self._nodeids)):
            found[root / name] = None
            for parent in Path(name).parents:
                conftest = root / parent / _CONFTEST
                if conftest.is_file():
                    found[conftest] = None
        yield from found

    # -- what the base commit has

    def has(self, nodeid: str) -> bool:
        """Whether the base commit has a test of this name in this file.

        A benchmark that is new, and of something new, cannot be measured there.
        """
        if self.told is None:
            return True
        _, _, inside = nodeid.partition("::")
        names = [part.partition("[")[0] for part in inside.split("::") if part]
        return bool(names) and names[0] in self._definitions(file_of(nodeid))

    @functools.cache  # noqa: B019 (one a session, as long as it lives)
    def _definitions(self, file: str) -> frozenset[str]:
        if self.told is None:
            return frozenset()
        source = git.file_at(self._settings.rootdir, self.told.commit, file)
        try:
            body = ast.parse(source).body
        except (SyntaxError, ValueError):
            return frozenset()
        kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
        return frozenset(node.name for node in body if isinstance(node, kinds))
