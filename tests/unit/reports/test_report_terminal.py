"""The table fits, says the worst first, and loses no verdict."""

from dataclasses import replace

import pytest

from pytest_perfgate.model import Outcome, Reason
from pytest_perfgate.reports import terminal
from pytest_perfgate.reports.layout import display_width
from pytest_perfgate.reports.words import LOOKS, verdict_text

MARKUP = {"red", "green", "yellow", "bold", "light"}
"""Of what pytest's terminal writer knows, what is used."""


def lines_of(report, width=80, **options):
    return [one.text for one in terminal.render(report, width=width, **options)]


@pytest.mark.parametrize("width", [80, 140])
@pytest.mark.parametrize("name", ["each_outcome", "hostile", "empty", "thousands"])
def test_golden(request, assert_golden, name, width):
    report = request.getfixturevalue(name)
    text = "\n".join(one.rstrip() for one in lines_of(report, width)) + "\n"
    assert_golden(f"report_terminal_{name}_{width}.txt", text)


def test_golden_verbose(each_outcome, assert_golden):
    text = "\n".join(one.rstrip() for one in lines_of(each_outcome, 140, verbose=True))
    assert_golden("report_terminal_each_outcome_140_verbose.txt", text + "\n")


@pytest.mark.parametrize("width", [1, 50, 63, 80, 100, 120, 140, 200, 300])
@pytest.mark.parametrize("name", ["each_outcome", "hostile", "empty", "thousands"])
def test_no_line_is_wider_than_the_terminal(request, name, width):
    report = request.getfixturevalue(name)
    room = max(width, terminal.NARROWEST)
    for verbose in (False, True):
        for text in lines_of(report, width, verbose=verbose and name != "thousands"):
            assert display_width(text) <= room, text


@pytest.mark.parametrize("width", [50, 80, 140, 300])
@pytest.mark.parametrize("name", ["each_outcome", "hostile"])
def test_every_verdict_stands_whole_on_a_row_with_its_glyph(request, name, width):
    report = request.getfixturevalue(name)
    lines = lines_of(report, width)
    for result in report.results:
        glyph, text = LOOKS[result.verdict.outcome].glyph, verdict_text(result.verdict)
        assert any(one.startswith(f"{glyph} ") and one.endswith(text) for one in lines)


def test_each_row_has_one_line_where_there_is_room_and_two_where_not(each_outcome):
    wide = [one for one in lines_of(each_outcome, 140) if "812 µs" in one]
    narrow = [one for one in lines_of(each_outcome, 80) if "812 µs" in one]
    assert len(wide) == len(narrow) == 5
    assert sum("regressed: confirmed-without-base" in one for one in wide) == 1
    assert not any("regressed: confirmed-without-base" in one for one in narrow)


def test_numbers_go_in_the_stated_order(each_outcome):
    headings = {}
    for width in (50, 62, 70, 80):
        headings[width] = lines_of(each_outcome, width)[1].split()
    assert headings[80][-2:] == ["budget", "sees"]
    assert headings[70][-1] == "budget"
    assert headings[62][-1] == "[interval]"
    assert "baseline" in headings[62]
    assert "baseline" not in headings[50]
    assert "now" in headings[50]


def test_names_from_tests_cannot_write_to_the_terminal(hostile):
    for text in lines_of(hostile, 140, verbose=True):
        assert text.isprintable(), ascii(text)


def test_only_markup_that_a_terminal_writer_knows(each_outcome, empty):
    for report in (each_outcome, empty):
        for one in terminal.render(report, width=80, verbose=True):
            for _, styles in one:
                assert set(styles) <= MARKUP


def test_ten_times_slower_stands_above_nine_times(thousands):
    lines = [one for one in lines_of(thousands, 200) if one.startswith("✗ benches")]
    assert lines[0].split()[1].endswith("bench[59]")
    assert [one.split()[1] for one in lines] == [
        f"benches/bench_big.py::bench[{i}]" for i in reversed(range(60))
    ]


