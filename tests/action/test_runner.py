"""Our own runner does what the real one does, and raises at what it does not know."""

import pytest

from tests.action.events import push
from tests.action.expressions import Unknown, evaluate, filled, holds
from tests.action.runner import TOKEN, Step, obey, read_file

CONTEXT = {
    "inputs": {"mode": "all", "empty": ""},
    "github": {"event": {"pull_request": {"draft": False, "labels": []}}},
    "steps": {"a": {"outputs": {"exit-code": "1"}}},
}
GOOD = {"always": True, "success": True, "failure": False, "cancelled": False}
BAD = GOOD | {"success": False, "failure": True}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("inputs.mode == 'ALL'", True),
        ("inputs.empty || 'default'", "default"),
        ("inputs.mode && 'yes' || 'no'", "yes"),
        ("!github.event.pull_request.draft", True),
        ("github.event.nothing.at.all", None),
        ("steps.a.outputs.exit-code", "1"),
        ("steps.a.outputs.exit-code == 1", True),
        ("!(true && false) != false", True),
        ("contains('a, B', 'b')", True),
        ("'it''s'", "it's"),
        ("null == ''", True),
    ],
)
def test_expressions(text, value):
    assert evaluate(text, CONTEXT, GOOD) == value


@pytest.mark.parametrize(
    "text",
    ["fromJSON('1')", "secrets.X", "inputs.mode ==", "a[0]", "success", "1 2", "~"],
)
def test_what_is_unknown_raises(text):
    with pytest.raises((Unknown, KeyError)):
        evaluate(text, CONTEXT, GOOD)


def test_a_condition_asks_for_success_unless_it_asks_for_a_status():
    assert holds("inputs.mode == 'all'", CONTEXT, GOOD)
    assert not holds("inputs.mode == 'all'", CONTEXT, BAD)
    assert holds("${{ !cancelled() && inputs.mode == 'all' }}", CONTEXT, BAD)


def test_places_are_filled():
    assert filled("x-${{ inputs.mode }}-${{ inputs.empty }}", CONTEXT) == "x-all-"
    assert filled("${{ github.event.pull_request.draft }}", CONTEXT) == "false"


def test_files_of_a_step_are_read_by_the_runners_rules():
    text = "a=1=2\nb<<X\none\n\ntwo\nX\nc=\n"
    assert read_file(text) == {"a": "1=2", "b": "one\n\ntwo", "c": ""}
    with pytest.raises(AssertionError, match="Matching delimiter not found"):
        read_file("b<<X\none\n")
    with pytest.raises(AssertionError, match="Invalid format"):
        read_file("nothing\n")


def test_commands_are_obeyed_until_they_are_stopped():
    step = Step(name="x")
    step.log = (
        "  ::error file=a%2Cb.py,title=t::one%0Atwo\n::stop-commands::w\n"
        "::error::unheard\n##[x]\n::w::\n::warning::heard\nsee ##[old]this\n"
    )
    obey(step)
    assert [(a.kind, a.message, a.file) for a in step.annotations] == [
        ("error", "one\ntwo", "a,b.py"),
        ("warning", "heard", ""),
    ]
    assert step.commands == ["error", "stop-commands", "warning", "old"]


def test_the_token_may_be_nowhere(make_machine):
    machine = make_machine(push())
    for run in (f"echo {TOKEN}", f'echo "x={TOKEN}" >> "$GITHUB_OUTPUT"'):
        with pytest.raises(AssertionError, match="holds the token"):
            machine.run({"run": run}, Step(name="x"), {}, None)


def test_a_summary_that_is_too_long_is_dropped(make_machine):
    step = Step(name="x")
    run = 'head -c 1048577 /dev/zero | tr "\\0" x >> "$GITHUB_STEP_SUMMARY"'
    make_machine(push()).run({"run": run}, step, {}, None)
    assert step.summary == ""
