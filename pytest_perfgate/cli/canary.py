"""`perfgate canary`: show that the gate is alive on this machine.

Every check is a real session of the gate, with the project's own benchmarks and
configuration; everything that sessions write lies in a temporary folder.
"""

import argparse
import json
import shutil
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from pytest_perfgate.cli import canary_checks as checks
from pytest_perfgate.cli.canary_checks import Check, Slowed, Watched
from pytest_perfgate.cli.sessions import (
    Ended,
    SessionBroke,
    Sessions,
    ended_by_signals,
    environment_of_sessions,
    pytest_arguments,
)
from pytest_perfgate.cli.table import table
from pytest_perfgate.model import Outcome, Reason
from pytest_perfgate.reports.escape import visible
from pytest_perfgate.reports.figures import cost_text
from pytest_perfgate.reports.layout import wrap
from pytest_perfgate.reports.words import counted, verdict_text
from pytest_perfgate.store import BaselineStore, benchmark_file_of, write_atomically
from pytest_perfgate.units import format_fraction

_CHEAP = ("--perfgate-runs=3:3", "--perfgate-max-time=0.2")
_NO_BASE = ("-o", "perfgate_against=", "-o", "perfgate_confirm=")
"""A project may judge in pairs by default; both halves of one would be slowed alike."""
_ON_SAME_CODE = "--perfgate-slowdown=0%"
"""Keeps a session out of the memory of attempts, as every planted slowdown."""
_KEPT = "kept"
"""The folder of the baselines that are recorded."""
_NAN = "bench_perfgate_canary_nan"


