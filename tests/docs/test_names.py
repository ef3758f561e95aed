"""What the pages name exists: options, ini values, keywords, commands, links."""

import argparse
import re
from pathlib import Path

import pytest

from pytest_perfgate import cli
from pytest_perfgate.options import MARKER_KEYWORDS, OPTIONS

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "benches/README.md")),
    *sorted(ROOT.glob("docs/*.md")),
]
FLAGS = {option.flag for option in OPTIONS}
INI = {option.dest for option in OPTIONS if option.ini}
PROPERTIES = {"perfgate_outcome", "perfgate_reason"}  # of JUnit
PLACEHOLDERS = {"--perfgate-name", "perfgate_name"}
every_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)


def text_of(page):
    return page.read_text(encoding="utf-8")


@every_page
def test_every_flag_exists(page):
    named = set(re.findall(r"--perfgate(?:-[a-z]+)*\b", text_of(page)))
    assert named - PLACEHOLDERS <= FLAGS


@every_page
def test_every_ini_value_exists(page):
    named = set(re.findall(r"(?<!pytest_)\bperfgate_[a-z_]+", text_of(page)))
    assert named - PLACEHOLDERS - PROPERTIES <= INI


@every_page
def test_every_keyword_of_the_marker_exists(page):
    calls = re.findall(r"mark\.perfgate\(([^)]*)\)", text_of(page))
    named = {word for call in calls for word in re.findall(r"(\w+)=", call)}
    assert named <= set(MARKER_KEYWORDS)


def commands(parser, prefix=()):
    """Yield the words of every command: ("baselines",), ("baselines", "list")."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, below in action.choices.items():
                yield (*prefix, name)
                yield from commands(below, (*prefix, name))


@every_page
def test_every_command_exists(page):
    text = text_of(page)
    known = {" ".join(words) for words in commands(cli._parser())}
    code = [
        *re.findall(r"`([^`\n]+)`", text),
        *re.findall(r"^[ \t]*(.+)$", text, re.MULTILINE),
    ]
    named = {
        found[1]
        for piece in code
        if (found := re.match(r"perfgate ((?:baselines )?[a-z]+)\b", piece))
    }
    assert named <= known


def anchors(page):
    """Yield the anchors of a page's headings, as GitHub makes them."""
    for heading in re.findall(r"^#+ (.+)$", text_of(page), re.MULTILINE):
        yield re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


@every_page
def test_every_link_leads_somewhere(page):
    for target in re.findall(r"\]\(([^)\s]+)\)", text_of(page)):
        if target.startswith("https://"):
            continue
        name, _, anchor = target.partition("#")
        file = page.parent / name if name else page
        assert file.exists(), target
        if anchor:
            assert anchor in set(anchors(file)), target


def test_the_readme_lists_every_page():
    listed = set(
        re.findall(r"^\| \[[^\]]+\]\((docs/[^)]+)\)", text_of(PAGES[0]), re.MULTILINE)
    )
    assert listed == {str(page.relative_to(ROOT)) for page in ROOT.glob("docs/*.md")}
