"""The page of verdicts and the code know the same words and the same exit codes."""

import re
from pathlib import Path

import pytest

from pytest_perfgate.gate.suite import exit_code
from pytest_perfgate.model import BenchmarkResult, Outcome, Reason, Verdict
from pytest_perfgate.reports.words import LOOKS

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "verdicts.md").read_text(encoding="utf-8")
NOT_YET: set[Reason] = set()
CHAPTERS = dict(
    re.findall(r"^## Outcome: (\S+)\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
)
SECTIONS = [
    (outcome, reason, text)
    for outcome, chapter in CHAPTERS.items()
    for reason, text in re.findall(
        r"^### (\S+)\n(.*?)(?=^### |\Z)", chapter, re.MULTILINE | re.DOTALL
    )
]


def _code(outcome, *, on_missing="fail", on_inconclusive="fail"):
    verdict = Verdict(outcome=Outcome(outcome), reason=Reason.NOT_GATED)
    return exit_code(
        [BenchmarkResult(benchmark="a", nodeid="a", verdict=verdict)],
        on_missing=on_missing,
        on_inconclusive=on_inconclusive,
        anything_measured=True,
    )


def _codes_by_policy(outcome):
    codes = [
        _code(outcome, on_missing=missing, on_inconclusive=doubt)
        for missing in ("fail", "warn")
        for doubt in ("warn", "fail")
    ]
    return list(dict.fromkeys(codes))


def test_every_outcome_has_its_chapter():
    assert set(CHAPTERS) == {outcome.value for outcome in Outcome}


def test_every_reason_has_exactly_one_heading_and_no_other_has_one():
    reasons = [reason for _, reason, _ in SECTIONS]
    assert sorted(reasons) == sorted(reason.value for reason in Reason)
    assert len(re.findall(r"^### ", PAGE, re.MULTILINE)) == len(reasons)


@pytest.mark.parametrize(("outcome", "reason", "text"), SECTIONS, ids=lambda x: x[:24])
def test_every_reason_says_what_it_means_what_to_do_and_the_exit_code(
    outcome, reason, text
):
    meaning, advice, codes = re.fullmatch(
        r"\n(.+?)\n\n- \*\*What to do:\*\* (.+?)\n- \*\*Exit code:\*\* (.+?)\n*",
        text,
        re.DOTALL,
    ).groups()
    assert len(meaning) > 30
    assert advice
    stated = [int(code) for code in re.findall(r"\b\d+\b", codes.split(";")[0])]
    assert stated == _codes_by_policy(outcome)


def test_what_is_not_reported_yet_says_so_and_nothing_else_does():
    clause = re.compile(r"This\s+version\s+does\s+not\s+report\s+it\s+yet\.")
    said = {reason for _, reason, text in SECTIONS if clause.search(text)}
    assert said == {reason.value for reason in NOT_YET}


def test_the_table_of_outcomes_is_in_order_with_marks_and_codes():
    rows = re.findall(
        r"^\| `(.)` \| \[(\S+)\]\(#(\S+)\) \| ([^|]+) \|", PAGE, re.MULTILINE
    )
    assert [row[1] for row in rows] == [outcome.value for outcome in LOOKS]
    for glyph, outcome, anchor, codes in rows:
        assert glyph == LOOKS[Outcome(outcome)].glyph
        assert anchor == f"outcome-{outcome}"
        stated = [int(code) for code in re.findall(r"\d+", codes)]
        assert stated == _codes_by_policy(outcome)


def test_the_glossary_is_sorted_and_its_links_exist():
    text = (DOCS / "glossary.md").read_text(encoding="utf-8")
    words = re.findall(r"^\*\*(.+?)\*\* – ", text, re.MULTILINE)
    assert words == sorted(words)
    assert len(set(words)) == len(words) > 30
    for link in re.findall(r"\]\(([^)#]+)", text):
        assert (DOCS / link).is_file()
