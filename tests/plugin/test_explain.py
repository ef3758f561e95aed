"""Whom a session explains, and since which commit."""

import json
import subprocess

import pytest

SLOWER = {"*": {"seconds": 0.002}}


def git(path, *arguments):
    done = subprocess.run(
        ["git", "-c", "user.name=u", "-c", "user.email=u@example.com", *arguments],
        cwd=path,
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout.strip()


@pytest.fixture
def grown(stored):
    """Two commits after its baseline was recorded, half as fast."""
    git(stored.path, "init", "-q")
    (stored.path / ".gitignore").write_text("fake-device.json\n.perfgate/\n")
    git(stored.path, "add", "-A")
    git(stored.path, "commit", "-qm", "Begin")
    file = stored.baseline()
    document = json.loads(file.read_text())
    (benchmark,) = document["benchmarks"].values()
    benchmark["sessions"][0]["commit"] = git(stored.path, "rev-parse", "HEAD")[:12]
    file.write_text(json.dumps(document))
    for subject in ("Record it", "Take a slower way \x1b[31m*all*"):
        git(stored.path, "commit", "-qam", subject, "--allow-empty")
    stored.device(SLOWER, salt=1)
    return stored


def explanation(project):
    (result,) = project.report["results"]
    return [line["text"] for line in result.get("explanation", ())]


def test_what_regressed_names_the_commits_in_between(grown):
    result = grown.run("--perfgate-runs=3:3")
    assert result.ret == 1
    lines = explanation(grown)
    assert lines[0].startswith("2 commits since the baseline's ")
    assert lines[1].endswith(": Take a slower way \x1b[31m*all*")
    assert lines[2].endswith(": Record it")
    said = result.stdout.str()
    assert "  changed with it: 2 commits since the baseline's " in said
    assert r": Take a slower way \x1b[31m*all*" in said


def test_another_word_is_refused(stored):
    result = stored.run("--perfgate-explain=maybe")
    assert result.ret == 4
    result.stderr.fnmatch_lines(["*--perfgate-explain*maybe*"])
