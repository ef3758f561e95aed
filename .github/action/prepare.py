"""Check the inputs, find Python, and make room for the report.

Runs before anything is installed, so it needs the standard library alone.
"""

import json
import os
import re
import secrets
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

ACTION = Path(__file__).resolve().parents[2]
USAGE = 4
MEASURING = ("all", "measure")
CHOICES = {
    "mode": ("all", "measure", "gate", "comment"),
    "install": ("auto", "never"),
    "fail-on": ("policy", "regressed", "never"),
    "measure-result": ("", "success", "failure", "cancelled", "skipped"),
    "comment": ("auto", "always", "never"),
    "summary": ("true", "false"),
    "annotations": ("true", "false"),
}
FOLDER_MARK = ".perfgate-run-folder"
"""Says that the content of a folder is an earlier session's."""

PROBE = """
import sys
sys.path[:] = [place for place in sys.path if place]  # nothing from the checkout
import json
try:
    import pytest_perfgate
    plugin = pytest_perfgate.__version__
except ImportError:
    plugin = ""
version = list(sys.version_info[:3])
print(json.dumps({"path": sys.executable, "version": version, "plugin": plugin}))
"""
OUTSIDE_ENVIRONMENT = (
    "this Python belongs to the system and refuses packages; add a step with "
    "actions/setup-python, or make a virtual environment and name its Python with "
    "the input 'python'"
)
NO_PIP = (
    "this Python has no pip; add pytest-perfgate to what your job installs, and set "
    "install: never"
)


class Refused(Exception):
    """What the user must change before the action can do anything."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Python:
    """An interpreter, and what it has of us."""

    path: str
    version: tuple[int, ...]
    plugin: str

    @property
    def name(self) -> str:
        return f"Python {'.'.join(map(str, self.version))} at {self.path}"


def inputs(environment: Mapping[str, str]) -> dict[str, str]:
    """Read the inputs that Prepare was given, by their names in action.yml."""
    names = (*CHOICES, "python", "pytest-args", "working-directory", "report-dir")
    others = ("comment-id", "accept-label", "pr-number")
    return {
        name: environment.get("PERFGATE_" + name.replace("-", "_").upper(), "")
        for name in (*names, *others)
    }


# -- checking


def problems(given: Mapping[str, str], workspace: Path) -> Iterator[str]:
    """Say of each input that cannot be used what it is and what it may be."""
    for name, choices in CHOICES.items():
        if given[name] not in choices:
            listed = ", ".join(choice or "(empty)" for choice in choices)
            yield f"{name}: {given[name]!r} is none of: {listed}"
    for name in ("python", "pytest-args"):
        try:
            shlex.split(given[name])
        except ValueError as error:
            yield f"{name}: {given[name]!r} cannot be split like a shell would: {error}"
    if not re.fullmatch(r"[A-Za-z0-9._/-]{1,80}", given["comment-id"]) or (
        "--" in given["comment-id"]
    ):
        yield (
            f"comment-id: {given['comment-id']!r} must be 1 to 80 of the characters "
            "A-Z a-z 0-9 . _ / - without two dashes in a row"
        )
    if not re.fullmatch(r"[0-9]{0,10}", given["pr-number"]):
        yield f"pr-number: {given['pr-number']!r} must be digits, or empty"
    if not given["accept-label"].isprintable():
        yield f"accept-label: {given['accept-label']!r} must be one line"
    yield from folder_problems(given, workspace)


def folder_problems(given: Mapping[str, str], workspace: Path) -> Iterator[str]:
    name = given["working-directory"]
    folder = (workspace / name).resolve()
    if not folder.is_relative_to(workspace):
        yield f"working-directory: {name!r} is outside of the workspace {workspace}"
    elif given["mode"] in MEASURING and not folder.is_dir():
        yield (
            f"working-directory: there is no folder {name!r} in {workspace}; was the "
            "repository checked out, with actions/checkout, before this step?"
        )


def refuse_foreign_code(mode: str, environment: Mapping[str, str]) -> None:
    """Refuse to measure a fork's code where the job has the base's permissions."""
    if environment.get("GITHUB_EVENT_NAME") != "pull_request_target":
        return
    if mode not in MEASURING or is_own_pull_request(environment):
        return
    raise Refused(
        "on pull_request_target this job may have secrets and a token that can write, "
        "so the code of a fork is not measured here; measure on pull_request, and "
        "comment with mode: comment on workflow_run (see docs/ci.md)"
    )


def is_own_pull_request(environment: Mapping[str, str]) -> bool:
    try:
        text = Path(environment.get("GITHUB_EVENT_PATH", "")).read_text("utf-8")
        head = json.loads(text)["pull_request"]["head"]["repo"]["full_name"]
    except (OSError, ValueError, KeyError, TypeError):
        return False  # a repository that is gone, or nothing that can be trusted
    return bool(head == environment.get("GITHUB_REPOSITORY"))


# -- Python


def probe(command: list[str], folder: Path) -> Python:
    """Ask a Python who it is."""
    try:
        done = subprocess.run(
            [*command, "-c", PROBE],
            cwd=folder,
            check=False,
            capture_output=True,
            text=True,
        )
    except OSError as error:
        raise Refused(
            f"python: {shlex.join(command)!r} cannot be started: {error.strerror}; "
            "name a command that this runner has"
        ) from error
    try:
        told = json.loads(done.stdout.splitlines()[-1])
        return Python(
            path=told["path"], version=tuple(told["version"]), plugin=told["plugin"]
        )
    except (IndexError, ValueError, KeyError, TypeError) as error:
        said = (done.stderr or done.stdout).strip().splitlines()
        raise Refused(
            f"python: {shlex.join(command)!r} is no Python that works; it ended with "
            f"exit code {done.returncode} and said: {said[-1] if said else 'nothing'}"
        ) from error


def command_of(given: Mapping[str, str]) -> list[str]:
    """Give the command that starts the user's Python."""
    named = shlex.split(given["python"])
    if named:
        return named
    return [next(filter(None, map(shutil.which, ("python", "python3"))))]


