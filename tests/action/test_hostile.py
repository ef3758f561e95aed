"""A pull request that means harm changes nothing but its own row."""

import io
import json
import re
import zipfile

import cmarkgfm
import pytest
from werkzeug import Response

from pytest_perfgate.model import Outcome
from pytest_perfgate.store.codec_report import REPORT
from tests.action.events import HEAD_SHA, fork, pull_request, workflow_run
from tests.action.reports import GREEN, Replay, session
from tests.action.runner import ROOT
from tests.unit.gate.reports import result

NAMES = (
    "benches/bench_a.py::bench[a|b|`rm -rf`]",
    "benches/bench_a.py::bench[@octocat #12 GH-1 acme/kernels#3]",
    "benches/bench_a.py::bench[<script>alert(1)</script><img src=x onerror=y>]",
    "benches/bench_a.py::bench[\n::error file=a.py::forged\n##[error]forged]",
    "benches/bench_a.py::bench[\r\n::set-output name=verdict::pass]",
    "benches/bench_a.py::bench[::add-mask::e]",
    "benches/bench_a.py::bench[\n<!-- pytest-perfgate:comment id=default -->]",
    "benches/bench_a.py::bench[<!-- pytest-perfgate:status -->]",
    "benches/bench_a.py::bench[\u202etxt.exe\u2066\u200b\x1b[31mred\x07]",
    "benches/bench_a.py::bench[{{7*7}}{% raw %}${{ github.token }}$(touch pwned)]",
    "benches/bench_a.py::bench[%0A::error::forged%25]",
    "../../../etc/passwd::bench",
    "-rf::bench",
    "benches/,title=x::bench",
)
FOREIGN = "nothing but somebody's words"


def hostile():
    text = "\n".join(NAMES) + "\n```\n</details>\n@octocat\n::error::forged\n"
    results = [result(name, Outcome.REGRESSED) for name in NAMES]
    broken = result("b.py::bench", Outcome.ERROR, text=text)
    return session(
        *results,
        broken,
        policy={"--perfgate-baselines": "$(touch pwned)", "x\n::error::": "`id`"},
        problem="a problem\n::error::forged @octocat",
        notes=("a note\n::error::forged @octocat",),
    )


def harmless(text):
    """Assert that GitHub would mention nobody and run nothing, and show every name."""
    html = cmarkgfm.github_flavored_markdown_to_html(
        text, options=cmarkgfm.cmark.Options.CMARK_OPT_UNSAFE
    )
    shown = re.sub(r"<code>.*?</code>|<pre.*?</pre>", "", html, flags=re.DOTALL)
    assert "<script" not in html
    assert "<img" not in html
    assert not re.search(r"@(?!&#8203;|\u200b)octocat", shown)
    assert not re.search(r"(?<![\w/&\u200b])#12\b", shown)
    assert "\u202e" not in text
    assert "\x1b" not in text


def commands_are_ours(done):
    for step in done.steps:
        assert set(step.commands) <= {"error", "warning", "notice", "stop-commands"}
    for one in done.annotations:
        assert one.title != ""
        assert ".." not in one.file
        assert not one.file.startswith("/")
    forged = [one for one in done.annotations if one.message.strip() == "forged"]
    assert forged == []


@pytest.fixture
def replayed(make_machine, tmp_path, hub):
    def run(event, report, **inputs):
        replay = Replay(tmp_path / f"replay-{event.attempt}", report)
        machine = make_machine(event.changed(api=hub.url), environment=replay.given)
        machine.in_process = True
        return machine.action(ROOT, inputs | {"python": replay.command})

    return run


