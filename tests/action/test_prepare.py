"""The first step: wrong inputs, Pythons of all kinds, the folder of the report."""

import os
import sys
from pathlib import Path

import pytest

from pytest_perfgate import __version__
from tests.action.events import fork, push, target
from tests.action.runner import ROOT, Step

STEP = {
    "name": "Prepare",
    "shell": "bash",
    "run": 'exec bash "$GITHUB_ACTION_PATH/.github/action/prepare.sh"',
}
DEFAULTS = {
    "MODE": "all",
    "WORKING_DIRECTORY": ".",
    "INSTALL": "auto",
    "FAIL_ON": "policy",
    "COMMENT": "auto",
    "COMMENT_ID": "default",
    "ACCEPT_LABEL": "perf-regression-accepted",
    "SUMMARY": "true",
    "ANNOTATIONS": "true",
}


@pytest.fixture
def prepare(make_machine):
    """Run the step alone."""

    def run(event=None, *, path=None, **inputs):
        machine = make_machine(event or push())
        if path is not None:
            machine.given["PATH"] = path
        step = Step(name="Prepare")
        own = {f"PERFGATE_{k}": v for k, v in (DEFAULTS | inputs).items()}
        machine.run(STEP, step, own, ROOT)
        step.machine = machine
        return step

    return run


def only_error(step):
    assert step.code == 4, step.log
    assert step.outputs == {"verdict": "error"}
    (found,) = step.annotations
    assert found.kind == "error"
    return found.message


def make_program(folder, name, text):
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / name
    program.write_text(f"#!/bin/sh\n{text}\n")
    program.chmod(0o755)
    return program


def bare_path(folder):
    """A PATH with bash and what scripts need, without any Python."""
    folder.mkdir()
    for name in ("bash", "sh", "cat", "touch", "env"):
        found = next(
            Path(p) / name for p in ("/usr/bin", "/bin") if Path(p, name).exists()
        )
        (folder / name).symlink_to(found)
    return str(folder)


def test_it_finds_python_and_makes_room(prepare):
    step = prepare()
    assert step.code == 0, step.log
    temporary = step.machine.temporary
    assert step.outputs["report-dir"] == str(temporary / "perfgate")
    assert (temporary / "perfgate").is_dir()
    assert Path(step.outputs["python"]).samefile(sys.executable)
    assert f"action {__version__}, plugin {__version__}, Python 3." in step.log
    assert not step.annotations


WRONG = {
    "MODE": ("gates", "all, measure, gate, comment"),
    "INSTALL": ("yes", "auto, never"),
    "FAIL_ON": ("regression", "policy, regressed, never"),
    "MEASURE_RESULT": ("ok", "(empty), success, failure, cancelled, skipped"),
    "COMMENT": ("no", "auto, always, never"),
    "COMMENT_ID": ("a--b", "without two dashes in a row"),
    "SUMMARY": ("True", "true, false"),
    "ANNOTATIONS": ("1", "true, false"),
    "PR_NUMBER": ("7; curl evil", "must be digits"),
    "PYTHON": ("python 'x", "No closing quotation"),
    "PYTEST_ARGS": ('tests "x', "No closing quotation"),
    "WORKING_DIRECTORY": ("../other", "outside of the workspace"),
    "ACCEPT_LABEL": ("a\n::error::b", "must be one line"),
}


def test_all_wrong_inputs_are_told_at_once_with_their_choices(prepare):
    message = only_error(prepare(**{name: value for name, (value, _) in WRONG.items()}))
    first, *lines = message.splitlines()
    assert first == "wrong inputs:"
    assert len(lines) == len(WRONG)
    for name, (value, told) in WRONG.items():
        (line,) = (
            one for one in lines if one.startswith(name.lower().replace("_", "-") + ":")
        )
        assert repr(value) in line
        assert told in line


def test_case_09_a_number_with_more_behind_it_reaches_nothing(prepare):
    step = prepare(PR_NUMBER="7\nX=1")
    assert "'7\\nX=1' must be digits" in only_error(step)
    assert step.machine.added == {}


def test_case_39_without_python_one_line_says_what_to_do(prepare, tmp_path):
    message = only_error(prepare(path=bare_path(tmp_path / "programs")))
    assert "no Python 3.11 or newer" in message
    assert "actions/setup-python" in message
    assert "self-hosted" in message


def test_a_python_that_is_too_old_is_none(prepare, tmp_path):
    path = bare_path(tmp_path / "programs")
    make_program(tmp_path / "programs", "python3", "exit 1")
    assert "no Python 3.11 or newer" in only_error(prepare(path=path))


def test_a_command_that_brings_its_python_is_enough(prepare, tmp_path):
    path = bare_path(tmp_path / "programs")
    tool = make_program(
        tmp_path / "programs", "tool", f'shift; exec "{sys.executable}" "$@"'
    )
    step = prepare(path=path, PYTHON=f"{tool} run")
    assert step.code == 0, step.log


def test_a_folder_that_is_not_there_asks_for_the_checkout(prepare):
    message = only_error(prepare(WORKING_DIRECTORY="packages/model"))
    assert "'packages/model'" in message
    assert "actions/checkout" in message


