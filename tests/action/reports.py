"""Reports as a session of pytest leaves them, and a Python that leaves them."""

import json
import sys
from pathlib import Path

from pytest_perfgate.gate.suite import exit_code, summary_sentence
from pytest_perfgate.model import Outcome
from pytest_perfgate.store.codec_report import REPORT
from tests.unit.gate.reports import report, result

FAST, SLOW = "benches/bench_a.py::bench_fast", "benches/bench_a.py::bench_slow"


def session(*results, policy=None, **changes):
    """Make a report whose exit code and summary are those of its results."""
    policy = policy or {}
    measured = any(one.runs for one in results)
    code = exit_code(
        results,
        on_missing=policy.get("--perfgate-on-missing", "fail"),
        on_inconclusive=policy.get("--perfgate-on-inconclusive", "warn"),
        anything_measured=measured,
    )
    summary = summary_sentence(results, anything_measured=measured)
    fields = {"exit_code": code, "summary": summary, "policy": policy}
    return report(*results, **(fields | changes))


def of(outcome, name=FAST, **changes):
    """Make a report with one benchmark of some outcome and an unchanged one."""
    return session(result(name, outcome), result(SLOW), **changes)


GREEN = session(result(FAST), result(SLOW))
RED = of(Outcome.REGRESSED)


def write(report, folder):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "report.json").write_text(REPORT.text(report))
    (folder / ".perfgate-run-folder").touch()
    return folder


class Replay:
    """A command that acts like Python; `-m pytest` leaves a given report."""

    def __init__(self, folder, report, *, code=None, says=""):
        self.folder = folder
        folder.mkdir()
        (folder / "report").mkdir()
        if report is not None:
            write(report, folder / "report")
        code = (report.exit_code if report else 0) if code is None else code
        (folder / "code.txt").write_text(str(code))
        (folder / "says.txt").write_text(says)
        script = Path(__file__).with_name("replay.py")
        self.command = f"{sys.executable} {script}"
        python = folder / "python"
        python.write_text(f'#!/bin/sh\nexec {self.command} "$@"\n')
        python.chmod(0o755)
        self.given = {"REPLAY": str(folder), "REPLAY_PYTHON": str(python)}

    @property
    def seen(self):
        return json.loads((self.folder / "seen.json").read_text())
