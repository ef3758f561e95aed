"""A failure tells its story in a few lines, without a traceback."""

import pytest

from pytest_perfgate.model import Difference, Outcome, Reason
from pytest_perfgate.reports.failure import failure_text, one_line


def test_golden(each_outcome, assert_golden):
    text = "\n\n".join(map(failure_text, each_outcome.results))
    assert_golden("report_failures.txt", text + "\n")


def test_a_regression_says_by_how_much_and_against_what(each_outcome):
    first, name, second, *rest = failure_text(each_outcome.results[2]).splitlines()
    assert first == (
        "regressed: latency·median 1.42× (interval 1.38–1.47), allowed 1.05×"
    )
    assert name == "  benches/bench_gemm.py::bench_bf16[4096]"
    assert second == (
        "  baseline 812 µs (10 runs), now 1.15 ms (12 runs); "
        "reason: confirmed-without-base"
    )
    assert rest[-1] == "  read docs/verdicts.md#confirmed-without-base"
    assert any(
        "latency·p99 inconclusive: too-noisy (needs 31 runs)" in one for one in rest
    )
    assert "  changed with it: torch: 2.12.0 → 2.13.0" in rest


def test_an_error_carries_the_bodys_text(each_outcome):
    text = failure_text(each_outcome.results[3])
    assert "  AssertionError: assert False\n" in text
    assert "body-raised (in 3 of 3 runs)" in text


def test_a_bodys_text_cannot_write_to_the_terminal(hostile):
    for result in hostile.results:
        for line in failure_text(result).splitlines():
            assert line.isprintable(), ascii(line)


def test_one_line_for_the_short_summary(each_outcome):
    lines = [one_line(result) for result in each_outcome.results]
    assert "inconclusive: too-noisy (needs 14 runs)" in lines
    assert "regressed: confirmed-without-base, latency·median +42.1 %" in lines
    assert "no-baseline: nothing-stored (nvidia-h200)" in lines


def test_one_line_is_one_line(hostile):
    for result in hostile.results:
        assert one_line(result).isprintable()


def test_a_regression_without_numbers(make_result):
    result = make_result("a", Outcome.REGRESSED, Reason.OVER_LIMIT, detail="p99<=150ms")
    assert one_line(result) == "regressed: over-limit (p99<=150ms)"
    assert failure_text(result).splitlines()[:2] == [one_line(result), "  a"]


def test_many_differences_are_counted(make_result):
    differences = tuple(
        Difference(field=f"f{n}", baseline="1", candidate="2", forbids=False)
        for n in range(11)
    )
    text = failure_text(make_result("a", Outcome.REGRESSED, differences=differences))
    assert text.count("changed with it") == 9
    assert "changed with it: 3 more fields" in text


def test_other_judgements_without_numbers_are_named(make_result, make_judgement):
    judgements = (
        make_judgement("latency", "median", Outcome.REGRESSED, Reason.OVER_LIMIT, 1.2),
        make_judgement(
            "latency", "p99", Outcome.INCONCLUSIVE, Reason.TOO_FEW_TAIL_SAMPLES
        ),
    )
    result = make_result(
        "a", Outcome.REGRESSED, Reason.OVER_LIMIT, judgements=judgements
    )
    lines = failure_text(result).splitlines()
    assert "  also latency·p99 inconclusive: too-few-tail-samples" in lines


def test_no_detectable_change_no_line(make_result, make_judgement, make_comparison):
    judgement = make_judgement(
        "latency",
        "median",
        Outcome.REGRESSED,
        Reason.OVER_LIMIT,
        comparison=make_comparison(1.2, detectable=None),
    )
    result = make_result(
        "a", Outcome.REGRESSED, Reason.OVER_LIMIT, judgements=(judgement,)
    )
    assert "smallest" not in failure_text(result)


@pytest.mark.parametrize("outcome", [Outcome.UNCHANGED, Outcome.SKIPPED])
def test_green_needs_no_advice(make_result, outcome):
    assert "read docs" not in failure_text(make_result("a", outcome))
