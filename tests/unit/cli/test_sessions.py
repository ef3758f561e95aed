"""Sessions that a command starts."""

import subprocess

import pytest

from pytest_perfgate.cli import sessions
from pytest_perfgate.errors import UsageError


class Waiting:
    """A session that waits for a device while it is looked at."""

    def __init__(self, log, *lines):
        self._log = log
        self._lines = list(lines)

    def wait(self, timeout):
        if not self._lines:
            return 7
        with self._log.open("a") as log:
            log.write(f"{self._lines.pop(0)}\n")
        raise subprocess.TimeoutExpired("pytest", timeout)


def test_that_a_session_waits_is_handed_on_once(tmp_path, capsys):
    waits = "perfgate: waiting up to 600 s for the device, held by process 1"
    process = Waiting(tmp_path / "log", "collected 1 item", waits, "more")
    assert sessions._followed(process, tmp_path / "log") == 7
    assert capsys.readouterr().err == f"{waits}\n"


@pytest.mark.parametrize(
    "argument",
    ["--perfgate-update", "--perfgate-slowdown=5%", "--perfgate-against=x", "--co"],
)
def test_what_the_command_sets_itself_is_not_handed_on(argument):
    with pytest.raises(UsageError, match=argument):
        sessions.pytest_arguments(["benches", argument])


def test_everything_else_is_handed_on():
    given = ("benches", "-k", "one", "--perfgate-runs=3:3", "--color=yes")
    assert sessions.pytest_arguments(given) == given


def test_sessions_do_not_speak_for_the_job_that_runs_us(monkeypatch, tmp_path):
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", "summary.md")
    monkeypatch.setenv("OWN", "kept")
    environment = sessions.environment_of_sessions(tmp_path)
    assert "GITHUB_STEP_SUMMARY" not in environment
    assert environment["OWN"] == "kept"
    assert environment["PYTHONDONTWRITEBYTECODE"] == "1"


@pytest.mark.parametrize(
    ("code", "kind"), [(4, UsageError), (2, sessions.SessionBroke)]
)
def test_a_session_that_broke_has_the_last_word(code, kind):
    said = "\n".join(["first", *("more",) * 20, "", "it fell over"])
    error = sessions._broken("same code", code, said)
    assert isinstance(error, kind)
    assert str(error).startswith(f"pytest ended with exit {code} (same code):\n")
    assert str(error).endswith("  it fell over")
    assert "first" not in str(error)
