"""One page, no script, nothing fetched, and nothing from a name taken for markup."""

import subprocess
import sys
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from pytest_perfgate.model import Outcome, Reason, RunStatistic
from pytest_perfgate.reports.html import render

VOID = {"meta", "line", "path", "circle", "wbr"}


class Page(HTMLParser):
    """Checks nesting, and collects tags, attributes and text."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.attributes, self.words = [], [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, *attr) for attr in attrs]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, *attr) for attr in attrs]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "style" not in self.open:
            self.words.append(data)

    @property
    def text(self):
        return "".join(self.words)


@pytest.mark.parametrize("name", ["each_outcome", "hostile", "empty"])
def test_golden(request, assert_golden, name):
    assert_golden(f"report_{name}.html", render(request.getfixturevalue(name)))


@pytest.mark.parametrize("name", ["each_outcome", "hostile", "empty", "thousands"])
def test_it_is_well_formed_and_stands_alone(request, name):
    page = Page(render(request.getfixturevalue(name)))
    assert page.open == []
    assert not {"script", "link", "img", "iframe", "a", "object", "form"} & set(
        page.tags
    )
    assert {attribute for _, attribute, _ in page.attributes} <= {
        *(
            "lang",
            "charset",
            "name",
            "content",
            "http-equiv",
            "class",
            "colspan",
            "open",
        ),
        *("width", "height", "viewbox", "role", "aria-label"),
        *("x1", "x2", "y1", "y2", "cx", "cy", "r", "d"),
    }


def test_nothing_is_fetched_by_the_styles(each_outcome):
    text = render(each_outcome)
    assert "url(" not in text
    assert "@import" not in text
    assert "default-src 'none'" in text


def test_every_name_is_there_as_text(hostile):
    text = Page(render(hostile)).text
    for part in (
        "<script>alert(1)</script>",
        r"line\nbreak",
        "{{ 7*7 }}{% raw %}",
        "@octocat",
    ):
        assert part in text
    assert "\x1b" not in text
    assert "\u202e" not in text


def test_every_row_has_a_plot_with_zero_and_budget(each_outcome):
    page = Page(render(each_outcome))
    assert page.tags.count("svg") == 7
    lines = [
        value
        for tag, name, value in page.attributes
        if (tag, name) == ("line", "class")
    ]
    assert lines.count("zero") == 7
    assert lines.count("interval") == 7
    assert lines.count("budget") == 6


def test_runs_are_listed_with_their_health(make_report, make_result, make_run):
    odd = replace(make_run(1e-3), disturbed=True, steady=False, alone=True)
    other = replace(
        make_run(1e-3), statistics={"stage:x": {"median": RunStatistic(value=2.5)}}
    )
    result = make_result(
        "a", Outcome.UNCHANGED, runs=(odd, other), confirmation=(make_run(2e-3),)
    )
    page = Page(render(make_report([result])))
    assert "2 runs, 1 to confirm" in page.text
    assert "disturbed, not steady, alone" in page.text
    assert "stage:x·median" in page.text
    assert "2.00 ms" in page.text


def test_a_metric_of_ones_own_keeps_its_unit(
    make_report, make_result, make_judgement, make_run, energy
):
    run = replace(
        make_run(1.0), statistics={"energy": {"median": RunStatistic(value=12.5)}}
    )
    judgement = make_judgement(
        energy, "median", Outcome.UNCHANGED, Reason.WITHIN_BUDGET, 1.0
    )
    result = make_result("a", Outcome.UNCHANGED, runs=(run,), judgements=(judgement,))
    assert "12.5 J" in Page(render(make_report([result]))).text


def test_the_plan_is_told(each_outcome, make_report):
    result = each_outcome.results[2]
    assert "350 iterations, 20 to warm up, seed 0, on cuda" in render(each_outcome)
    flushed = replace(result, plan=replace(result.plan, cache="flush"))
    assert "350 iterations, the cache flushed before each, 20 to warm up" in render(
        make_report([flushed])
    )
    inner = replace(result, plan=replace(result.plan, inner_loop=100))
    assert "350 iterations, 100 calls each, 20 to warm up" in render(
        make_report([inner])
    )


def test_many_quiet_ones_are_folded(thousands, each_outcome):
    assert "2940 more, that ask nothing of you" in render(thousands)
    assert "that ask nothing of you" not in render(each_outcome)


def test_an_interrupted_fake_session(make_report, each_outcome):
    environment = replace(each_outcome.environment, fake=True)
    text = render(
        make_report([], interrupted=True, environment=environment, exit_code=0)
    )
    assert "<strong>Interrupted:</strong>" in text
    assert "a fake one" in text
    assert '<h1 class="green">' in text


def test_no_environment_no_policy_no_commit(make_report):
    text = render(make_report([], environment=None, policy={}, commit=None))
    assert "<summary>Environment" not in text
    assert "<th>commit" not in text


def test_the_template_engine_is_loaded_only_when_needed():
    code = (
        "import sys, pytest_perfgate.reports.html, pytest_perfgate.reports.terminal\n"
        "assert 'jinja2' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
