"""The manager's hooks: collect, run the campaign, replay, report.

PYTEST_DONT_REWRITE: no asserts here.
"""

from __future__ import annotations  # pytest 8 has no TerminalReporter to evaluate

import contextlib
import shutil
from collections.abc import Generator, Sequence
from collections.abc import Set as AbstractSet

import pytest

from pytest_perfgate import settings as options
from pytest_perfgate.campaign import replay, selection
from pytest_perfgate.campaign.broken import write_broken_report
from pytest_perfgate.campaign.conduct import Conduct
from pytest_perfgate.campaign.measuring import Planned
from pytest_perfgate.campaign.missing import Collected
from pytest_perfgate.campaign.termination import Termination
from pytest_perfgate.errors import (
    DeviceUnavailable,
    PerfGateError,
    StoreUnreachable,
    UsageError,
)
from pytest_perfgate.interop import pytest_benchmark
from pytest_perfgate.interop.pytest_benchmark import FIXTURE
from pytest_perfgate.model import BenchmarkResult, Outcome
from pytest_perfgate.reports.layout import Line
from pytest_perfgate.settings import Settings

NAME = "perfgate-manager"
_OURS = frozenset({0, 1, 5})
"""pytest's exit codes that a verdict may replace; 2, 3 and 4 stand."""


def start(config: pytest.Config, *, fixtures: AbstractSet[str]) -> None:
    """Become the manager of a session.

    Raises
    ------
    UsageError
        Where an option is wrong, or cannot go with measuring.
    """
    refuse_conflicts(config)
    silenced = pytest_benchmark.put_out(config.option)
    settings = options.resolve(config)
    if config.getoption("collectonly") and settings.update:
        raise UsageError(
            "--perfgate-update records nothing under --collect-only; drop one"
        )
    manager = Manager(config, settings, fixtures, silenced=silenced)
    config.pluginmanager.register(manager, NAME)


def refuse_conflicts(config: pytest.Config) -> None:
    """Refuse what would measure nothing, or measure wrongly, and say what to do."""
    processes = getattr(config.option, "numprocesses", None)
    if processes or getattr(config.option, "dist", "no") != "no":
        raise UsageError(
            "--perfgate cannot measure under pytest-xdist "
            f"(-n {processes or '?'}): processes side by side disturb each other; "
            "add -n0 (it also overrides -n in addopts)"
        )
    for option, name in (("usepdb", "--pdb"), ("trace", "--trace")):
        if getattr(config.option, option, False):
            raise UsageError(
                f"--perfgate measures in worker processes, where {name} has no terminal; "
                f"drop {name}, or debug the benchmark without --perfgate"
            )
    for option, name in (("setupplan", "--setup-plan"), ("setuponly", "--setup-only")):
        if getattr(config.option, option, False):
            raise UsageError(
                f"--perfgate measures nothing under {name}, which runs no test; drop "
                "one, or see the plan with --collect-only"
            )


