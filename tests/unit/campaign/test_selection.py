"""What is a benchmark, and in which order they run."""

from pathlib import Path

import pytest

from pytest_perfgate.campaign.selection import (
    collected_whole,
    file_of,
    holds_benchmarks,
    is_benchmark,
    matches,
    shuffled,
)

FIXTURES = frozenset({"perfgate"})


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("def bench_a(perfgate): ...", True),
        ("async def bench_a(perfgate): ...", True),
        ("class TestA:\n    def test_a(self, *, perfgate): ...", True),
        ("def bench_a(model, n): ...", False),
        ("def helper(perfgate): ...", False),
        ("import sys; sys.exit('a script')", False),
        ("def bench_a(perfgate:", True),
    ],
    ids=["plain", "async", "method", "helper", "other name", "script", "broken"],
)
def test_a_file_is_read_not_imported(tmp_path, source, expected):
    path = tmp_path / "bench_x.py"
    path.write_text(source)
    assert holds_benchmarks(path, FIXTURES) is expected


def test_a_benchmark_is_known_by_its_signature():
    assert is_benchmark(lambda perfgate: None, FIXTURES)
    assert not is_benchmark(lambda model: None, FIXTURES)
    assert not is_benchmark(3, FIXTURES)
    assert not is_benchmark(dict.fromkeys, FIXTURES)


def test_patterns_match_as_in_pytest():
    assert matches("bench_a", ["bench"])
    assert matches("bench_a", ["*_a"])
    assert not matches("bench_a", ["test"])


IDS = [
    f"{folder}/bench_{m}.py::{group}{test}[{p}::/]"
    for folder in ("a", "b")
    for m in "xy"
    for group in ("", "TestG::")
    for test in ("t1", "t2")
    for p in range(2)
]


def runs_of(names):
    """Collapse neighbours that are equal."""
    return [name for at, name in enumerate(names) if at == 0 or names[at - 1] != name]


def test_an_order_keeps_folders_modules_and_classes_together():
    for seed in range(20):
        order = shuffled(IDS, seed)
        assert sorted(order) == sorted(IDS)
        for grouping in (lambda i: i[0], file_of):
            pieces = runs_of([grouping(nodeid) for nodeid in order])
            assert len(pieces) == len(set(pieces))
        members = runs_of([file_of(i) if "TestG" in i else i for i in order])
        assert sum("::" not in member for member in members) == 4


def test_orders_differ_by_seed_and_repeat_for_the_same():
    assert shuffled(IDS, 1) == shuffled(list(reversed(IDS)), 1)
    assert len({shuffled(IDS, seed) for seed in range(10)}) == 10


def test_a_file_named_in_part_is_not_collected_whole(tmp_path):
    files = ["a/x.py", "a/y.py", "b/z.py"]

    def whole(*arguments):
        return collected_whole(files, arguments, root=tmp_path, start=tmp_path)

    assert whole("a", "b") == set(files)
    assert whole("a/x.py::test", "a/y.py") == {"a/y.py"}
    assert whole("a/x.py::test", "a") == {"a/x.py", "a/y.py"}
    assert whole(str(tmp_path)) == set(files)
    assert collected_whole(
        files, ["x.py::t", "y.py"], root=tmp_path, start=tmp_path / Path("a")
    ) == {"a/y.py"}
