"""The comment: worst first, short enough, and nothing in it is live."""

import re
from pathlib import Path

import pytest

from pytest_perfgate import reports
from pytest_perfgate.reports.comment import LAST_RUNG, TARGET, Links, render
from pytest_perfgate.reports.pages import FILTERS

LINKS = Links(
    run="https://github.com/o/r/actions/runs/9/attempts/2",
    attempt=2,
    commit="3f1c2ab90d1e7c55aa0e6d0f4b7c8d9e0f1a2b3c",
    repository="https://github.com/o/r",
)
TEMPLATES = sorted((Path(reports.__file__).parent / "templates").glob("*.md.j2"))


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.name)
def test_every_value_in_a_template_ends_in_a_filter(path):
    text = path.read_text(encoding="utf-8")
    macros = set(re.findall(r"\{%-? macro (\w+)\(", text))
    values = re.findall(r"\{\{-?\s*(.*?)\s*-?\}\}", text)
    assert values
    for value in values:
        call = re.fullmatch(r"(\w+)\(.*\)", value)
        if call and call[1] in macros:
            continue
        assert value.rpartition("|")[2].strip() in FILTERS, value


def test_thousands_fit_worst_first(thousands):
    found = render(thousands, links=LINKS)
    assert found.size <= TARGET
    listed = re.findall(r"bench&#91;(\d+)&#93;</code> \| \*\*regressed", found.text)
    assert list(map(int, listed)) == list(reversed(range(60)))


@pytest.mark.parametrize("rung", range(LAST_RUNG + 1))
def test_every_rung_has_the_verdict_and_the_link(thousands, rung):
    found = render(thousands, links=LINKS, rung=rung, limit=10**7)
    assert found.rung == rung
    assert "60 of 3,000 benchmarks regressed" in found.status
    assert LINKS.run in found.text
