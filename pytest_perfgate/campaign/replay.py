"""Workers' reports and verdicts into pytest's own reporting.

Nothing of an item is set up in the manager: the reports that a worker's
pytest made are handed on as they are, with the call report rewritten by the
verdict, so that `-x`, `--lf`, `xfail`, JUnit and other plugins see ordinary
passes and failures.
"""

import builtins
import warnings
from collections.abc import Iterable, Sequence
from typing import Any

import pytest

from pytest_perfgate.campaign.ledger import Entry, passed_strictly
from pytest_perfgate.model import BenchmarkResult, Outcome
from pytest_perfgate.protocol import Record
from pytest_perfgate.reports.failure import failure_text, one_line
from pytest_perfgate.reports.junit import properties

LETTERS: dict[str, tuple[str, str, dict[str, bool]]] = {
    Outcome.INCONCLUSIVE: ("?", "INCONCLUSIVE", {"yellow": True}),
    Outcome.NO_BASELINE: ("b", "NO-BASELINE", {"yellow": True}),
    Outcome.INCOMPARABLE: ("c", "INCOMPARABLE", {"red": True}),
    Outcome.INVALID: ("v", "INVALID", {"red": True}),
    Outcome.MISSING: ("m", "MISSING", {"red": True}),
    Outcome.RECORDED: ("r", "RECORDED", {"green": True}),
    Outcome.IMPROVED: ("i", "IMPROVED", {"green": True}),
}
"""How outcomes that pytest has no word for look in its progress and totals."""
_ATTRIBUTE = "perfgate_outcome"
_UNCOUNTED = ("", "", ("", dict[str, bool]()))
"""How a call looks that is told by another of its item's reports."""
Reports = list[pytest.TestReport]


def revive(config: pytest.Config, data: Sequence[dict[str, Any]]) -> Reports:
    """Make reports of what travelled as JSON."""
    return [_revive_one(config, dict(one)) for one in data]


def _revive_one(config: pytest.Config, data: dict[str, Any]) -> pytest.TestReport:
    # JSON has no tuples; pytest's terminal insists on them in these places
    for name in ("longrepr", "location"):
        if isinstance(data.get(name), list):
            data[name] = tuple(data[name])
    data["user_properties"] = [tuple(pair) for pair in data.get("user_properties", ())]
    data["sections"] = [tuple(pair) for pair in data.get("sections", ())]
    report: pytest.TestReport = config.hook.pytest_report_from_serializable(
        config=config, data=data
    )
    return report


def forward_warnings(config: pytest.Config, records: Iterable[Record]) -> None:
    """Let pytest list what benchmarks warned of while they ran.

    What is warned of while collecting is known already: the manager collects too.
    """
    for record in records:
        if record["when"] == "runtest":
            config.hook.pytest_warning_recorded.call_historic(
                kwargs={
                    "warning_message": _warning(record),
                    "when": record["when"],
                    "nodeid": record["nodeid"],
                    "location": None,
                }
            )


def _warning(record: Record) -> warnings.WarningMessage:
    name = record["category"]
    known = getattr(builtins, name, None)
    return warnings.WarningMessage(
        message=record["message"],
        # only its name is shown: a class of the user's need not be imported here
        category=known if known is not None else type(name, (Warning,), {}),
        filename=record["filename"],
        lineno=record["lineno"],
    )


def last_complete(entry: Entry) -> Sequence[dict[str, Any]]:
    """Return the reports of the run to show: the first that failed, else the last whole one."""
    failed = next((f.run for f in entry.failures), None)
    if failed is not None:
        return entry.reports[failed]
    whole = [r for r in entry.reports.values() if r and r[-1]["when"] == "teardown"]
    return whole[-1] if whole else ()


