"""`bench_*.py` files, and the `bench_*` functions in them, as pytest collects them."""

from collections.abc import Collection
from pathlib import Path

import pytest

from pytest_perfgate.campaign.selection import holds_benchmarks, is_benchmark, matches

PREFIX = "bench_"
_FILES = "bench_*.py"


class BenchFiles:
    """Lets pytest itself collect benchmarks, assertion rewriting included.

    What the user's own patterns match is remembered, so that only what we add is
    filtered.
    """

    def __init__(
        self, config: pytest.Config, fixtures: Collection[str], *, whole_tree: bool
    ) -> None:
        files, functions = (
            config.getini("python_files"),
            config.getini("python_functions"),
        )
        self._files, self._functions = tuple(files), tuple(functions)
        self._fixtures = fixtures
        # the lists are pytest's own, cached by `getini`: its collectors see this
        if whole_tree:
            files.append(_FILES)
        functions.append(PREFIX)

    def pytest_ignore_collect(self, collection_path: Path) -> bool | None:
        """Leave scripts that merely are called bench_*.py alone: not ours to run."""
        if not collection_path.match(_FILES):
            return None
        if any(collection_path.match(pattern) for pattern in self._files):
            return None
        return None if holds_benchmarks(collection_path, self._fixtures) else True

    def pytest_pycollect_makeitem(
        self, collector: pytest.Collector, name: str, obj: object
    ) -> list[pytest.Item] | None:
        """Take a bench_* function only if it is a benchmark by its signature."""
        if not name.startswith(PREFIX) or matches(name, self._functions):
            return None
        if collector.path.match(_FILES) and is_benchmark(obj, self._fixtures):
            return None
        return []
