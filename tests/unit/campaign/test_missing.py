"""Only what was collected as a whole can miss something."""

import pytest

from pytest_perfgate.campaign.missing import Collected, gone, whole_files
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
    def stored(self, file):
        return (f"{file}::a", f"{file}::a::named", f"{file}::b", f"{file}::ab")


def test_what_is_stored_and_belongs_to_nobody_is_gone():
    found = list(gone(Shelf(), {"x.py": {"x.py::a"}, "y.py": set()}))
    assert [result.benchmark for result in found] == [
        "x.py::b",
        "x.py::ab",
        "y.py::a",
        "y.py::a::named",
        "y.py::b",
        "y.py::ab",
    ]
    assert {r.verdict.outcome for r in found} == {Outcome.MISSING}
    assert {r.verdict.reason for r in found} == {Reason.GONE}
