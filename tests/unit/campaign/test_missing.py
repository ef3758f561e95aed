"""Only what was collected as a whole can miss something."""

import pytest

from pytest_perfgate.campaign.missing import Collected, gone, whole_files
from pytest_perfgate.errors import BaselineCorrupt, SchemaTooNew
from pytest_perfgate.model import Outcome, Reason

FIXTURES = frozenset({"perfgate"})
BENCH = "def bench_a(perfgate): ...\n"


@pytest.fixture
def collected(tmp_path):
    """Say what pytest collected in a project of three benchmark files."""
    for name in ("a", "b", "c"):
        (tmp_path / f"bench_{name}.py").write_text(BENCH)

    def make(benchmarks, *, files=(), arguments=("",), partial=False):
        return Collected(
            benchmarks=benchmarks,
            files={*benchmarks, *files},
            skipped=set(),
            arguments=tuple(str(tmp_path / argument) for argument in arguments),
            root=tmp_path,
            start=tmp_path,
            partial=partial,
        )

    return make


A, B = {"bench_a.py": {"bench_a.py::bench_a"}}, {"bench_b.py": {"bench_b.py::bench_b"}}


def test_whole_files_are_judged_by_what_is_in_them(collected):
    assert whole_files(collected(A | B), [], FIXTURES) == A | B


def test_a_file_named_in_part_is_not(collected):
    found = collected(A | B, arguments=("bench_a.py::bench_a", "bench_b.py"))
    assert whole_files(found, ["bench_a.py"], FIXTURES) == B


def test_nothing_is_where_pytest_took_a_part_itself(collected):
    assert whole_files(collected(A, partial=True), ["bench_b.py"], FIXTURES) == {}


def test_a_stored_file_that_is_gone_or_empty_holds_nothing(collected, tmp_path):
    (tmp_path / "bench_b.py").write_text("# nothing here any more\n")
    found = whole_files(collected(A), ["bench_b.py", "bench_gone.py"], FIXTURES)
    assert found == {**A, "bench_b.py": frozenset(), "bench_gone.py": frozenset()}


def test_a_file_that_was_collected_without_its_benchmarks_holds_none(collected):
    found = whole_files(collected(A, files=["bench_b.py"]), ["bench_b.py"], FIXTURES)
    assert found["bench_b.py"] == frozenset()


def test_a_file_that_was_left_out_cannot_be_judged(collected):
    assert whole_files(collected(A), ["bench_b.py"], FIXTURES) == A


def test_a_file_elsewhere_cannot_be_judged(collected):
    found = collected(A, arguments=("bench_a.py",))
    assert whole_files(found, ["bench_gone.py"], FIXTURES) == A


class Shelf:
    """Holds four benchmarks of every file, but for one that cannot be read."""

    def stored(self, file):
        if self.problem(file):
            return ()
        return (f"{file}::a", f"{file}::a::named", f"{file}::b", f"{file}::ab")

    def problem(self, file):
        return {
            "torn.py": BaselineCorrupt("torn.py.json: truncated"),
            "later.py": SchemaTooNew("later.py.json: 99"),
        }.get(file)


def missed(collected, skipped=()):
    return [
        (result.benchmark, result.verdict.outcome, result.verdict.reason)
        for result in gone(Shelf(), collected, skipped=skipped)
    ]


def test_what_is_stored_and_belongs_to_nobody_is_gone():
    assert missed({"x.py": {"x.py::a"}, "y.py": set()}) == [
        (name, Outcome.MISSING, Reason.GONE)
        for name in (
            *("x.py::b", "x.py::ab"),
            *("y.py::a", "y.py::a::named", "y.py::b", "y.py::ab"),
        )
    ]


def test_a_file_that_skips_itself_skips_its_benchmarks():
    found = missed({"x.py": set(), "y.py": {"y.py::a", "y.py::b"}}, skipped={"x.py"})
    assert [(name, reason) for name, _, reason in found] == [
        ("x.py::a", Reason.SKIPPED_NOW),
        ("x.py::a::named", Reason.SKIPPED_NOW),
        ("x.py::b", Reason.SKIPPED_NOW),
        ("x.py::ab", Reason.SKIPPED_NOW),
        ("y.py::ab", Reason.GONE),
    ]


def test_what_cannot_be_read_and_belongs_to_nobody_is_an_error():
    assert missed({"torn.py": set(), "later.py": set()}) == [
        ("torn.py", Outcome.ERROR, Reason.BASELINE_CORRUPT),
        ("later.py", Outcome.ERROR, Reason.SCHEMA_TOO_NEW),
    ]
    assert missed({"torn.py": {"torn.py::a"}}) == []  # the test itself tells it