def test_where_nothing_is_measured_the_folder_need_not_be_there(prepare):
    step = prepare(MODE="gate", WORKING_DIRECTORY="packages/model")
    assert step.code == 0, step.log


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("no-such-python", "cannot be started: No such file"),
        ("false", "exit code 1 and said: nothing"),
        ("echo hello", "no Python that works"),
    ],
)
def test_a_command_that_is_no_python(command, told, prepare):
    message = only_error(prepare(PYTHON=command))
    assert repr(command) in message
    assert told in message


OTHER_PYTHON = """
case "$*" in
  *pip*) {pip} ;;
  *) test -f {installed} && plugin={version} || plugin=
     printf '{{"path": "%s", "version": [3, {minor}, 0], "plugin": "%s"}}\\n' \
       "{executable}" "$plugin" ;;
esac
"""


@pytest.fixture
def other(tmp_path):
    """A Python without the plugin, whose pip does what the test says."""

    def make(pip, *, minor=12, version=__version__, installed=False):
        mark = tmp_path / "installed"
        if installed:
            mark.touch()
        text = OTHER_PYTHON.format(
            pip=pip.format(mark=mark),
            installed=mark,
            minor=minor,
            version=version,
            executable=sys.executable,
        )
        return str(make_program(tmp_path / "other", "python", text))

    return make


def test_the_plugin_of_the_action_is_installed_where_there_is_none(prepare, other):
    python = other('echo "pip was told: $*"; touch {mark}')
    step = prepare(PYTHON=python)
    assert step.code == 0, step.log
    assert f"pip install --disable-pip-version-check {ROOT}" in step.log


def test_nothing_is_installed_where_it_may_not_be(prepare, other):
    message = only_error(prepare(PYTHON=other("touch {mark}"), INSTALL="never"))
    assert "install is 'never'" in message


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("error: externally-managed-environment", "belongs to the system"),
        ("/usr/bin/python: No module named pip", "has no pip"),
        ("::error::forged", "see what pip said above"),
    ],
)
def test_a_pip_that_refuses_is_told_with_a_hint(said, told, prepare, other):
    step = prepare(PYTHON=other(f"echo '{said}'; exit 3"))
    message = only_error(step)
    assert "exit code 3" in message
    assert told in message
    assert "break-system-packages" not in step.log


def test_an_installation_that_python_does_not_find(prepare, other):
    message = only_error(prepare(PYTHON=other("true")))
    assert "does not find it" in message


def test_other_versions_are_told(prepare, other):
    step = prepare(PYTHON=other("exit 1", version="9.9.9", installed=True))
    assert step.code == 0, step.log
    (warning,) = step.annotations
    assert warning.kind == "warning"
    assert f"the action is version {__version__}" in warning.message
    assert "version 9.9.9" in warning.message


def test_the_users_python_must_be_recent(prepare, other):
    message = only_error(prepare(PYTHON=other("exit 1", minor=9, installed=True)))
    assert "Python 3.9.0" in message
    assert "3.11 or newer" in message


def test_stale_reports_are_deleted(prepare, tmp_path):
    folder = tmp_path / "report"
    (folder / "runs").mkdir(parents=True)
    (folder / ".perfgate-run-folder").touch()
    (folder / "report.json").write_text("{}")
    step = prepare(REPORT_DIR=str(folder))
    assert step.code == 0, step.log
    assert step.outputs["report-dir"] == str(folder)
    assert list(folder.iterdir()) == []


def test_what_others_wrote_is_kept(prepare, tmp_path):
    folder = tmp_path / "report"
    folder.mkdir()
    (folder / "thesis.tex").write_text("…")
    message = only_error(prepare(REPORT_DIR=str(folder)))
    assert "'thesis.tex'" in message
    assert (folder / "thesis.tex").exists()


def test_a_link_is_no_folder_for_the_report(prepare, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    assert "is no folder" in only_error(prepare(REPORT_DIR=str(tmp_path / "link")))


def test_reports_to_be_judged_are_kept(prepare, tmp_path):
    report = tmp_path / "reports" / "perfgate-cpu-1" / "report.json"
    report.parent.mkdir(parents=True)
    report.write_text("{}")
    step = prepare(MODE="gate", REPORT_DIR=str(tmp_path / "reports"))
    assert step.code == 0, step.log
    assert report.read_text() == "{}"


def test_the_code_of_a_fork_is_not_measured_with_its_targets_rights(prepare, tmp_path):
    python = make_program(tmp_path / "own", "python", f"touch {tmp_path}/ran; exit 1")
    step = prepare(target(head="stranger/kernels"), PYTHON=str(python))
    assert "the code of a fork is not measured here" in only_error(step)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("head", ["", "stranger/kernels"])
def test_a_target_event_that_tells_no_head_is_taken_for_a_fork(head, prepare):
    assert "not measured here" in only_error(prepare(target(head=head)))


def test_a_branch_of_our_own_may_be_measured_there(prepare):
    assert prepare(target()).code == 0


def test_a_fork_may_be_measured_on_its_own_event(prepare):
    assert prepare(fork()).code == 0


def test_nothing_of_the_checkout_is_imported(prepare, make_machine):
    workspace = make_machine(push()).workspace
    for name in ("json", "pytest_perfgate", "secrets"):
        (workspace / f"{name}.py").write_text("raise SystemExit('imported!')")
    step = prepare(PYTHON=f"{os.fspath(sys.executable)}")
    assert step.code == 0, step.log
    assert "imported!" not in step.log