def test_thousands_are_bounded_and_counted(thousands):
    lines = lines_of(thousands, 80)
    assert len(lines) < 200
    assert "… and not listed: 2,940 unchanged (-v lists them)" in lines
    assert any("✗ 60 regressed" in one and "= 2,940 unchanged" in one for one in lines)


def test_thousands_are_all_there_when_asked_for(thousands):
    lines = lines_of(thousands, 140, verbose=True)
    assert sum(one.startswith("=") for one in lines) == 2940


def test_a_thousand_new_benchmarks_are_bounded_too(make_report, make_result):
    results = [make_result(f"b[{i}]", Outcome.NO_BASELINE) for i in range(1000)]
    lines = lines_of(make_report(results), 80)
    assert len(lines) < 120
    assert "… and not listed: 900 no-baseline (-v lists them)" in lines


def test_forty_are_all_listed(make_report, make_plain):
    results = [make_plain(f"b[{i}]", Outcome.UNCHANGED, 1.0) for i in range(40)]
    assert sum(one.startswith("=") for one in lines_of(make_report(results), 140)) == 40
    results.append(make_plain("b[40]", Outcome.UNCHANGED, 1.0))
    lines = lines_of(make_report(results), 140)
    assert not any(one.startswith("=") for one in lines)
    assert "… and not listed: 41 unchanged (-v lists them)" in lines


def test_shown_metrics_only_when_asked_for(each_outcome):
    assert "throughput" not in "\n".join(lines_of(each_outcome, 140))
    text = "\n".join(lines_of(each_outcome, 140, verbose=True))
    assert "throughput·mean" in text
    assert "device_time·median" in text


def test_the_last_line_is_the_outcome_in_words_after_the_cost(each_outcome):
    lines = lines_of(each_outcome, 140)
    assert lines[-1] == each_outcome.summary
    assert lines[-2] == "cost: 36 runs, 182 s"


def test_a_green_summary_is_green(make_report):
    report = make_report([], exit_code=0, summary="perfgate: all is well")
    assert terminal.render(report, width=80)[-1].segments[0].styles == ("green", "bold")


def test_an_interrupted_session_says_so(make_report):
    text = "\n".join(lines_of(make_report([], interrupted=True)))
    assert "interrupted: this is what was known by then" in text


def test_a_remark_on_a_green_benchmark_is_shown(make_report, make_result):
    result = make_result("a", Outcome.UNCHANGED, remarks=("baseline-stale",))
    assert "    baseline-stale" in lines_of(make_report([result]))


def test_a_long_metric_name_is_clipped(
    make_report, make_result, make_judgement, energy
):
    metric = replace(energy, name="stage:" + "preprocess_" * 5)
    judgement = make_judgement(
        metric, "median", Outcome.UNCHANGED, Reason.WITHIN_BUDGET, 1.0
    )
    report = make_report([make_result("a", Outcome.UNCHANGED, judgements=(judgement,))])
    assert any("stage:preprocess_preproce…" in one for one in lines_of(report, 140))


def test_long_notes_are_cut_after_three_lines(make_report, make_result):
    words = " ".join(f"word{n}" for n in range(60))
    lines = lines_of(make_report([make_result("a", Outcome.ERROR, detail=words)]))
    notes = [one for one in lines if one.startswith("    word")]
    assert len(notes) == 3
    assert notes[-1].endswith("…")
    many = [make_result(f"{n}", Outcome.ERROR, detail=words) for n in range(41)]
    notes = [one for one in lines_of(make_report(many)) if one.startswith("    word")]
    assert len(notes) == 41


def test_a_column_that_nobody_fills_is_left_out(make_report, make_result, make_run):
    result = make_result("a", Outcome.RECORDED, runs=(make_run(1e-3),))
    heading = lines_of(make_report([result]))[0]
    assert heading.split() == ["benchmark", "metric·statistic", "now", "verdict"]
