"""The report of a session that broke before it had anything to judge."""

from datetime import UTC, datetime

from pytest_perfgate.campaign import git
from pytest_perfgate.gate.suite import EXIT_INTERNAL
from pytest_perfgate.model import Report
from pytest_perfgate.reports.report_files import report_files
from pytest_perfgate.settings import Settings
from pytest_perfgate.store import RunFolder, write_atomically

SUMMARY = "the session failed before anything was measured"


def write_broken_report(settings: Settings, problem: str) -> None:
    """Leave a report that says why there is none.

    Raises
    ------
    PerfGateError
        Where the folder of the report cannot be used either.
    """
    report = Report(
        created=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        commit=git.commit(settings.rootdir),
        environment=None,
        results=(),
        exit_code=EXIT_INTERNAL,
        summary=SUMMARY,
        policy=settings.given,
        problem=problem,
    )
    folder = RunFolder(settings.report)
    folder.prepare()
    folder.write_report(report)
    for name, text in report_files(report):
        write_atomically(folder.path / name, text.encode())
    folder.release()