def measuring_python(given: Mapping[str, str], folder: Path) -> Python:
    """Find the Python that pytest will run in; install the plugin if need be."""
    command = command_of(given)
    found = probe(command, folder)
    if found.version < (3, 11):
        raise Refused(
            f"python: {found.name} is too old; Python 3.11 or newer is needed"
        )
    if found.plugin:
        return found
    if given["install"] == "never":
        raise Refused(
            f"pytest-perfgate is not installed in {found.name}, and install is 'never'; "
            "install it in a step before this one, or set install: auto"
        )
    install(command, folder)
    found = probe(command, folder)
    if not found.plugin:
        raise Refused(
            f"pytest-perfgate was installed, and {found.name} does not find it; install "
            "it in a step before this one, and set install: never"
        )
    return found


def install(command: list[str], folder: Path) -> None:
    """Install the package of this action, and its dependencies."""
    pip = [*command, "-m", "pip", "install", "--disable-pip-version-check"]
    print(f"installing pytest-perfgate: {shlex.join(pip)} {ACTION}", flush=True)
    done = subprocess.run(
        [*pip, str(ACTION)],
        cwd=folder,
        check=False,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if done.returncode == 0:
        return
    print(harmless(done.stdout), flush=True)
    hint = "see what pip said above"
    if "externally-managed-environment" in done.stdout:
        hint = OUTSIDE_ENVIRONMENT
    elif "No module named pip" in done.stdout:
        hint = NO_PIP
    raise Refused(f"{shlex.join(pip)} ended with exit code {done.returncode}: {hint}")


def judging_python(given: Mapping[str, str], temporary: Path) -> Python:
    """Find a Python that has what the report and the comment need."""
    command = command_of(given)
    found = probe(command, temporary)
    if found.version >= (3, 11) and found.plugin:
        return found
    if given["install"] == "never":
        raise Refused(
            f"pytest-perfgate is not installed in {found.name}, and install is 'never'; "
            "install it in a step before this one, or set install: auto"
        )
    private = temporary / "perfgate-python"
    made = subprocess.run(
        [sys.executable, "-m", "venv", "--clear", str(private)],
        check=False,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if made.returncode:
        print(harmless(made.stdout), flush=True)
        raise Refused(
            f"{sys.executable} -m venv ended with exit code {made.returncode}; add a "
            "step with actions/setup-python, or install the package python3-venv"
        )
    inside = str(private / "bin" / "python")
    install([inside], temporary)
    return probe([inside], temporary)


def action_version() -> str:
    text = (ACTION / "pytest_perfgate" / "__init__.py").read_text("utf-8")
    found = re.search(r'__version__ = "([^"]+)"', text)
    return found[1] if found else "unknown"


# -- the folder of the report


def report_folder(given: Mapping[str, str], workspace: Path, temporary: Path) -> Path:
    named = given["report-dir"]
    folder = workspace / named if named else temporary / "perfgate"
    if given["mode"] in MEASURING:
        make_room(folder)
    return folder


def make_room(folder: Path) -> None:
    """Make the folder of the report, and leave nothing of an earlier one in it."""
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise Refused(f"report-dir: {folder} is no folder; name a new or an empty one")
    there = sorted(entry.name for entry in folder.iterdir()) if folder.exists() else []
    if there and FOLDER_MARK not in there:
        raise Refused(
            f"report-dir: {folder} holds {there[0]!r}, which no earlier session wrote; "
            "name a new or an empty folder"
        )
    if there:
        shutil.rmtree(folder)
    folder.mkdir(parents=True, exist_ok=True)


# -- what the runner reads


def harmless(text: str) -> str:
    """Keep lines that others wrote from being read as commands of the runner."""
    return re.sub(r"^(\s*):(?=:)", r"\1: ", text, flags=re.MULTILINE).replace(
        "##[", "# #["
    )


def escaped(message: str) -> str:
    return message.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def annotate(kind: str, message: str) -> None:
    print(f"::{kind} title=pytest-perfgate::{escaped(message)}", flush=True)


def put_out(path: str, values: Mapping[str, str]) -> None:
    """Append outputs so that no value can end its own field."""
    with Path(path).open("a", encoding="utf-8") as file:
        for name, value in values.items():
            fence = f"end-{secrets.token_hex(16)}"
            file.write(f"{name}<<{fence}\n{value}\n{fence}\n")


def prepare(environment: Mapping[str, str]) -> dict[str, str]:
    """Do all of it, and return the outputs of the step."""
    given = inputs(environment)
    workspace = Path(environment.get("GITHUB_WORKSPACE") or ".").resolve()
    found = tuple(problems(given, workspace))
    if found:
        raise Refused("wrong inputs:\n" + "\n".join(found))
    refuse_foreign_code(given["mode"], environment)
    temporary = Path(environment["RUNNER_TEMP"])
    folder = report_folder(given, workspace, temporary)
    if given["mode"] in MEASURING:
        python = measuring_python(given, workspace / given["working-directory"])
    else:
        python = judging_python(given, temporary)
    tell_versions(python)
    return {"report-dir": str(folder), "python": python.path}


def tell_versions(python: Python) -> None:
    action = action_version()
    print(f"pytest-perfgate: action {action}, plugin {python.plugin}, {python.name}")
    if python.plugin != action:
        annotate(
            "warning",
            f"the action is version {action}, and pytest-perfgate in {python.path} is "
            f"version {python.plugin}; pin both to the same",
        )


def main(say: Callable[[str, str], None] = annotate) -> NoReturn:
    try:
        put_out(os.environ["GITHUB_OUTPUT"], prepare(os.environ))
    except Refused as refused:
        say("error", str(refused))
        sys.exit(USAGE)
    sys.exit(0)


if __name__ == "__main__":
    main()