def add(commands: Any) -> None:  # noqa: ANN401 (argparse keeps the type private)
    """Add the command to those of the parser."""
    parser = commands.add_parser(
        "canary",
        help="show that the gate is alive: green on the same code, red on a slowdown",
        description=(
            "Record baselines in a temporary folder, judge the same code, then plant "
            "what must never pass: slowdowns of twice the budget, a deleted and a "
            "truncated baseline, a NaN. Exit 0 only if the gate is alive."
        ),
    )
    parser.add_argument(
        "arguments",
        nargs="*",
        metavar="PATH",
        help="files and folders with benchmarks (default: what pytest collects by "
        "itself); what follows `--` is handed on to pytest",
    )
    parser.add_argument(
        "--select", metavar="EXPR", help="only benchmarks that match, as pytest's -k"
    )
    parser.add_argument(
        "--benchmarks",
        type=_number,
        metavar="N",
        help="take so many of them, from all over the suite",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the answer")
    parser.set_defaults(run=_canary)


def _number(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number from 1 up")
    return int(text)


@dataclass(slots=True, kw_only=True)
class Canary:
    """One trial of the gate, check by check."""

    sessions: Sessions
    chosen: tuple[str, ...]
    checks: list[Check] = field(default_factory=list)
    slowed: list[Slowed] = field(default_factory=list)
    untried: list[str] = field(default_factory=list)
    """Benchmarks that no slowdown reaches, or that could not be judged."""
    cost: dict[str, float] = field(default_factory=dict)

    @property
    def alive(self) -> bool:
        return checks.alive(self.checks, self.slowed)

    def run(self) -> None:
        """Make all checks; what cannot be tried is a check that failed."""
        if not self._record():
            return
        self._judge_same_code()
        self._without_a_baseline()
        self._with_half_a_baseline()
        self._with_a_nan()

    def _session(
        self,
        name: str,
        *options: str,
        chosen: Sequence[str],
        baselines: str = _KEPT,
        nan: str | None = None,
    ) -> Ended:
        print(f"… {name}", file=sys.stderr, flush=True)
        folder = self.sessions.scratch / baselines
        name = name.replace(" ", "-")
        ended = self.sessions.run(
            name,
            *options,
            f"--perfgate-baselines={folder}",
            chosen=chosen,
            nan=nan,
        )
        self._pay(sessions=1, **ended.report.cost)
        self.cost["seconds"] += ended.seconds - ended.report.cost.get("seconds", 0.0)
        return ended

    def _pay(self, **cost: float) -> None:
        for name, value in cost.items():
            self.cost[name] = self.cost.get(name, 0.0) + value
        self.cost.setdefault("seconds", 0.0)

    def _record(self) -> bool:
        ended = self._session(
            "recording baselines", "--perfgate-update", chosen=self.chosen
        )
        self.checks.append(checks.recorded(ended.report))
        outcomes = [result.verdict.outcome for result in ended.report.results]
        return Outcome.RECORDED in outcomes

    def _judge_same_code(self) -> None:
        try:
            ended = self._session("same code", _ON_SAME_CODE, chosen=self.chosen)
        except SessionBroke as error:
            self.checks.append(checks.broken("same code", "nothing red", error))
            return
        self.checks.append(checks.same_code(ended.report))
        found = tuple(checks.watched(ended.report))
        seen = {one.benchmark for one in found}
        self.untried = [
            f"{result.benchmark} ({verdict_text(result.verdict)})"
            for result in ended.report.results
            if result.benchmark not in seen
        ]
        groups = checks.by_slowdown(found)
        for planted, group in groups.items():
            self._plant(planted, group)
        if not groups:
            self.checks.append(
                Check(
                    name="slowdown",
                    expected="regressed, exit 1",
                    happened="no benchmark whose time is gated by a relative budget",
                    ok=False,
                )
            )

    def _plant(self, planted: float, group: Sequence[Watched]) -> None:
        name = f"{format_fraction(planted)} slower"
        try:
            ended = self._session(
                name,
                f"--perfgate-slowdown={planted!r}"
                if planted <= 1
                else f"--perfgate-slowdown={planted * 100!r}%",
                chosen=[one.nodeid for one in group],
            )
        except SessionBroke as error:
            self.checks.append(checks.broken(name, "regressed, exit 1", error))
            return
        found = tuple(checks.slowed(ended.report, group))
        self.slowed += found
        self.checks.append(checks.goes_red(planted, found, code=ended.code))

    # -- the cheap ones, with one benchmark

    def _spoilt(self, name: str) -> tuple[str, Path]:
        """Copy the baselines; returns the copy's name and the file to spoil."""
        kept, copy = self.sessions.scratch / _KEPT, self.sessions.scratch / name
        shutil.copytree(kept, copy)
        store = BaselineStore(copy)
        (key,) = store.keys()
        file = next(
            path
            for path in (
                store.path_for(key, benchmark_file_of(nodeid)) for nodeid in self.chosen
            )
            if path.exists()
        )
        return name, file

    def _one_in(self, file: Path) -> str:
        """Return a chosen benchmark whose baseline the file holds."""
        return next(
            nodeid
            for nodeid in self.chosen
            if str(file).endswith(f"/{benchmark_file_of(nodeid)}.json")
        )

    def _without_a_baseline(self) -> None:
        baselines, file = self._spoilt("deleted")
        file.unlink()
        self._must_be(
            "baseline deleted",
            chosen=self._one_in(file),
            baselines=baselines,
            reason=Reason.NOTHING_STORED,
            wanted=(Outcome.NO_BASELINE, 10),
        )

    def _with_half_a_baseline(self) -> None:
        baselines, file = self._spoilt("truncated")
        data = file.read_bytes()
        file.write_bytes(data[: len(data) // 2])
        self._must_be(
            "baseline truncated",
            chosen=self._one_in(file),
            baselines=baselines,
            reason=Reason.BASELINE_CORRUPT,
            wanted=(Outcome.ERROR, 1),
        )

    def _with_a_nan(self) -> None:
        """Add a benchmark that hands over a NaN to the project's own."""
        file = benchmark_file_of(self.chosen[0])
        self._must_be(
            "NaN measured",
            chosen=f"{file}::{_NAN}",
            nan=f"{file}::{_NAN}",
            reason=Reason.NOT_A_NUMBER,
            wanted=(Outcome.ERROR, 1),
        )

    def _must_be(
        self,
        name: str,
        *,
        chosen: str,
        reason: Reason,
        wanted: tuple[Outcome, int],
        baselines: str = _KEPT,
        nan: str | None = None,
    ) -> None:
        outcome, code = wanted
        try:
            ended = self._session(
                name,
                *_CHEAP,
                _ON_SAME_CODE,
                chosen=[chosen],
                baselines=baselines,
                nan=nan,
            )
        except SessionBroke as error:
            self.checks.append(
                checks.broken(name, f"{outcome}: {reason}, exit {code}", error)
            )
            return
        self.checks.append(
            checks.must_be(
                name,
                ended.report,
                code=ended.code,
                reason=reason,
                wanted=wanted,
                lenient=outcome is Outcome.NO_BASELINE
                and ended.report.policy.get("--perfgate-on-missing") == "warn",
            )
        )


# -- the command


def _canary(given: argparse.Namespace) -> int:
    with (
        ended_by_signals(),
        tempfile.TemporaryDirectory(prefix="perfgate-canary-") as name,
    ):
        scratch = Path(name).resolve()
        sessions = Sessions(
            folder=Path.cwd(),
            scratch=scratch,
            arguments=(
                *pytest_arguments((*given.arguments, *given.handed_on)),
                *_NO_BASE,
            ),
            environment=environment_of_sessions(scratch),
        )
        found = sessions.survey(
            *(("-k", given.select) if given.select else ())
        ).benchmarks
        chosen = checks.spread(found, given.benchmarks)
        print(
            f"canary: {len(chosen)} of {counted(len(found), 'benchmark')}", flush=True
        )
        canary = Canary(sessions=sessions, chosen=chosen)
        canary.run()
    _tell(canary)
    if given.json:
        write_atomically(given.json, _as_json(canary))
    return 0 if canary.alive else 1


def _tell(canary: Canary) -> None:
    width = shutil.get_terminal_size().columns
    rows = [("check", "expected", "happened", "verdict")] + [
        (one.name, one.expected, one.happened, one.verdict) for one in canary.checks
    ]
    print(*table(rows, width=width), sep="\n")
    print()
    for told in canary.slowed:
        for text in wrap(_told(told), width, indent="    "):
            print(text)
    for benchmark in canary.untried:
        print(
            *wrap(f"not slowed: {visible(benchmark)}", width, indent="    "), sep="\n"
        )
    print(f"cost: {cost_text(_rounded(canary.cost))}")
    print(*wrap(checks.conclusion(canary.checks, canary.slowed), width), sep="\n")


def _told(slowed: Slowed) -> str:
    one, effect = slowed.watched, slowed.effect
    parts = [f"planted +{format_fraction(one.planted)}"]
    if effect is not None:
        ratio, low, high = ((value - 1) * 100 for value in effect)
        parts.append(f"found {ratio:+.1f} % [{low:+.1f}…{high:+.1f}]")
    if one.sees is not None:
        parts.append(f"sees {format_fraction(one.sees)}")
    numbers = ", ".join(parts)
    return (
        f"{slowed.response}: {visible(one.benchmark)}: {one.statistic}: {numbers}; "
        f"{slowed.outcome}"
    )


def _rounded(cost: dict[str, float]) -> dict[str, float]:
    return {name: round(value, 3) for name, value in cost.items()}


def _check(check: Check) -> dict[str, str]:
    return {
        "name": check.name,
        "expected": check.expected,
        "happened": check.happened,
        "verdict": check.verdict,
    }


def _as_json(canary: Canary) -> bytes:
    tree = {
        "schema_version": 1,
        "alive": canary.alive,
        "summary": checks.conclusion(canary.checks, canary.slowed),
        "checks": [_check(check) for check in canary.checks],
        "slowed": [
            {
                **asdict(one.watched),
                "planted": one.watched.planted,
                "response": one.response,
                "verdict": one.outcome,
                "effect": one.effect,
            }
            for one in canary.slowed
        ],
        "not_slowed": canary.untried,
        "cost": _rounded(canary.cost),
    }
    text = json.dumps(tree, indent=2, ensure_ascii=False, allow_nan=False)
    return f"{text}\n".encode()
