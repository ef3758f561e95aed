"""The workflows that we ship, job after job, on every event that they know."""

import io
import os
import zipfile

import pytest
from werkzeug import Response

from tests.action.checkout import git
from tests.action.events import (
    HEAD_SHA,
    dispatch,
    fork,
    merge_group,
    pull_request,
    push,
    workflow_run,
)
from tests.action.reports import GREEN, RED, Replay
from tests.action.runner import ROOT, Workflow

FOLDER = ROOT / "docs" / "workflows"


@pytest.fixture
def perf(tmp_path, hub):
    """Run perf.yml; pytest leaves the given report. A second run is attempt 2."""

    def run(event, report=GREEN, *, code=None, artifacts=None):
        place = tmp_path / f"run-{len(made)}"
        place.mkdir()
        replay = Replay(place / "replay", report, code=code)
        workflow = Workflow(
            FOLDER / "perf.yml",
            place,
            event.changed(api=hub.url),
            checkout=checkout,
            environment=replay.given,
        )
        if artifacts:
            workflow.store.folder = artifacts
        workflow.run()
        workflow.replay = replay
        made.append(workflow)
        return workflow

    checkout = tmp_path / "checkout"
    checkout.mkdir()
    made = []
    return run


def gate_of(workflow):
    return workflow.jobs["gate"].fields["OWNER/pytest-perfgate"]


def results(workflow):
    return {name: job.outcome for name, job in workflow.jobs.items()}


def test_a_pull_request_of_our_own(perf):
    done = perf(pull_request())
    assert results(done) == {
        "measure": "success",
        "measure-fork": "skipped",
        "gate": "success",
    }
    assert gate_of(done).outputs["verdict"] == "pass"
    assert "2 benchmarks: 2 unchanged" in gate_of(done).summary
    names = [path.name for path in done.store.folder.iterdir()]
    assert names == ["perfgate-a100-1"]


def test_a_regression_fails_the_gate_and_not_the_measurement(perf, hub):
    done = perf(pull_request(), RED)
    assert results(done) == {
        "measure": "success",
        "measure-fork": "skipped",
        "gate": "failure",
    }
    gate = gate_of(done)
    assert gate.step("Gate").code == 1
    assert gate.outputs["regressions"] == "1"
    assert [one.file for one in gate.annotations] == ["benches/bench_a.py"]
    assert hub.writes() == []  # the comment is another workflow's


def test_a_fork_is_measured_where_its_reviewers_let_it(perf):
    done = perf(fork(), RED)
    assert results(done) == {
        "measure": "skipped",
        "measure-fork": "success",
        "gate": "failure",
    }
    assert gate_of(done).outputs["verdict"] == "regressed"


@pytest.mark.parametrize("event", [pull_request(draft=True), fork(draft=True)])
def test_case_42_a_draft_is_not_measured_and_not_green(event, perf):
    done = perf(event)
    assert results(done) == {
        "measure": "skipped",
        "measure-fork": "skipped",
        "gate": "failure",
    }
    gate = gate_of(done)
    assert gate.outputs["verdict"] == "invalid"
    assert gate.step("Gate").code == 5
    assert "was skipped: nothing was measured" in gate.summary


@pytest.mark.parametrize(
    "event", [merge_group(), push(), dispatch()], ids=lambda one: one.name
)
def test_other_events_are_gated_too(event, perf, hub):
    assert results(perf(event))["gate"] == "success"
    assert results(perf(event, RED))["gate"] == "failure"
    assert hub.calls == []


def test_case_50_a_measurement_that_left_nothing_is_an_error(perf):
    done = perf(pull_request(), None, code=3)
    assert results(done)["measure"] == "failure"  # there was nothing to upload
    gate = gate_of(done)
    assert gate.outputs["verdict"] == "error"
    assert gate.step("Gate").code == 3
    assert "'failure'" in gate.summary


def test_case_17_a_second_attempt_is_judged_by_the_baselines_again(perf):
    first = perf(pull_request(), RED)
    again = perf(pull_request().changed(attempt=2), RED, artifacts=first.store.folder)
    names = sorted(path.name for path in again.store.folder.iterdir())
    assert names == ["perfgate-a100-1", "perfgate-a100-2"]
    assert results(again)["gate"] == "failure"
    assert gate_of(again).outputs["regressions"] == "1"