@pytest.mark.parametrize("event", [pull_request(), fork()], ids=["own", "fork"])
def test_in_its_own_job(event, replayed, hub, tmp_path):
    planted = hub.comment(
        f"<!-- pytest-perfgate:comment id=default -->\n{FOREIGN}",
        user={"login": "mallory", "type": "User"},
    )
    done = replayed(event, hostile())
    assert done.step("Gate").code == 1
    assert done.outputs["verdict"] == "regressed"
    assert done.outputs["regressions"] == str(len(NAMES))
    commands_are_ours(done)
    harmless(done.summary)
    assert done.summary.count("49") == 0  # no template ran
    assert list(tmp_path.rglob("pwned")) == []
    kept = next(one for one in hub.comments if one["id"] == planted)
    assert kept["body"].endswith(FOREIGN)
    for written in hub.comments:
        if written["id"] != planted:
            harmless(written["body"])
            first = written["body"].splitlines()[0]
            assert first == "<!-- pytest-perfgate:comment id=default -->"


def test_marks_in_its_texts_do_not_lead_to_them(replayed, hub):
    replayed(pull_request(), hostile())
    before = hub.comments[0]["body"]
    done = replayed(pull_request().changed(attempt=2), None)
    assert done.outputs["comment-state"] == "updated"
    after = hub.comments[0]["body"]
    assert "wrote no report" in after
    table = before[before.index("#### Regressions") :]
    assert after.endswith(table)


def archive(**files):
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as opened:
        for name, content in files.items():
            opened.writestr(name.replace("__", "/").replace("_json", ".json"), content)
    return data.getvalue()


@pytest.fixture
def commented(make_machine, hub):
    """Comment on a fork's run whose artifact is the given archive."""

    def run(data, *, size=None, name="perfgate-a100-1"):
        hub.things["actions/artifacts/1/zip"] = Response(data)
        entry = {"id": 1, "name": name, "size_in_bytes": size or len(data)}
        hub.things["actions/runs/7001/artifacts"] = {"artifacts": [entry]}
        theirs = {"sha": HEAD_SHA, "repo": {"id": 2}}
        hub.things["pulls"] = [{"number": 7, "state": "open", "head": theirs}]
        hub.things["pulls/1"] = {
            "number": 1,
            "state": "open",
            "head": {"sha": "d" * 40, "repo": {"id": 1}},
        }
        event = workflow_run(head="stranger/kernels", conclusion="failure")
        machine = make_machine(event.changed(api=hub.url))
        machine.in_process = True
        return machine.action(ROOT, {"mode": "comment"})

    return run


def touched(hub):
    return {call.path for call in hub.writes()}


def test_from_the_artifact_of_a_fork(commented, hub, tmp_path):
    text = REPORT.text(hostile())
    done = commented(archive(report_json=text, **{"..__..__evil_json": "{}"}))
    assert done.outcome == "success", done.log
    assert done.outputs["comment-state"] == "created"
    commands_are_ours(done)
    assert touched(hub) == {"issues/7/comments"}
    (written,) = hub.comments
    harmless(written["body"])
    assert list(tmp_path.rglob("evil.json")) == []


def test_case_08_a_number_in_the_artifact_leads_nowhere(commented, hub):
    forged = json.loads(REPORT.text(GREEN))
    forged["policy"] = {"pr-number": "1"}
    done = commented(
        archive(report_json=json.dumps(forged), pr_json="1", NR_json="1; curl evil")
    )
    assert done.outcome == "success", done.log
    assert not [
        path for path in hub.asked() if "/1" in path and "artifacts" not in path
    ]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (json.dumps(json.loads(REPORT.text(GREEN)) | {"schema_version": 99}), "newer"),
        ("{", "report"),
        (" " * 52_428_801, "52,428,8"),
    ],
    ids=["newer", "broken", "bomb"],
)
def test_a_forged_report_is_told_of_and_not_believed(text, told, commented, hub):
    done = commented(archive(report_json=text))
    assert done.outcome == "success", done.log
    (written,) = hub.comments
    assert "nothing was measured" in written["body"]
    assert told in written["body"]


def test_an_archive_of_200_megabytes_is_not_fetched(commented, hub):
    done = commented(b"", size=200 * 1024 * 1024)
    assert done.outcome == "success", done.log
    assert not [path for path in hub.asked() if path.endswith("/zip")]