def judged(
    reports: Reports, results: Sequence[BenchmarkResult], *, red: bool
) -> Reports:
    """Rewrite the call report of a measured item by its verdict.

    Parameters
    ----------
    results : of this item, worst first
    red : whether the verdict fails the session
    """
    told = any(report.failed and report.when != "call" for report in reports)
    for report in reports:
        if report.when != "setup":  # JUnit takes them from the tear-down
            for result in results:
                report.user_properties.extend(properties(result))
        if report.when == "call" and told:
            # a tear-down that raised fails for itself: its call neither passed nor failed
            setattr(report, _ATTRIBUTE, results[0].verdict.outcome.value)
        elif report.when == "call":
            _rewrite(report, results, results[0], red=red)
    return reports


def _rewrite(
    report: pytest.TestReport,
    results: Sequence[BenchmarkResult],
    worst: BenchmarkResult,
    *,
    red: bool,
) -> None:
    outcome = worst.verdict.outcome
    if report.outcome != "passed" and not passed_strictly(
        {"longrepr": report.longrepr}
    ):
        return  # the body's own failure or skip stands
    setattr(report, _ATTRIBUTE, outcome.value)
    if outcome is Outcome.REGRESSED:
        _regress(report, results)
        return
    if outcome in {Outcome.UNCHANGED, Outcome.IMPROVED}:
        return  # an expected failure that did not come is pytest's to tell
    vars(report).pop("wasxfail", None)  # which would make it expected or passed
    if outcome is Outcome.RECORDED:
        report.outcome, report.longrepr = "passed", None
    elif red:
        report.outcome = "failed"
        report.longrepr = failure_text(worst)
    else:
        report.outcome = "skipped"
        report.longrepr = (*_place(report), one_line(worst))


def _regress(report: pytest.TestReport, results: Sequence[BenchmarkResult]) -> None:
    """Fail a report, unless its test is expected to fail."""
    expected = getattr(report, "wasxfail", None)
    if passed_strictly({"longrepr": report.longrepr}):
        expected = str(report.longrepr).partition("]")[2].strip()
    if expected is not None:
        report.outcome = "skipped"
        report.wasxfail = expected
        report.longrepr = one_line(results[0])
        return
    slow = [r for r in results if r.verdict.outcome is Outcome.REGRESSED]
    report.outcome = "failed"
    report.longrepr = "\n\n".join(failure_text(result) for result in slow)


def _place(report: pytest.TestReport) -> tuple[str, int]:
    path, line, _ = report.location
    return path, (line or 0) + 1


def made_up(nodeid: str, result: BenchmarkResult, *, red: bool) -> Reports:
    """Make reports for what no worker could report: a crash, a benchmark gone."""
    location = (nodeid.split("::", 1)[0], 0, nodeid.split("::", 1)[-1])
    reports = []
    for when in ("setup", "call", "teardown"):
        report = pytest.TestReport(
            nodeid=nodeid,
            location=location,
            keywords={},
            outcome="passed",
            longrepr=None,
            when=when,
        )
        report.user_properties.extend(properties(result) if when != "setup" else ())
        if when == "call":
            _fill_in(report, result, red=red)
        reports.append(report)
    return reports


def _fill_in(report: pytest.TestReport, result: BenchmarkResult, *, red: bool) -> None:
    setattr(report, _ATTRIBUTE, result.verdict.outcome.value)
    if red:
        report.outcome = "failed"
        report.longrepr = failure_text(result)
    else:
        report.outcome = "skipped"
        report.longrepr = (*_place(report), one_line(result))


def status(
    report: pytest.TestReport,
) -> tuple[str, str, tuple[str, dict[str, bool]]] | None:
    """Return category, letter and word for an outcome that is ours alone."""
    outcome = getattr(report, _ATTRIBUTE, None)
    if outcome == Outcome.ERROR and report.passed:
        return _UNCOUNTED
    if outcome not in LETTERS or hasattr(report, "wasxfail"):
        return None
    letter, word, markup = LETTERS[outcome]
    return outcome, letter, (word, markup)
