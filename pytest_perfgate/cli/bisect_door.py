"""Measure a commit against good: a checkout, the benchmarks of bad, a session."""

import json
import os
import signal
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pytest_perfgate.campaign.repository import Repository
from pytest_perfgate.cli import bisect_answers as answers
from pytest_perfgate.cli.bisect_answers import Target
from pytest_perfgate.cli.bisection import Answer, Commit, State
from pytest_perfgate.cli.history import Benchmarks, Checkout
from pytest_perfgate.cli.sessions import (
    Ended,
    SessionBroke,
    Sessions,
    environment_of_sessions,
)
from pytest_perfgate.errors import PerfGateError, UsageError
from pytest_perfgate.model import Report
from pytest_perfgate.protocol import CHECKOUT_VARIABLE, FOREIGN_VARIABLE
from pytest_perfgate.store import benchmark_file_of
from pytest_perfgate.trees import Trees

_SHOWN = 3


class SetupFailed(PerfGateError):
    """The user's own command failed in a checkout."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What is to be measured, and how."""

    good: str
    bad: str
    arguments: tuple[str, ...]
    """For pytest."""
    python: str
    setup: str | None
    start: Path
    """Where the user is."""


class Door:
    """Everything that has effects, in one temporary folder."""

    def __init__(self, repository: Repository, scratch: Path, order: Order) -> None:
        self._repository = repository
        self._scratch = scratch
        self._order = order
        self.cost: dict[str, float] = {"sessions": 0}
        (scratch / "tmp").mkdir()
        self._checkout = Checkout(repository, scratch / "commit")
        self._benchmarks = self._survey(Checkout(repository, scratch / "bad"))

    def _survey(self, checkout: Checkout) -> Benchmarks:
        """See what bad's benchmarks are, in a checkout that stays."""
        checkout.check_out(self._order.bad)
        checkout.bring_generated()
        self._set_up(checkout)
        sessions = self._sessions(checkout, "bad")
        if not sessions.folder.is_dir():
            raise UsageError(
                f"{self._order.start} is not there at BAD; run it from a folder that is"
            )
        survey = sessions.survey()
        return Benchmarks(
            checkout,
            rootdir=survey.root,
            inifile=survey.ini,
            files=tuple(dict.fromkeys(map(benchmark_file_of, survey.benchmarks))),
            extra=survey.overlay,
        )

    def _sessions(self, checkout: Checkout, name: str) -> Sessions:
        start = checkout.place_of(self._order.start)
        manifest = self._scratch / f"{name}.trees.json"
        Trees(
            side="base",
            candidate=str(self._repository.root),
            base=str(checkout.root),
            start=str(start),
            roots=tuple(_roots(start.relative_to(checkout.root))),
            overlaid=(),
        ).write(str(manifest))
        return Sessions(
            python=(self._order.python,),
            folder=start,
            scratch=self._scratch,
            arguments=tuple(map(checkout.said, self._order.arguments)),
            environment={
                **environment_of_sessions(self._scratch),
                "TMPDIR": str(self._scratch / "tmp"),
                "PWD": str(start),
                CHECKOUT_VARIABLE: str(manifest),
                FOREIGN_VARIABLE: str(self._foreign),
            },
        )

    @property
    def _foreign(self) -> Path:
        return self._scratch / "foreign.jsonl"

    def _set_up(self, checkout: Checkout) -> None:
        command = self._order.setup
        if command is None:
            return
        start = checkout.place_of(self._order.start)
        process = subprocess.Popen(  # noqa: S603 (the user's own command)
            ["/bin/sh", "-c", command],
            cwd=start if start.is_dir() else checkout.root,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        try:
            said, _ = process.communicate()
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        if process.returncode:
            last = " ".join(said.strip().splitlines()[-_SHOWN:])
            raise SetupFailed(
                f"--setup={command!r} ended with exit code {process.returncode}: "
                f"{last or 'it printed nothing'}"
            )

    # -- measuring

    def measure_bad(self, commit: Commit) -> Report:
        """Measure bad, with everything that the user's arguments name."""
        return self._session(commit, None).report

    def measure(
        self, commit: Commit, targets: Sequence[Target], nodeids: Sequence[str]
    ) -> Answer:
        """Measure a commit; what keeps it from being measured is its answer."""
        try:
            ended = self._session(commit, nodeids)
        except (SetupFailed, SessionBroke, UsageError) as error:
            return Answer(state=State.SKIPPED, text=_in_short(str(error)))
        return answers.answer(ended.report, targets)

    def _session(self, commit: Commit, nodeids: Sequence[str] | None) -> Ended:
        checkout = self._checkout
        checkout.check_out(commit.sha)
        checkout.bring_generated()
        self._set_up(checkout)
        self._benchmarks.lay_over(checkout)
        sessions = self._sessions(checkout, "commit")
        sessions.folder.mkdir(parents=True, exist_ok=True)
        self._foreign.unlink(missing_ok=True)
        options = [f"--perfgate-against={self._order.good}"]
        if self._order.setup is not None:
            options.append(f"--perfgate-base-setup={self._order.setup}")
        ended = sessions.run("session", *options, chosen=nodeids)
        self._pay(ended)
        self._refuse_foreign()
        return ended

    def _pay(self, ended: Ended) -> None:
        self.cost["sessions"] += 1
        for name, value in {**ended.report.cost, "seconds": ended.seconds}.items():
            self.cost[name] = self.cost.get(name, 0.0) + value

    def _refuse_foreign(self) -> None:
        """Refuse numbers of code that came from the user's own checkout.

        Raises
        ------
        SessionBroke
        """
        if not self._foreign.exists():
            raise SessionBroke("the session did not tell where it imported from")
        lines = self._foreign.read_text(encoding="utf-8").splitlines()
        files = sorted({file for line in lines for file in json.loads(line)})
        if files:
            raise SessionBroke(
                f"{', '.join(files[:_SHOWN])} came from {self._repository.root} and not "
                "from the commit: something imports by absolute paths"
            )


def _in_short(text: str) -> str:
    """Keep what pytest marks as the error, else the end."""
    first, *lines = [line.strip() for line in text.splitlines() if line.strip()]
    marked = [line for line in lines if line.startswith(("E  ", "ERROR: "))]
    return " ".join([first, *(marked or lines)[-_SHOWN:]])


def _roots(start: Path) -> Sequence[str]:
    """Return the folders from which a library may be imported, relative."""
    places = [start / "src", start, Path("src"), Path()]
    return list(dict.fromkeys(place.as_posix() for place in places))
