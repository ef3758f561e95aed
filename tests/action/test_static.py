"""action.yml and the workflows: what linters say, and what they do not look for."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.action.runner import ROOT, load

PROGRAMS = Path(sys.executable).parent
ACTION = ROOT / "action.yml"
EXAMPLES = sorted((ROOT / "docs" / "workflows").glob("*.yml"))
OURS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
WORKFLOWS = [*EXAMPLES, *OURS]
every_workflow = pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.name)
every_file = pytest.mark.parametrize(
    "file", [ACTION, *WORKFLOWS], ids=lambda file: file.name
)
TOKEN_STEPS = {"Report", "Comment"}


def program(name, *arguments):
    done = subprocess.run(
        [str(PROGRAMS / name), *map(str, arguments)],
        check=False,
        cwd=ROOT,
        env={**os.environ, "PATH": f"{PROGRAMS}:{os.environ['PATH']}", "NO_COLOR": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    return done.returncode, done.stdout


def steps(file):
    definition = load(file)
    if "runs" in definition:
        return definition["runs"]["steps"]
    return [step for job in definition["jobs"].values() for step in job["steps"]]


# -- linters


def test_the_action_fits_its_schema():
    assert program(
        "check-jsonschema", "--builtin-schema", "vendor.github-actions", ACTION
    ) == (0, "ok -- validation done\n")


def test_workflows_fit_their_schema():
    code, told = program(
        "check-jsonschema", "--builtin-schema", "vendor.github-workflows", *WORKFLOWS
    )
    assert (code, told) == (0, "ok -- validation done\n")


def test_case_37_zizmor_finds_nothing():
    code, told = program(
        "zizmor", "--offline", "--min-severity", "medium", ACTION, *WORKFLOWS
    )
    assert code == 0, told
    assert "No findings to report" in told
    assert told.count("completed") == 1 + len(WORKFLOWS)  # none was skipped


def test_zizmor_would_find_what_is_wrong(tmp_path):
    wrong = tmp_path / "action.yml"
    text = ACTION.read_text().replace(
        'exec bash "$GITHUB_ACTION_PATH/', 'exec bash "${{ inputs.python }}/'
    )
    wrong.write_text(text)
    code, told = program("zizmor", "--offline", "--min-severity", "medium", wrong)
    assert code != 0
    assert "template-injection" in told


def test_actionlint_finds_nothing():
    code, told = program(
        "actionlint", "-config-file", ROOT / ".github" / "actionlint.yaml", *WORKFLOWS
    )
    assert code == 0, told


def test_shellcheck_finds_nothing(tmp_path):
    scripts = [ROOT / ".github" / "action" / "prepare.sh"]
    for file in (ACTION, *WORKFLOWS):
        for number, step in enumerate(one for one in steps(file) if "run" in one):
            script = tmp_path / f"{file.stem}-{number}.sh"
            head = "#!/usr/bin/env bash\nset -eo pipefail\n"
            script.write_text(f"{head}{step['run']}\n")
            scripts.append(script)
    code, told = program("shellcheck", *scripts)
    assert code == 0, told


# -- what we ask of our own files


@every_file
def test_nothing_is_filled_into_a_script(file):
    assert not [step for step in steps(file) if "${{" in step.get("run", "")]


def test_case_38_the_actions_folder_is_taken_from_the_environment():
    assert "github.action_path" not in ACTION.read_text()
    runs = [step["run"] for step in steps(ACTION)]
    assert all("$GITHUB_ACTION_PATH/" in run for run in runs)


def test_case_47_the_action_uses_no_other():
    assert not [step for step in steps(ACTION) if "uses" in step]


def test_every_step_runs_in_bash():
    assert {step["shell"] for step in steps(ACTION)} == {"bash"}


def test_the_token_is_given_to_two_steps_alone():
    given = {
        step["name"] for step in steps(ACTION) if "github-token" in str(step["env"])
    }
    assert given == TOKEN_STEPS
    assert not any("github.token" in str(step) for step in steps(ACTION))


def test_every_input_is_used_and_checked_first():
    definition = load(ACTION)
    text = str(steps(ACTION))
    first = str(steps(ACTION)[0]["env"])
    for name in definition["inputs"]:
        assert f"inputs.{name} " in text, name
        assert name == "github-token" or f"inputs.{name} " in first, name


def test_the_types_are_those_of_the_action():
    definition, types = load(ACTION), load(ROOT / "action-types.yml")
    assert list(types["inputs"]) == list(definition["inputs"])
    assert list(types["outputs"]) == list(definition["outputs"])
    for name, one in types["inputs"].items():
        default = definition["inputs"][name].get("default", "")
        if one["type"] == "enum":
            assert default in one["allowed-values"], name
            told = definition["inputs"][name]["description"]
            assert all(choice in told for choice in one["allowed-values"]), name
        if one["type"] == "boolean":
            assert default in {"true", "false"}, name


def test_the_page_tells_every_input_and_output():
    page = (ROOT / "docs" / "ci.md").read_text()
    definition = load(ACTION)
    for title, names in (
        ("Inputs", list(definition["inputs"])),
        ("Outputs", list(definition["outputs"])),
    ):
        section = page.partition(f"\n## {title}\n")[2].partition("\n## ")[0]
        first = re.findall(
            r"^\| (`[^|]+`) \|(?: `?([^|`]*)`? \|)?", section, re.MULTILINE
        )
        assert re.findall(r"`([^`]+)`", " ".join(cell for cell, _ in first)) == names
        if title == "Inputs":
            for (_, told), one in zip(
                first, definition["inputs"].values(), strict=True
            ):
                default = one.get("default", "")
                assert told.strip() in {default, "the job's"}, told


def test_case_41_the_page_pins_to_the_commit_of_a_tag():
    assert "git rev-parse v1^{commit}" in (ROOT / "docs" / "ci.md").read_text()


def test_case_32_the_page_warns_of_short_secrets():
    page = (ROOT / "docs" / "ci.md").read_text()
    section = page.partition("\n## Secrets\n")[2].partition("\n## ")[0]
    assert "letter or two" in section


def test_the_page_links_every_workflow():
    page = (ROOT / "docs" / "ci.md").read_text()
    linked = set(re.findall(r"\]\(workflows/([\w.-]+)\)", page))
    assert linked == {file.name for file in EXAMPLES}


def test_the_marketplace_gets_what_it_asks_for():
    definition = load(ACTION)
    assert {"name", "author", "description", "branding"} <= set(definition)
    assert len(definition["description"]) <= 125


@every_workflow
def test_others_actions_are_pinned_to_a_commit(file):
    uses = re.findall(r"uses: (\S+)(.*)", file.read_text())
    for action, comment in uses:
        assert re.fullmatch(r"[\w.-]+/[\w.-]+@[0-9a-f]{40}|\./", action), action
        assert action == "./" or re.fullmatch(r" # v\d+\.\d+\.\d+", comment), action


@every_workflow
def test_jobs_get_no_more_than_they_need(file):
    definition = load(file)
    assert definition["permissions"] == {}
    for name, job in definition["jobs"].items():
        assert "permissions" in job, name
        assert isinstance(job["timeout-minutes"], int), name


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.name)
def test_case_45_nothing_waits_in_a_group_that_drops_all_but_one(file):
    for job in load(file)["jobs"].values():
        assert "concurrency" not in job
        labels = job["runs-on"]
        assert labels == "ubuntu-latest" or "nvidia-a100" in labels


def types_of(name):
    return load(ROOT / "docs" / "workflows" / name)["on"]["pull_request"]["types"]


@pytest.mark.parametrize("name", ["perf.yml", "perf-quick.yml"])
def test_case_19_a_label_cancels_no_measurement(name):
    assert "labeled" not in types_of(name)
    assert "unlabeled" not in types_of(name)


@pytest.mark.parametrize("name", ["perf.yml", "perf-quick.yml"])
def test_case_42_a_draft_that_is_ready_is_measured(name):
    assert "ready_for_review" in types_of(name)


def test_case_21_upload_and_gate_come_whatever_failed():
    jobs = load(ROOT / "docs" / "workflows" / "perf.yml")["jobs"]
    assert jobs["gate"]["if"] == "${{ !cancelled() }}"
    for name in ("measure", "measure-fork"):
        upload = jobs[name]["steps"][-1]
        assert upload["if"] == "${{ !cancelled() }}"
        assert upload["with"]["if-no-files-found"] == "error"


def test_case_48_a_fork_is_approved_by_run_not_by_comment():
    jobs = load(ROOT / "docs" / "workflows" / "perf.yml")["jobs"]
    assert jobs["measure-fork"]["environment"] == "perf-fork"
    for file in EXAMPLES:
        assert not {"issue_comment", "pull_request_review"} & set(load(file)["on"])


def test_code_of_a_pull_request_never_meets_a_token_that_writes():
    for file in EXAMPLES:
        if file.name == "perf-quick.yml":
            continue  # says so itself
        for name, job in load(file)["jobs"].items():
            text = str(job["steps"])
            runs_its_code = (
                "'measure'" in text or "pytest" in text.partition("OWNER")[0]
            )
            rights = set(job["permissions"].values())
            assert not (runs_its_code and "write" in rights), (file.name, name)


def test_case_43_no_check_runs_and_no_statuses():
    sources = [
        *(ROOT / "pytest_perfgate").rglob("*.py"),
        *(ROOT / ".github" / "action").iterdir(),
        *WORKFLOWS,
        ACTION,
    ]
    for source in sources:
        if source.is_file():
            text = source.read_text(encoding="utf-8")
            assert not re.search(r"check-runs|check_runs|/statuses", text), source


def test_case_49_nothing_is_written_beside_the_temporary_folder():
    text = (ROOT / ".github" / "action" / "prepare.py").read_text()
    assert "cache" not in text
    assert re.findall(r"temporary / \"[\w-]+\"", text) == [
        'temporary / "perfgate-python"',
        'temporary / "perfgate"',
    ]