def test_the_highest_attempt_of_a_leg_counts(perf):
    first = perf(pull_request(), RED)
    again = perf(pull_request().changed(attempt=2), GREEN, artifacts=first.store.folder)
    assert results(again)["gate"] == "success"
    assert gate_of(again).outputs["verdict"] == "pass"


def test_case_24_a_second_push_that_keeps_the_regression_is_red(perf):
    assert results(perf(pull_request(), RED))["gate"] == "failure"
    assert results(perf(pull_request(action="synchronize"), RED))["gate"] == "failure"


# -- the comment


def pull(number=7, *, sha=HEAD_SHA, repository=1):
    return {
        "number": number,
        "state": "open",
        "body": "",
        "head": {"sha": sha, "repo": {"id": repository}},
    }


def offer(hub, store):
    """Let GitHub have the artifacts of a run."""
    artifacts = []
    for number, folder in enumerate(sorted(store.folder.iterdir()), 1):
        data = io.BytesIO()
        with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
            for file in sorted(folder.rglob("*")):
                if file.is_file():
                    archive.write(file, file.relative_to(folder))
        hub.things[f"actions/artifacts/{number}/zip"] = Response(data.getvalue())
        size = len(data.getvalue())
        artifacts.append({"id": number, "name": folder.name, "size_in_bytes": size})
    hub.things["actions/runs/7001/artifacts"] = {"artifacts": artifacts}


@pytest.fixture
def comment(tmp_path, hub):
    def run(event):
        workflow = Workflow(
            FOLDER / "perf-comment.yml",
            tmp_path / "comment",
            event.changed(api=hub.url),
        )
        return workflow.run()["comment"]

    return run


@pytest.mark.parametrize("kind", ["own", "fork"])
def test_case_06_the_run_that_failed_is_commented_on(kind, perf, comment, hub):
    event, head = (
        (pull_request(), "acme/kernels")
        if kind == "own"
        else (fork(), "stranger/kernels")
    )
    offer(hub, perf(event, RED).store)
    found = pull(repository=1 if kind == "own" else 2)
    hub.things |= {"pulls/7": found, "pulls": [found]}
    done = comment(workflow_run(head=head, conclusion="failure"))
    assert done.outcome == "success", done.log
    outputs = done.fields["OWNER/pytest-perfgate"].outputs
    assert outputs["comment-state"] == "created"
    assert outputs["verdict"] == ""
    (written,) = hub.comments
    assert "bench_fast" in written["body"]
    assert HEAD_SHA in written["body"]


@pytest.mark.parametrize(
    "event",
    [workflow_run(conclusion="cancelled"), workflow_run(event="push")],
    ids=["cancelled", "push"],
)
def test_other_runs_are_not_commented_on(event, comment, hub):
    assert comment(event).outcome == "skipped"
    assert hub.calls == []


def test_a_run_without_a_report_is_told_of(comment, hub):
    hub.things |= {"pulls/7": pull(), "actions/runs/7001/artifacts": {"artifacts": []}}
    done = comment(workflow_run(conclusion="failure"))
    assert done.outcome == "success", done.log
    (written,) = hub.comments
    assert "left no report" in written["body"]


def test_a_pull_request_that_moved_on_is_left_alone(perf, comment, hub):
    offer(hub, perf(pull_request(), RED).store)
    hub.things |= {"pulls/7": pull(sha="d" * 40), "pulls": [pull(sha="d" * 40)]}
    done = comment(workflow_run(conclusion="failure"))
    outputs = done.fields["OWNER/pytest-perfgate"].outputs
    assert outputs["comment-state"] == "stale"
    assert hub.comments == []


@pytest.mark.parametrize("broken", [403, 404])
def test_a_github_that_fails_fails_no_job(broken, perf, comment, hub):
    offer(hub, perf(pull_request(), RED).store)
    hub.refuse("GET", "artifacts", broken, {"message": "is locked"})
    hub.things["pulls/7"] = pull()
    done = comment(workflow_run(conclusion="failure"))
    assert done.outcome == "success", done.log


# -- new baselines, and the gate again