class Manager:
    """The hooks of the process that the user started."""

    def __init__(
        self,
        config: pytest.Config,
        settings: Settings,
        fixtures: AbstractSet[str],
        *,
        silenced: Sequence[str] = (),
    ) -> None:
        self._config = config
        self._silenced = silenced
        self._settings = settings
        self._fixtures = fixtures
        self._benchmarks: dict[str, set[str]] = {}
        self._files: set[str] = set()
        self._skipped_files: set[str] = set()
        self._conduct: Conduct | None = None
        self._results: dict[str, list[BenchmarkResult]] = {}
        self._broken: str | None = None
        self._campaigned = self._judged = False
        self._other_failures = False
        self._termination = Termination()

    # -- collection

    @pytest.hookimpl(tryfirst=True, wrapper=True)
    def pytest_collection_modifyitems(
        self, items: list[pytest.Item]
    ) -> Generator[None, None, None]:
        everything = [item for item in items if self._is_benchmark(item)]
        for item in everything:
            file = selection.file_of(item.nodeid)
            self._benchmarks.setdefault(file, set()).add(item.nodeid)
        yield
        chosen = [item for item in items if self._is_benchmark(item)]
        others = [item for item in items if not self._is_benchmark(item)]
        items[:] = chosen
        if others:
            self._config.hook.pytest_deselected(items=others)

    def _is_benchmark(self, item: pytest.Item) -> bool:
        return bool(self._instruments(item))

    def _instruments(self, item: pytest.Item) -> set[str]:
        """Name the fixtures of an item that measure."""
        named = self._fixtures & set(getattr(item, "fixturenames", ()))
        return {name for name in named if name != FIXTURE or _theirs(item)}

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        try:
            planned = [self._plan(item) for item in session.items]
            self._conduct = Conduct(
                self._config,
                self._settings,
                planned,
                collected=self._collected(),
                fixtures=self._fixtures,
            )
        except (UsageError, DeviceUnavailable) as error:
            raise pytest.UsageError(f"perfgate: {error}") from None
        except PerfGateError as error:
            self._broken = str(error)
            return
        self._say_what_is_silenced()
        if self._config.getoption("collectonly"):
            for line in self._conduct.plan_lines():
                self._write(line)

    def _say_what_is_silenced(self) -> None:
        if self._silenced and self._conduct is not None:
            self._conduct.note(
                f"{', '.join(self._silenced)}: without effect under --perfgate, which "
                "measures every benchmark and writes a report of its own"
            )

    def _plan(self, item: pytest.Item) -> Planned:
        if len(self._instruments(item)) > 1:
            raise UsageError(pytest_benchmark.both_in_one(item.nodeid))
        return Planned(
            nodeid=item.nodeid, settings=options.item_settings(item, self._settings)
        )

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        # a file that cannot be imported may hold anything: it is not judged
        if report.nodeid.endswith(".py") and not report.failed:
            self._files.add(report.nodeid)
            if report.skipped:
                self._skipped_files.add(report.nodeid)

    def _collected(self) -> Collected:
        config = self._config
        return Collected(
            benchmarks=self._benchmarks,
            files=self._files,
            skipped=self._skipped_files,
            arguments=tuple(map(str, config.args)),
            root=config.rootpath,
            start=config.invocation_params.dir,
            partial=bool(getattr(config.option, "lf", False)),
        )

    # -- the campaign, then pytest's own loop over what it brought

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtestloop(
        self, session: pytest.Session
    ) -> Generator[None, object, object]:
        collected = not session.testsfailed or self._config.getoption(
            "continue_on_collection_errors"
        )
        self._other_failures = bool(session.testsfailed)
        if collected and not self._config.getoption("collectonly"):
            self._run_campaign()
        result = yield
        if collected and self._conduct is not None:
            self._report_missing()
        return result

    def _run_campaign(self) -> None:
        if self._conduct is None:
            return
        self._campaigned = True
        self._termination.begin()
        try:
            self._conduct.run()
            self._results = self._conduct.by_item()
            self._conduct.store()
            self._judged = True
        except UsageError as error:
            raise pytest.UsageError(f"perfgate: {error}") from None
        except PerfGateError as error:
            self._broken = str(error)
        replay.forward_warnings(self._config, self._conduct.warnings())

    def pytest_runtest_protocol(self, item: pytest.Item) -> bool:
        """Hand on what the workers saw; nothing of the item is set up here."""
        if self._conduct is None or self._broken:
            return True
        self._replay(item.nodeid, item.location, self._conduct.reports(item.nodeid))
        return True

    def _replay(
        self,
        nodeid: str,
        location: tuple[str, int | None, str],
        reports: Sequence[pytest.TestReport],
    ) -> None:
        hook = self._config.hook
        hook.pytest_runtest_logstart(nodeid=nodeid, location=location)
        for report in reports:
            hook.pytest_runtest_logreport(report=report)
        hook.pytest_runtest_logfinish(nodeid=nodeid, location=location)

    def _report_missing(self) -> None:
        """Show what the baselines hold and the suite has no more."""
        if self._conduct is None or self._broken:
            return
        for result in self._conduct.missing():
            reports = replay.made_up(result.nodeid, result, red=True)
            self._replay(result.nodeid, reports[0].location, reports)

    def pytest_report_teststatus(
        self, report: pytest.TestReport
    ) -> tuple[str, str, tuple[str, dict[str, bool]]] | None:
        return replay.status(report) if report.when == "call" else None

    # -- the end

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(
        self, session: pytest.Session, exitstatus: int
    ) -> Generator[None, None, None]:
        if self._termination.received and self._conduct is not None:
            self._conduct.note("ended by SIGTERM")
        code = self._finish(int(exitstatus))
        self._termination.end()
        if code is not None:
            session.exitstatus = code
        # handed on unchanged: the terminal prints its summary for pytest's own codes
        yield

    def _finish(self, status: int) -> int | None:
        """Write what is to be written; returns our exit code, or None for pytest's."""
        if (
            self._config.getoption("collectonly")
            or status == pytest.ExitCode.USAGE_ERROR
        ):
            return None
        if self._broken:
            self._report_what_is_known()
        elif self._conduct is not None and self._campaigned:
            try:
                # what stops the reporting, as --stepwise does, takes nothing back
                code = self._conduct.finish(
                    interrupted=not self._judged, failed=self._other_failures
                )
            except StoreUnreachable as error:
                self._broken = str(error)
            else:
                return code if status in _OURS else None
        return 3 if self._broken else None

    def _report_what_is_known(self) -> None:
        """Leave a report of a session that broke, where the disk allows it."""
        problem = self._broken or ""
        with contextlib.suppress(PerfGateError):  # that is told already
            if self._conduct is None:
                write_broken_report(self._settings, problem)
            else:
                self._conduct.give_up(problem)

    @pytest.hookimpl(tryfirst=True)
    def pytest_terminal_summary(
        self, terminalreporter: pytest.TerminalReporter
    ) -> None:
        writer = terminalreporter
        if self._broken:
            writer.section("perfgate", red=True, bold=True)
            writer.line(f"perfgate: {self._broken}")
        elif self._conduct is not None and not self._config.getoption("collectonly"):
            if self._config.getoption("tbstyle") != "no":
                write_lost(writer)
            width = shutil.get_terminal_size().columns
            verbose = self._config.get_verbosity() > 0
            lines = tuple(self._conduct.report_lines(width=width, verbose=verbose))
            if lines:
                writer.section("perfgate", bold=True)
            for line in lines:
                write_line(writer, line)

    def _write(self, text: str) -> None:
        reporter = self._config.pluginmanager.get_plugin("terminalreporter")
        if reporter is not None:
            reporter.line(text)


def _theirs(item: pytest.Item) -> bool:
    """Whether the fixture `benchmark` of an item is pytest-benchmark's."""
    info = getattr(item, "_fixtureinfo", None)  # pytest has no public way
    definitions = getattr(info, "name2fixturedefs", {}).get(FIXTURE, ())
    return pytest_benchmark.is_meant(definitions)


def write_lost(writer: pytest.TerminalReporter) -> None:
    """Show the stacks of what hung: pytest shows those of its own categories only."""
    for report in writer.stats.get(Outcome.INVALID, ()):
        writer.write_sep("_", report.nodeid, red=True, bold=True)
        writer.line(report.longreprtext)


def write_line(writer: pytest.TerminalReporter, line: Line) -> None:
    """Write one rendered line with its styles."""
    for segment in line.segments:
        writer.write(segment.text, **dict.fromkeys(segment.styles, True))
    writer.line("")
