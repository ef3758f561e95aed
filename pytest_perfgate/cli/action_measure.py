"""The step that runs pytest, without a token and without the runner's files.

The step's own exit code is 0 whatever pytest's is, so that reporting comes; what
pytest said goes on as an output.
"""

import secrets
import shlex
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from pytest_perfgate.cli.action_log import context_of, say, warn
from pytest_perfgate.errors import UsageError
from pytest_perfgate.github.commands import write_outputs
from pytest_perfgate.github.context import Context

CONFIRM = "--perfgate-confirm"
_HAS_ITS_BASE = (CONFIRM, "--perfgate-against", "--perfgate-update")
"""With one of these in the arguments the user has said what to measure against."""

_WITHHELD = frozenset(
    {
        *("GITHUB_TOKEN", "GH_TOKEN", "GH_ENTERPRISE_TOKEN"),
        *("GITHUB_OUTPUT", "GITHUB_ENV", "GITHUB_PATH", "GITHUB_STATE"),
        "GITHUB_STEP_SUMMARY",
    }
)
_WITHHELD_PREFIXES = ("PERFGATE_", "ACTIONS_", "INPUT_")
"""Our own, and the runner's addresses and tokens of caches, artifacts and identity."""


def measure(env: Mapping[str, str]) -> int:
    """Run pytest and put out its exit code."""
    context = context_of(env)
    for warning in context.warnings:
        warn(warning)
    if not context.may_measure:
        raise UsageError(context.why_not_measure)
    folder = Path(env["GITHUB_WORKSPACE"], env["PERFGATE_WORKING_DIRECTORY"])
    line = command_line(env, base_to_confirm_with(context, folder, env))
    say(f"$ {shlex.join(line)}")
    code = run(line, folder, scrubbed(env))
    say(f"pytest ended with exit code {code}")
    warn(write_outputs(env, {"exit-code": str(code)}))
    return 0


def command_line(env: Mapping[str, str], base: str) -> list[str]:
    """Write the command: every word as it is, for there is no shell."""
    python = shlex.split(env.get("PERFGATE_PYTHON", "")) or [env["PERFGATE_TOOL"]]
    confirm = [CONFIRM, base] if base else []
    return [
        *(*python, "-m", "pytest"),
        *shlex.split(env.get("PERFGATE_PYTEST_ARGS", "")),
        *("--perfgate", "--perfgate-report", env["PERFGATE_REPORT_DIR"]),
        *confirm,
    ]


def scrubbed(env: Mapping[str, str]) -> dict[str, str]:
    """Give the environment without what pytest and its tests have no use for."""
    return {
        name: value
        for name, value in env.items()
        if name not in _WITHHELD and not name.startswith(_WITHHELD_PREFIXES)
    }


def base_to_confirm_with(context: Context, folder: Path, env: Mapping[str, str]) -> str:
    """Name the base whose code a suspected regression is measured beside.

    Only pull requests have one. Where the checkout does not reach back to it, a
    warning says so, and fresh runs of the new code alone confirm.
    """
    arguments = shlex.split(env.get("PERFGATE_PYTEST_ARGS", ""))
    if not context.event_name.startswith("pull_request") or not context.base_ref:
        return ""
    if any(argument.startswith(_HAS_ITS_BASE) for argument in arguments):
        return ""
    base = f"origin/{context.base_ref}"
    problem = missing_history(folder, base)
    if not problem:
        return base
    warn(
        f"this checkout does not reach back to {base} ({problem}), so what looks slower "
        "cannot be measured beside the code it is merged into; give actions/checkout "
        "the input fetch-depth: 0"
    )
    return ""


def missing_history(folder: Path, base: str) -> str:
    """Say why a base cannot be had; empty where it can."""
    try:
        done = subprocess.run(  # noqa: S603 (fixed arguments; a ref is no option)
            ["git", "merge-base", f"{base}^{{commit}}", "HEAD"],  # noqa: S607 (the user's own git)
            cwd=folder,
            check=False,
            capture_output=True,
            text=True,
        )
    except OSError as error:
        return f"git: {error.strerror}"
    if done.returncode == 0:
        return ""
    said = done.stderr.strip().splitlines()
    return said[0] if said else "no commit in common"


def run(line: Sequence[str], folder: Path, environment: Mapping[str, str]) -> int:
    """Run a command to its end; what it prints cannot command the runner.

    What ends the step ends the command, and is waited for: it still has a report
    to write.
    """
    with ignored_commands():
        try:
            process = subprocess.Popen(  # noqa: S603 (what the inputs say, by no shell)
                line, cwd=folder, env=environment
            )
        except OSError as error:
            say(f"{line[0]} cannot be started: {error.strerror}")
            return 127
        with handed_on(process):
            code = process.wait()
    return code if code >= 0 else 128 - code


@contextmanager
def ignored_commands() -> Iterator[None]:
    """Make the runner deaf until a word comes that nobody can guess."""
    word = secrets.token_hex(16)
    print(f"::stop-commands::{word}", flush=True)
    try:
        yield
    finally:
        # what was printed last may have left its line open
        print(f"\n::{word}::", flush=True)


@contextmanager
def handed_on(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """Hand on to a process what tells this one to end."""

    def hand_on(number: int, _frame: FrameType | None) -> None:
        process.send_signal(number)

    ends = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.signal(number, hand_on) for number in ends}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
