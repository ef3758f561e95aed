"""Sessions of `pytest --perfgate` that a command starts in processes of their own."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from pytest_perfgate.errors import PerfGateError, UsageError
from pytest_perfgate.model import Report
from pytest_perfgate.protocol import CHOSEN_VARIABLE, NAN_VARIABLE, SURVEY_VARIABLE
from pytest_perfgate.store import load_report

USAGE, NOTHING = 4, 5
PLUGIN = "pytest_perfgate.campaign.chosen"
_UNFINISHED = frozenset({2, 3, USAGE})
"""pytest's exit codes of sessions that came to no verdict."""
_LAST_LINES = 12
_LOOK_S = 1.0
_WAITING = "perfgate: waiting"
_PATIENCE_S = 30.0
"""For a session to end its workers after it was interrupted."""
_SPEAKS_FOR_THE_JOB = ("GITHUB_STEP_SUMMARY", "GITHUB_OUTPUT", "GITHUB_ENV")
"""Through which a session would speak for the CI job that we are only a step of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """What the user's arguments collect."""

    benchmarks: tuple[str, ...]
    """Node ids."""
    root: Path
    """pytest's rootdir."""
    ini: Path | None
    overlay: tuple[str, ...]
    """What more belongs to the benchmarks, as the options say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """A session that came to its verdicts."""

    code: int
    report: Report
    seconds: float


class SessionBroke(PerfGateError):
    """A session came to no verdict; the text is its own last words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sessions:
    """Where sessions run, and what they all share."""

    python: tuple[str, ...] = (sys.executable,)
    folder: Path
    """The working directory."""
    scratch: Path
    """Takes everything that sessions write."""
    arguments: tuple[str, ...]
    """The user's own."""
    environment: Mapping[str, str]

    def survey(self, *options: str) -> Survey:
        """Ask what would be measured; nothing is.

        Raises
        ------
        UsageError
            Where pytest refuses its arguments, or finds no benchmark.
        SessionBroke
            Where a file cannot be collected.
        """
        answer = self.scratch / "survey.json"
        code, said = self._pytest(
            "survey", ("--collect-only", "-q", *options), {SURVEY_VARIABLE: str(answer)}
        )
        if code == NOTHING:
            raise UsageError(
                "no benchmark was found; name the files or folders that hold them, "
                f"as you would to pytest. pytest said:\n{_last_words(said)}"
            )
        if code:
            raise _broken("collecting the benchmarks", code, said)
        found = json.loads(answer.read_text(encoding="utf-8"))
        return Survey(
            benchmarks=tuple(found["benchmarks"]),
            root=Path(found["root"]),
            ini=Path(found["ini"]) if found["ini"] else None,
            overlay=tuple(found["overlay"]),
        )

    def run(
        self,
        name: str,
        *options: str,
        chosen: Sequence[str] | None = None,
        nan: str | None = None,
    ) -> Ended:
        """Measure and judge.

        Parameters
        ----------
        name : of its files in the scratch folder, and in messages
        chosen : node ids of what is measured; None where the arguments say it
        nan : node id of a benchmark to be added, which hands a NaN over

        Raises
        ------
        UsageError
            Where pytest refuses its arguments.
        SessionBroke
            Where it ends without a report.
        """
        folder = self.scratch / name
        wanted = self.scratch / f"{name}.chosen.json"
        variables = {}
        if chosen is not None:
            wanted.write_text(json.dumps(list(chosen)), encoding="utf-8")
            variables[CHOSEN_VARIABLE] = str(wanted)
        if nan is not None:
            variables[NAN_VARIABLE] = nan
        began = time.monotonic()
        report = f"--perfgate-report={folder}"
        code, said = self._pytest(name, (*options, report), variables)
        if code in _UNFINISHED or not (folder / "report.json").exists():
            raise _broken(name, code, said)
        return Ended(
            code=code,
            report=load_report(folder),
            seconds=time.monotonic() - began,
        )

    def _pytest(
        self, name: str, options: Sequence[str], variables: Mapping[str, str]
    ) -> tuple[int, str]:
        command = [
            *self.python,
            *("-m", "pytest", "--perfgate", "-p", PLUGIN),
            *self.arguments,
            *("-o", f"cache_dir={self.scratch / 'cache'}", "--junitxml="),
            *options,
        ]
        log = self.scratch / f"{name}.log"
        with log.open("wb") as output:
            process = subprocess.Popen(  # noqa: S603 (the user's own arguments)
                command,
                cwd=self.folder,
                env={**self.environment, **variables},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C reaches it once, through us
            )
            try:
                code = _followed(process, log)
            finally:
                _end(process)
        return code, log.read_text(encoding="utf-8", errors="replace")


def environment_of_sessions(scratch: Path) -> dict[str, str]:
    """Return our own, less what would write into the user's folders or CI job."""
    kept = {n: v for n, v in os.environ.items() if n not in _SPEAKS_FOR_THE_JOB}
    kept["PYTHONDONTWRITEBYTECODE"] = "1"
    kept["COVERAGE_FILE"] = str(scratch / "coverage")
    return kept


def _followed(process: "subprocess.Popen[bytes]", log: Path) -> int:
    """Wait for a session; where it waits itself, for the device, hand that on."""
    told = 0
    while True:
        try:
            return process.wait(timeout=_LOOK_S)
        except subprocess.TimeoutExpired:
            said = log.read_text(encoding="utf-8", errors="replace").splitlines()
            waiting = [line for line in said if line.startswith(_WAITING)]
            for line in waiting[told:]:
                print(line, file=sys.stderr, flush=True)
            told = len(waiting)


def _end(process: "subprocess.Popen[bytes]") -> None:
    """End a session that was interrupted, with all that it started."""
    if process.poll() is not None:
        return
    process.send_signal(signal.SIGINT)  # it ends its workers, then itself
    try:
        process.wait(timeout=_PATIENCE_S)
    except subprocess.TimeoutExpired:
        pass
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _broken(name: str, code: int, said: str) -> PerfGateError:
    text = f"pytest ended with exit {code} ({name}):\n{_last_words(said)}"
    return UsageError(text) if code == USAGE else SessionBroke(text)


def _last_words(said: str) -> str:
    lines = [line.rstrip() for line in said.splitlines() if line.strip()]
    return "\n".join(f"  {line}" for line in lines[-_LAST_LINES:])


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """Take a request to end for Ctrl-C, so that what was started is ended too.

    Ctrl-C itself as well: a shell lets what it starts in the background ignore it,
    sessions would inherit that, and then could not be ended in good order.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    kinds = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {kind: signal.signal(kind, _interrupt) for kind in kinds}
    try:
        yield
    finally:
        for kind, handler in before.items():
            signal.signal(kind, handler)


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


_SET_BY_US = (
    "--perfgate-update",
    "--perfgate-update-force",
    "--perfgate-report",
    "--perfgate-baselines",
    "--perfgate-slowdown",
    "--perfgate-against",
    "--perfgate-confirm",
    "--collect-only",
    "--co",
)


def pytest_arguments(given: Sequence[str]) -> tuple[str, ...]:
    """Check what the user hands on to pytest.

    Raises
    ------
    UsageError
        For an option that the command itself sets.
    """
    for argument in given:
        if argument.partition("=")[0] in _SET_BY_US:
            raise UsageError(
                f"{argument!r} cannot be handed on: the command sets it itself; drop it"
            )
    return tuple(given)
