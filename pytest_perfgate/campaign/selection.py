"""What is a benchmark, and in which order a run takes them."""

import ast
import fnmatch
import hashlib
import inspect
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path


def holds_benchmarks(path: Path, fixtures: Collection[str]) -> bool:
    """Whether a file defines a test that names one of the fixtures.

    Read, not imported: a script called `bench_something.py` may do anything
    when it is imported. A file that cannot be parsed is left to pytest, which
    reports it.
    """
    try:
        tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError, OSError):
        return True
    return any(_names_fixture(node, fixtures) for node in ast.walk(tree))


def _names_fixture(node: ast.AST, fixtures: Collection[str]) -> bool:
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return False
    if not node.name.startswith(("bench_", "test")):
        return False
    arguments = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
    return any(argument.arg in fixtures for argument in arguments)


def is_benchmark(function: object, fixtures: Collection[str]) -> bool:
    """Whether a function's signature names one of the fixtures."""
    if not callable(function):
        return False
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return False
    return any(name in parameters for name in fixtures)


def matches(name: str, patterns: Iterable[str]) -> bool:
    """Whether pytest would take a function of this name by these patterns."""
    return any(
        name.startswith(pattern) or fnmatch.fnmatch(name, pattern)
        for pattern in patterns
    )


def shuffled(nodeids: Sequence[str], seed: int) -> tuple[str, ...]:
    """Order benchmarks by a seed: what one leaves behind falls on changing neighbours.

    Folders, modules and classes are shuffled among their like and stay in one
    piece, so that their fixtures are set up once.
    """
    return tuple(sorted(nodeids, key=lambda nodeid: _ranks(nodeid, seed)))


def _ranks(nodeid: str, seed: int) -> tuple[bytes, ...]:
    return tuple(
        hashlib.blake2b(f"{seed}|{prefix}".encode(), digest_size=8).digest()
        for prefix in _prefixes(nodeid)
    )


def _prefixes(nodeid: str) -> Iterator[str]:
    """Yield the folders, file, classes and finally the whole of a node id."""
    name, bracket, parameters = nodeid.partition("[")
    end = 0
    for part in name.replace("::", "/\0").split("/"):
        end += len(part) + 1
        if end < len(name):
            yield name.replace("::", "/\0")[:end]
    yield name + bracket + parameters


def file_of(nodeid: str) -> str:
    """Return the benchmark file of a node id, relative to rootdir."""
    return nodeid.split("::", 1)[0]


def collected_whole(
    files: Iterable[str], arguments: Iterable[str], *, root: Path, start: Path
) -> set[str]:
    """Return the files that the command line covers as a whole.

    A file of which only `file.py::test` is named was collected in part.
    """
    whole = [
        (start / argument).resolve() for argument in arguments if "::" not in argument
    ]
    return {
        file
        for file in files
        if any((root / file).resolve().is_relative_to(top) for top in whole)
    }