GH = """#!/bin/sh
for word; do printf '%s\\n' "$word"; done >> "$HOME/asked"
echo --- >> "$HOME/asked"
case "$*" in
  "run list"*) echo 7001 ;;
  "run view"*) echo 81 ;;
esac
"""


@pytest.fixture
def gh(tmp_path, monkeypatch):
    """A command `gh` that keeps what it was asked."""
    folder = tmp_path / "programs"
    folder.mkdir()
    (folder / "gh").write_text(GH)
    (folder / "gh").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")


def asked(folder):
    text = (folder / "home" / "asked").read_text()
    return [one.strip().split("\n") for one in text.split("---\n") if one.strip()]


def test_the_label_runs_the_gate_again_and_nothing_else(tmp_path, gh):
    event = pull_request().changed(name="pull_request_target")
    event.payload["label"] = {"name": "perf-regression-accepted"}
    done = Workflow(FOLDER / "perf-regate.yml", tmp_path, event).run()["regate"]
    assert done.outcome == "success", done.log
    listed, _, again = asked(tmp_path / "regate")
    assert HEAD_SHA in listed
    assert again == ["run", "rerun", "--job", "81"]


def test_another_label_runs_nothing(tmp_path, gh):
    event = pull_request().changed(name="pull_request_target")
    event.payload["label"] = {"name": "documentation"}
    done = Workflow(FOLDER / "perf-regate.yml", tmp_path, event).run()["regate"]
    assert done.outcome == "skipped"


@pytest.fixture
def update(tmp_path, gh):
    """Run perf-update-baselines.yml, with a `python` that does what a test says."""

    def run(script, **inputs):
        origin, checkout = tmp_path / "origin.git", tmp_path / "checkout"
        git(tmp_path, "init", "-q", "--bare", str(origin))
        git(tmp_path, "init", "-q", "-b", "release", str(checkout))
        (checkout / "baselines").mkdir()
        (checkout / "baselines" / "old.json").write_text("{}\n")
        (checkout / "code.py").write_text("pass\n")
        git(checkout, "add", "-A")
        git(checkout, "commit", "-q", "-m", "first")
        git(checkout, "remote", "add", "origin", str(origin))
        python = tmp_path / "programs" / "python"
        python.write_text(
            '#!/bin/sh\nprintf \'%s\\n\' "$@" > words\nmkdir -p "$RUNNER_TEMP/perfgate"\n'
            'echo "### 1 recorded" > "$RUNNER_TEMP/perfgate/report.md"\n'
            f"{script}\n"
        )
        python.chmod(0o755)
        event = dispatch(**inputs).changed(ref="refs/heads/release")
        workflow = Workflow(
            FOLDER / "perf-update-baselines.yml",
            tmp_path / "update",
            event,
            checkout=checkout,
        )
        workflow.run()
        workflow.origin = origin
        return workflow

    return run


def test_new_baselines_are_proposed_against_the_branch_they_are_for(update, tmp_path):
    script = "echo '{}' > baselines/new.json; echo '[]' > baselines/old.json; echo 1 > code.py"
    done = update(script, select="fast; touch pwned", reason="new `driver` $(id)")
    assert {job.outcome for job in done.jobs.values()} == {"success"}, done.jobs
    words = (tmp_path / "update" / "measure" / "workspace" / "words").read_text()
    assert words.splitlines()[-2:] == ["-k", "fast; touch pwned"]
    (created,) = asked(tmp_path / "update" / "propose")
    assert created[:6] == [
        *("pr", "create", "--base", "release"),
        *("--head", "perfgate/update-7001-1"),
    ]
    body = (tmp_path / "update" / "propose" / "temporary" / "body.md").read_text()
    assert "new `driver` $(id)" in body
    assert "### 1 recorded" in body
    branch = "perfgate/update-7001-1"
    changed = git(done.origin, "show", "--name-only", "--format=%s%n%b", branch)
    assert "new `driver` $(id)" in changed
    assert changed.split()[-2:] == ["baselines/new.json", "baselines/old.json"]
    assert list(tmp_path.rglob("pwned")) == []


def test_baselines_that_did_not_change_are_not_proposed(update):
    done = update("true", select="", reason="nothing")
    assert done.jobs["propose"].outcome == "success"
    assert "unchanged" in done.jobs["propose"].summary
    assert git(done.origin, "branch") == ""
