"""The same files in somebody else's runner: nektos/act, on this host, offline.

What act knows of Actions was not written by us, so a few whole runs are made with
it; the many cases are the business of our own runner.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.action.checkout import git
from tests.action.events import dispatch, fork, workflow_run
from tests.action.reports import RED, write
from tests.action.runner import ROOT, TOKEN, Store
from tests.action.test_workflows import offer, pull

ACT = Path(sys.executable).with_name("act")
OWN = "OWNER/pytest-perfgate@0123456789012345678901234567890123456789"
PINS = {
    "upload-artifact": "043fb46d1a93c77aae656e7c1c64a875d1fc6a0a",
    "download-artifact": "3e5f45b2cfb9172054b4087a40e8e0b5a5461e7c",
}
STUBS = {
    "upload-artifact": (
        ["name", "path", "if-no-files-found"],
        'mkdir -p "$STORE/$NAME" && cp -r "$FOLDER"/. "$STORE/$NAME"',
    ),
    "download-artifact": (
        ["pattern", "path"],
        'mkdir -p "$FOLDER" && cp -r "$STORE"/. "$FOLDER"',
    ),
}
pytestmark = [
    pytest.mark.act,
    pytest.mark.skipif(not ACT.exists(), reason="the program act is not installed"),
]


@pytest.fixture(scope="session")
def action_folder(tmp_path_factory):
    """The action as a checkout of its repository would have it."""
    folder = tmp_path_factory.mktemp("action")
    shutil.copy(ROOT / "action.yml", folder)
    shutil.copytree(ROOT / ".github" / "action", folder / ".github" / "action")
    shutil.copytree(ROOT / "pytest_perfgate", folder / "pytest_perfgate")
    return folder


@pytest.fixture
def stubs(tmp_path):
    """Actions of others, by folders of a few lines."""
    store = tmp_path / "artifacts"
    store.mkdir()
    for name, (inputs, script) in STUBS.items():
        folder = tmp_path / name
        folder.mkdir()
        names = "".join(
            f"  {one}: {{description: x, required: false}}\n" for one in inputs
        )
        (folder / "action.yml").write_text(
            f"name: {name}\ndescription: stub\ninputs:\n{names}runs:\n"
            "  using: composite\n  steps:\n    - shell: bash\n      env:\n"
            f"        STORE: {store}\n        NAME: ${{{{ inputs.name }}}}\n"
            "        FOLDER: ${{ inputs.path }}\n"
            f"      run: {script}\n"
        )
    return store


@pytest.fixture
def act(tmp_path, hub, stubs, action_folder):
    """Run a shipped workflow on an event; returns what act tells of it."""

    def run(name, event, *, project=None, environment=None):
        folder = project or tmp_path / "repository"
        folder.mkdir(exist_ok=True)
        workflow = (ROOT / "docs" / "workflows" / name).read_text()
        (folder / ".github" / "workflows").mkdir(parents=True)
        (folder / ".github" / "workflows" / name).write_text(workflow)
        for line in ("init -q -b topic", "add -A", "commit -q -m workflow"):
            git(folder, *line.split())
        payload = tmp_path / "event.json"
        payload.write_text(json.dumps(event.payload))
        given = {
            "GITHUB_API_URL": hub.url,
            "GITHUB_REPOSITORY": "acme/kernels",
            "GITHUB_SERVER_URL": "https://ghes.example",
            "GITHUB_RUN_ATTEMPT": "1",
            **(environment or {}),
        }
        local = {OWN: action_folder} | {
            f"actions/{one}@{sha}": tmp_path / one for one, sha in PINS.items()
        }
        done = subprocess.run(
            [
                *(str(ACT), event.name, "--json", "--no-cache-server"),
                *("-W", f".github/workflows/{name}", "-e", str(payload)),
                *("-P", "self-hosted=-self-hosted"),
                *("-P", "ubuntu-latest=-self-hosted"),
                *("-s", "GITHUB_TOKEN"),
                *(word for k, v in given.items() for word in ("--env", f"{k}={v}")),
                *(
                    word
                    for k, v in local.items()
                    for word in ("--local-repository", f"{k}={v}")
                ),
            ],
            check=False,
            cwd=folder,
            env={
                "PATH": os.environ["PATH"],
                "HOME": str(tmp_path / "home"),
                "XDG_CACHE_HOME": str(tmp_path / "cache"),
                "GITHUB_TOKEN": TOKEN,
            },
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert TOKEN not in done.stdout
        lines = [one for one in done.stdout.splitlines() if one.startswith("{")]
        assert lines, done.stdout
        return [json.loads(line) for line in lines]

    return run


def outputs(told):
    """By name: what the action of the last job put out."""
    return {
        one["name"]: one["arg"] for one in told if one.get("command") == "set-output"
    }


def results(told):
    return {one["jobID"]: one["jobResult"] for one in told if "jobResult" in one}


def test_slow_code_is_measured_and_gated(act, make_project):
    project = make_project({"*bench_fast*": {"factor": 1.3}})
    told = act(
        "perf.yml",
        dispatch(),
        project=project.path,
        environment=project.given | {"PYTEST_ADDOPTS": "-k fast"},
    )
    assert results(told) == {"measure": "success", "gate": "failure"}
    put_out = outputs(told)
    assert put_out["verdict"] == "regressed"
    assert put_out["regressions"] == "1"
    (error,) = (one for one in told if one.get("command") == "error")
    assert error["kvPairs"]["file"] == "benches/bench_a.py"
    assert any(
        "bench_fast" in one["content"]
        for one in told
        if one.get("command") == "summary"
    )


def test_case_42_a_draft_is_red_without_a_measurement(act):
    told = act("perf.yml", fork(draft=True))
    assert results(told) == {"gate": "failure"}
    assert outputs(told)["verdict"] == "invalid"


def test_case_32_a_fork_is_commented_on_and_no_secret_is_shown(act, hub, tmp_path):
    store = Store(folder=tmp_path / "offered")
    store.upload("perfgate-a100-1", write(RED, tmp_path / "report"))
    offer(hub, store)
    hub.things["pulls"] = [pull(repository=2)]
    event = workflow_run(head="stranger/kernels", conclusion="failure")
    told = act("perf-comment.yml", event)
    assert results(told) == {"comment": "success"}
    assert outputs(told)["comment-state"] == "created"
    assert outputs(told)["exit-code"] == ""  # no part of it was masked
    (written,) = hub.comments
    assert "bench_fast" in written["body"]
