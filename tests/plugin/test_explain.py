"""Whom a session explains, and since which commit."""

import json

import pytest

SLOWER = {"*": {"seconds": 0.002}}


@pytest.fixture
def grown(stored, make_checkout):
    """Two commits after its baseline was recorded, half as fast."""
    checkout = make_checkout(stored.path)
    checkout.write({".gitignore": "fake-device.json\n.perfgate/\n"})
    begin = checkout.commit("Begin")
    file = stored.baseline()
    document = json.loads(file.read_text())
    (benchmark,) = document["benchmarks"].values()
    benchmark["sessions"][0]["commit"] = begin[:12]
    file.write_text(json.dumps(document))
    for subject in ("Record it", "Take a slower way \x1b[31m*all*"):
        checkout.commit(subject)
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
