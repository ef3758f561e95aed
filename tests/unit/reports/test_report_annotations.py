"""A report as annotations: the worst first, at its file, as loud as its policy."""

from dataclasses import replace

import pytest

from pytest_perfgate.cli.annotations import report_annotations
from pytest_perfgate.github.commands import Level, annotate
from pytest_perfgate.model import Outcome


def test_each_that_asks_for_something_is_noted_at_its_file(each_outcome):
    found = report_annotations(each_outcome)
    assert [one.title.split(":")[0] for one in found] == [
        "regressed",
        "error",
        "invalid",
        "incomparable",
        "missing",
        "no-baseline",
        "inconclusive",
    ]
    levels = {one.title.split(":")[0]: one.level for one in found}
    assert levels.pop("inconclusive") is Level.WARNING
    assert set(levels.values()) == {Level.ERROR}
    first = found[0]
    assert first.file == "benches/bench_gemm.py"
    assert first.title == "regressed: benches/bench_gemm.py::bench_bf16[4096]"
    assert first.message.startswith(
        "latency·median 1.42× (interval 1.38–1.47), allowed 1.05×. "
        "confirmed-without-base. "
    )
    assert "pytest --perfgate --perfgate-update" in first.message
    assert "`" not in first.message


def test_policies_are_followed(each_outcome):
    policy = {"--perfgate-on-missing": "warn", "--perfgate-on-inconclusive": "fail"}
    found = report_annotations(replace(each_outcome, policy=policy))
    levels = {one.title.split(":")[0]: one.level for one in found}
    assert levels["no-baseline"] is Level.WARNING
    assert levels["inconclusive"] is Level.ERROR


def test_what_is_accepted_or_expected_is_no_error(make_report, make_plain):
    slow = make_plain("benches/b.py::a", Outcome.REGRESSED, 1.3)
    (accepted,) = report_annotations(make_report([slow]), accepted=True)
    assert accepted.level is Level.WARNING
    (absorbed,) = report_annotations(make_report([replace(slow, absorbed=True)]))
    assert absorbed.level is Level.NOTICE


@pytest.mark.parametrize(
    ("folder", "nodeid", "file"),
    [
        ("", "benches/b.py::x", "benches/b.py"),
        (".", "benches/b.py::x[a::b]", "benches/b.py"),
        ("packages/core", "b.py::x", "packages/core/b.py"),
        ("", "/etc/passwd::x", ""),
        ("packages", "../../b.py::x", ""),
    ],
)
def test_files_are_relative_to_the_repository(
    make_report, make_plain, folder, nodeid, file
):
    report = make_report([make_plain(nodeid, Outcome.REGRESSED, 1.3)])
    (found,) = report_annotations(report, folder=folder)
    assert found.file == file


def test_hostile_names_make_no_commands_of_their_own(hostile):
    lines = annotate(report_annotations(hostile))
    assert len(lines) == 10
    for line in lines:
        assert line.startswith("::error file=benches/")
        assert "\n" not in line
        assert "\r" not in line
        assert line.isprintable()


def test_thousands_are_counted_and_the_worst_are_shown(thousands):
    lines = annotate(report_annotations(thousands))
    assert len(lines) == 10
    assert "bench[59]" in lines[0].replace("%3A", ":")
    assert "and 51 more" in lines[-1]
