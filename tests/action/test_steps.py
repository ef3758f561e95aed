"""Single steps of the action: what a whole run cannot show."""

import importlib.util
import os
import signal
import subprocess
import sys
from types import SimpleNamespace

import pytest

from pytest_perfgate import __version__
from pytest_perfgate.cli import main
from tests.action.events import push
from tests.action.runner import ROOT, read_file

STEP = ROOT / ".github" / "action" / "step.py"
PATIENT = """
import signal, sys

def end(number, frame):
    print("told to end", flush=True)
    sys.exit(2)

signal.signal(signal.SIGTERM, end)
signal.signal(signal.SIGINT, end)
print("ready", flush=True)
while True:
    signal.pause()
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_what_ends_the_step_ends_pytest_and_is_waited_for(number, tmp_path):
    (tmp_path / "pytest.py").write_text(PATIENT)
    output = tmp_path / "output"
    given = {
        "GITHUB_WORKSPACE": str(tmp_path),
        "GITHUB_OUTPUT": str(output),
        "PERFGATE_TOOL": sys.executable,
        "PERFGATE_WORKING_DIRECTORY": ".",
        "PERFGATE_REPORT_DIR": str(tmp_path / "report"),
        **push().variables(tmp_path),
    }
    with subprocess.Popen(
        [sys.executable, "-P", str(STEP), "measure"],
        env=os.environ | given,
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        for line in process.stdout:
            if line == "ready\n":
                process.send_signal(number)
                break
        rest = process.stdout.read()
    assert process.returncode == 0
    assert "told to end" in rest
    assert read_file(output.read_text()) == {"exit-code": "2"}


@pytest.mark.parametrize("code", ["", "none", "-1"])
def test_without_a_verdict_the_gate_is_red(code, monkeypatch, capsys):
    monkeypatch.setenv("PERFGATE_CODE", code)
    monkeypatch.setenv("PERFGATE_GATE_CODE", code)
    assert main(["action", "gate"]) == 3
    assert capsys.readouterr().out.startswith("::error title=pytest-perfgate::")


def test_the_gate_ends_as_it_was_decided(monkeypatch, capsys):
    given = {"CODE": "12", "GATE_CODE": "0", "VERDICT": "invalid"}
    given |= {"SENTENCE": "\n::error::x ##[error]", "FAIL_ON": "regressed"}
    for name, value in given.items():
        monkeypatch.setenv(f"PERFGATE_{name}", value)
    assert main(["action", "gate"]) == 0
    told = capsys.readouterr().out
    assert "exit code 0 and not 12, by fail-on: regressed" in told
    assert "\n::error::x" not in told
    assert "##[" not in told


def test_an_unknown_step_is_wrong_use(capsys):
    assert main(["action", "celebrate"]) == 4
    assert "celebrate" in capsys.readouterr().err


# -- a Python for the job that judges


@pytest.fixture
def prepare():
    spec = importlib.util.spec_from_file_location(
        "prepare", ROOT / ".github" / "action" / "prepare.py"
    )
    module = importlib.util.module_from_spec(spec)
    sys.modules["prepare"] = module  # dataclasses look there
    spec.loader.exec_module(module)
    return module


GIVEN = {"python": "python", "install": "auto"}


@pytest.fixture
def bare(prepare, monkeypatch):
    """A Python without the plugin; what is started is noted, and ends well."""
    started = []

    def run(line, **_):
        started.append(line)
        return SimpleNamespace(returncode=codes.pop(0) if codes else 0, stdout="::no")

    def probe(command, _):
        inside = "perfgate-python" in command[0]
        return prepare.Python(
            path=command[0], version=(3, 12, 0), plugin=__version__ if inside else ""
        )

    codes = []
    monkeypatch.setattr(prepare.subprocess, "run", run)
    monkeypatch.setattr(prepare, "probe", probe)
    return SimpleNamespace(started=started, codes=codes)


def test_a_job_that_judges_gets_a_python_of_its_own(prepare, bare, tmp_path):
    found = prepare.judging_python(GIVEN, tmp_path)
    inside = str(tmp_path / "perfgate-python" / "bin" / "python")
    assert found.path == inside
    make, install = bare.started
    assert make == [
        sys.executable,
        "-m",
        "venv",
        "--clear",
        str(tmp_path / "perfgate-python"),
    ]
    assert install[:4] == [inside, "-m", "pip", "install"]
    assert install[-1] == str(ROOT)


def test_no_environment_can_be_made(prepare, bare, tmp_path, capsys):
    bare.codes.append(1)
    with pytest.raises(prepare.Refused, match="python3-venv"):
        prepare.judging_python(GIVEN, tmp_path)
    assert not capsys.readouterr().out.startswith("::")


def test_a_job_that_judges_installs_nothing_where_it_may_not(prepare, bare, tmp_path):
    with pytest.raises(prepare.Refused, match="install is 'never'"):
        prepare.judging_python(GIVEN | {"install": "never"}, tmp_path)
    assert bare.started == []
