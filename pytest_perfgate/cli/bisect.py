"""`perfgate bisect`: find the commit that brought a slowdown.

Every commit is measured in pairs against GOOD on this machine, in a temporary
checkout, by the benchmarks of BAD.
"""

import argparse
import json
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pytest_perfgate.campaign.repository import Repository
from pytest_perfgate.cli import bisect_answers as answers
from pytest_perfgate.cli import history
from pytest_perfgate.cli.bisect_answers import Target
from pytest_perfgate.cli.bisect_door import Door, Order
from pytest_perfgate.cli.bisection import Answer, Commit, Found, Step, search
from pytest_perfgate.cli.sessions import ended_by_signals, pytest_arguments
from pytest_perfgate.errors import PerfGateError, StoreUnreachable, UsageError
from pytest_perfgate.reports.escape import one_line, visible
from pytest_perfgate.reports.figures import cost_text
from pytest_perfgate.reports.layout import clip, wrap
from pytest_perfgate.reports.words import counted
from pytest_perfgate.store import write_atomically


def add(commands: Any) -> None:  # noqa: ANN401 (argparse keeps the type private)
    """Add the command to those of the parser."""
    parser = commands.add_parser(
        "bisect",
        help="find the commit that brought a slowdown",
        description=(
            "Measure commits between GOOD and BAD in pairs against GOOD, in temporary "
            "checkouts and by the benchmarks of BAD, until the first bad one is left. "
            "Your working tree, branches and worktrees are not touched. What follows "
            "`--` is handed on to pytest."
        ),
    )
    parser.add_argument("good", metavar="GOOD", help="a commit that was fast enough")
    parser.add_argument("bad", metavar="BAD", help="a later one that is not")
    parser.add_argument(
        "benchmarks",
        nargs="*",
        metavar="NODEID",
        help="benchmarks, files or folders, as pytest takes them (default: all)",
    )
    parser.add_argument(
        "--first-parent",
        action="store_true",
        help="follow only the line that branches were merged into",
    )
    parser.add_argument(
        "--setup",
        metavar="CMD",
        help="run by sh in each checkout, to build what must be built; a commit for "
        "which it fails is skipped",
    )
    parser.add_argument(
        "--python",
        default=sys.executable,
        metavar="PATH",
        help="the interpreter of the sessions (default: this one)",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the answer")
    parser.set_defaults(run=_bisect)


def _bisect(given: argparse.Namespace) -> int:
    repository = Repository(Path.cwd())
    good, bad = history.resolve(repository, given.good, given.bad)
    order = Order(
        good=good,
        bad=bad,
        arguments=pytest_arguments((*given.benchmarks, *given.handed_on)),
        python=given.python,
        setup=given.setup,
        start=Path.cwd().resolve(),
    )
    commits = history.between(repository, good, bad, first_parent=given.first_parent)
    trial = Trial(order, commits)
    with (
        ended_by_signals(),
        tempfile.TemporaryDirectory(prefix="perfgate-bisect-") as name,
    ):
        try:
            trial.run(Door(repository, Path(name).resolve(), order))
        except (UsageError, StoreUnreachable):
            raise
        except PerfGateError as error:  # exit 1 would say that there is nothing
            print(f"perfgate: {error}", file=sys.stderr)
            return answers.INVALID
    for text in trial.lines:
        indent = "  " if text.startswith("  ") else ""
        for part in wrap(text.strip(), _width() - len(indent), indent="  "):
            print(f"{indent}{part}")
    print(f"cost: {cost_text(trial.cost)}")
    if given.json:
        write_atomically(given.json, trial.as_json())
    return trial.code


def _width() -> int:
    return shutil.get_terminal_size().columns


class Trial:
    """One bisection, told while it goes on."""

    def __init__(self, order: Order, commits: Sequence[Commit]) -> None:
        self._order = order
        self._commits = commits
        self._targets: tuple[Target, ...] = ()
        self._found: Found | None = None
        self.cost: dict[str, float] = {}
        self.code = 0
        self.summary = ""
        self.lines: tuple[str, ...] = ()

    def run(self, door: Door) -> None:
        """Measure bad, and if it is slower, find out since when."""
        bad = self._commits[0]
        print(
            f"{counted(len(self._commits), 'commit')} to choose from; is BAD slower "
            "than GOOD?",
            flush=True,
        )
        report = door.measure_bad(bad)
        self._targets = answers.regressed(report)
        if self._targets:
            self._search(door, answers.answer(report, self._targets))
        else:
            self.code, self.summary = answers.not_regressed(report)
            self.lines = (*answers.numbers(report), self.summary)
        self.cost = {name: round(value, 1) for name, value in door.cost.items()}

    def _search(self, door: Door, first: Answer) -> None:
        self._tell(Step(commit=self._commits[0], answer=first), None)
        nodeids = tuple(dict.fromkeys(one.nodeid for one in self._targets))
        self._found = search(
            self._commits,
            first,
            lambda commit: door.measure(commit, self._targets, nodeids),
            tell=self._tell,
        )
        self.code, self.lines = answers.conclusion(self._found, self._targets)
        self.summary = self.lines[0]

    def _tell(self, step: Step, left: int | None) -> None:
        answer = step.answer
        words = f"{answer.state:<8}"
        if answer.worst is not None:
            words += f" {answers.in_percent(answer.worst)}"
        subject = visible(one_line(step.commit.subject))
        print(clip(f"{step.commit.short} {words}  {subject}", _width()))
        if answer.text:
            for text in wrap(one_line(answer.text), _width() - 4):
                print(f"    {text}")
        if left:
            print(f"    at most {left} to go, unless some are skipped")
        sys.stdout.flush()

    def as_json(self) -> bytes:
        suspects = self._found.suspects if self._found else ()
        steps = self._found.steps if self._found else ()
        tree = {
            "schema_version": 1,
            "good": self._order.good,
            "bad": self._order.bad,
            "found": suspects[0].sha if len(suspects) == 1 else None,
            "suspects": [answers.commit_tree(one) for one in suspects],
            "benchmarks": [answers.target_tree(one) for one in self._targets],
            "steps": [answers.step_tree(one) for one in steps],
            "exit_code": self.code,
            "summary": self.summary,
            "cost": self.cost,
        }
        text = json.dumps(tree, indent=2, ensure_ascii=False, allow_nan=False)
        return f"{text}\n".encode()
