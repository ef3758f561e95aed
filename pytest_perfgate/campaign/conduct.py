"""One session of the gate, from what was collected to the written report."""

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from pytest_perfgate import protocol
from pytest_perfgate.campaign import git, replay
from pytest_perfgate.campaign.attempts import PastAttempts
from pytest_perfgate.campaign.explaining import Explaining
from pytest_perfgate.campaign.foresight import plan_lines
from pytest_perfgate.campaign.idle import idle_metrics, idle_specs, typed
from pytest_perfgate.campaign.ledger import Ledger
from pytest_perfgate.campaign.manager import RECORDING_RUNS
from pytest_perfgate.campaign.measuring import Measuring, Planned, Session
from pytest_perfgate.campaign.missing import Collected, gone, whole_files
from pytest_perfgate.campaign.recording import Occasion, Recorder
from pytest_perfgate.campaign.results import results_of
from pytest_perfgate.campaign.selection import file_of
from pytest_perfgate.campaign.shelf import Shelf
from pytest_perfgate.campaign.verdicts import Verdicts
from pytest_perfgate.errors import UsageError
from pytest_perfgate.gate.family import with_q_values
from pytest_perfgate.gate.policy import BenchmarkPolicy, resolve_policy
from pytest_perfgate.gate.suite import (
    EXIT_INTERNAL,
    exit_code,
    summary_sentence,
    worst_first,
)
from pytest_perfgate.measure.device import resolve_device
from pytest_perfgate.measure.environment import hardware
from pytest_perfgate.model import BenchmarkResult, Outcome, Report
from pytest_perfgate.reports import terminal, update
from pytest_perfgate.reports.layout import Line, line
from pytest_perfgate.reports.report_files import report_files
from pytest_perfgate.reports.words import counted
from pytest_perfgate.settings import ItemSettings, Settings
from pytest_perfgate.store import BaselineStore, RunFolder, environment_digest
from pytest_perfgate.store.atomic import write_atomically

_OTHER_FAILURE = (
    "something failed that is no benchmark's verdict: a file that could not be"
    " collected, or a test that was expected to fail and passed (strict xfail)"
)


class Conduct:
    """What the manager's hooks call, in this order: run, by_item, store, finish."""

    def __init__(
        self,
        config: pytest.Config,
        settings: Settings,
        planned: Sequence[Planned],
        *,
        collected: Collected,
        fixtures: Collection[str],
    ) -> None:
        """Read what is stored and check every policy; measure nothing yet.

        Raises
        ------
        PerfGateError
            For an option, marker or folder that cannot be used.
        """
        self._config = config
        self._settings = settings
        self._planned = planned
        self._fake = os.environ.get(protocol.FAKE_VARIABLE)
        self._device = resolve_device(settings.device) if not self._fake else "cpu"
        self.policies = {own.nodeid: self._policy(own.settings) for own in planned}
        self._skipped_files = collected.skipped
        self._shelf, self._whole = self._open_shelf(collected, fixtures)
        self._folder = RunFolder(settings.report)
        self._ledger = Ledger([own.settings for own in planned])
        for text in idle_specs(settings, collected, typed(config)):
            self._ledger.note(text)
        self._past = PastAttempts(
            settings.rootdir,
            hardware=self._shelf.key,
            counting=not (
                settings.update
                or settings.paired
                or "--perfgate-slowdown" in settings.given
            ),
        )
        self._verdicts = Verdicts(
            self._ledger,
            self._shelf,
            self.policies,
            settings=settings,
            past=self._past,
        )
        self._measuring = Measuring(
            config,
            settings,
            Session(
                planned=planned,
                device=self._device,
                fake=self._fake,
                ledger=self._ledger,
                shelf=self._shelf,
                verdicts=self._verdicts,
                past=self._past,
                folder=self._folder,
            ),
        )
        self._results: dict[str, list[BenchmarkResult]] = {}
        self._missing: list[BenchmarkResult] = []
        self._recorder = Recorder(self._ledger, self._shelf)
        self._report: Report | None = None
        self._absorbed: set[str] = set()
        self._failed_otherwise = False
        self._prepared = False
        self._explaining = Explaining(
            self._verdicts.reference,
            when=settings.explain,
            root=settings.rootdir,
            base_commit=self._measuring.base.commit,
        )

    def _policy(self, own: ItemSettings) -> BenchmarkPolicy:
        try:
            return resolve_policy(
                own.nodeid,
                specs=self._settings.budgets,
                limits=self._settings.limits,
                marker_budget=own.budget,
                marker_limit=own.limit,
                anchor_specs=self._settings.anchor_budgets,
                marker_anchor_budget=own.anchor_budget,
                metrics=own.metrics,
                gate=own.gate,
            )
        except UsageError as error:  # the options were read before
            raise UsageError(f"{own.nodeid}: {error}") from None

    def _open_shelf(
        self, collected: Collected, fixtures: Collection[str]
    ) -> tuple[Shelf, Mapping[str, AbstractSet[str]]]:
        """Read the baselines of this hardware, of what is here and what may be gone."""
        script = Path(self._fake) if self._fake else None
        key, _ = hardware(self._device, fake_script=script)
        store = BaselineStore(self._settings.baselines)
        if self._settings.paired:
            return Shelf(store, key, ()), {}
        whole = whole_files(collected, store.files(key), fixtures)
        files = [file_of(own.nodeid) for own in self._planned]
        return Shelf(store, key, [*files, *whole]), whole

    # -- measuring

    def run(self) -> None:
        """Make the runs, judge them, and keep what they brought.

        Raises
        ------
        PerfGateError
            Where nothing could be measured or kept at all.
        """
        if self._planned or self._gone():
            self._folder.prepare()
            self._prepared = True  # and not before: it may be another session's
        if not self._planned:
            return
        for entry in self._ledger.entries.values():
            entry.unreadable = self._shelf.problem(entry.nodeid) is not None
        with self._measuring.machine() as fit:
            if fit:
                self._measuring.run()

    # -- results

    def by_item(self, *, interrupted: bool = False) -> dict[str, list[BenchmarkResult]]:
        """Judge for good; returns each item's results, worst first."""
        out_of_time = interrupted or self._measuring.out_of_time
        results = {
            nodeid: results_of(
                entry, self._verdicts, self._shelf, out_of_time=out_of_time
            )
            for nodeid, entry in self._ledger.entries.items()
        }
        if self._settings.update and not interrupted:
            results = self._recorder.decide(results, self._occasion)
        self._results = {
            nodeid: [
                self._explaining.of(self._ledger.entries[nodeid], one)
                for one in worst_first(found)
            ]
            for nodeid, found in results.items()
        }
        self._missing = self._gone()
        return self._results

    @property
    def _occasion(self) -> Occasion:
        environment = self._ledger.environment
        return Occasion(
            time=_now(),
            commit=git.commit(self._settings.rootdir),
            environment_digest=environment_digest(environment) if environment else "",
            force=self._settings.force,
            out_of_time=self._measuring.out_of_time,
        )

    def store(self) -> None:
        """Write the new baselines, before anything is reported as recorded.

        Raises
        ------
        StoreUnreachable
            Where the disk refuses.
        """
        if self._settings.update:
            self._recorder.store()

    def _gone(self) -> list[BenchmarkResult]:
        return list(gone(self._shelf, self._whole, skipped=self._skipped_files))

    def missing(self) -> Sequence[BenchmarkResult]:
        """Return what the baselines hold and no collected test belongs to."""
        return self._missing

    def reports(self, nodeid: str) -> list[pytest.TestReport]:
        """Return pytest's reports of an item, rewritten by its verdict."""
        results = self._results[nodeid]
        red = self._is_red(results)
        data = replay.last_complete(self._ledger.entries[nodeid])
        if not data:
            return replay.made_up(nodeid, results[0], red=red)
        reports = replay.judged(replay.revive(self._config, data), results, red=red)
        if not red and any(report.failed for report in reports):
            self._failed_otherwise = True  # a strict xfail that passed
        if any(hasattr(report, "wasxfail") for report in reports):
            self._absorb(results, reports)
        return reports

    def _is_red(self, results: Sequence[BenchmarkResult]) -> bool:
        return self._code(results) not in {0, 5}

    def _absorb(
        self,
        results: Sequence[BenchmarkResult],
        reports: Sequence[pytest.TestReport],
    ) -> None:
        """Note what an expected failure keeps from failing the session."""
        if not any(report.failed for report in reports):
            self._absorbed.update(
                result.benchmark
                for result in results
                if result.verdict.outcome in {Outcome.REGRESSED, Outcome.ERROR}
            )

    def warnings(self) -> Sequence[protocol.Record]:
        """Return what workers were warned of."""
        return self._ledger.warnings

    def all_results(self) -> tuple[BenchmarkResult, ...]:
        found = [result for results in self._results.values() for result in results]
        return tuple(
            replace(result, absorbed=result.benchmark in self._absorbed)
            for result in (*found, *self._missing)
        )

    # -- the end

    def exit_code(self) -> int:
        return self._code(self.all_results())

    def _code(self, results: Iterable[BenchmarkResult]) -> int:
        return exit_code(
            results,
            on_missing=self._settings.on_missing,
            on_inconclusive="fail"
            if self._settings.update
            else self._settings.on_inconclusive,
            anything_measured=self.anything_measured,
        )

    @property
    def anything_measured(self) -> bool:
        return any(
            e.runs or e.screened or e.failures for e in self._ledger.entries.values()
        )

    def finish(self, *, interrupted: bool, failed: bool) -> int:
        """Write the report; returns the session's exit code.

        Parameters
        ----------
        interrupted : the session ended before it was done
        failed : something that is no benchmark's verdict failed

        Raises
        ------
        StoreUnreachable
            Where the disk refuses.
        """
        if interrupted:
            self._verdicts.judge_as_it_stands()
            self.by_item(interrupted=True)
        code = self.exit_code()
        problem = _OTHER_FAILURE if failed or self._failed_otherwise else ""
        if code in {0, 5} and problem:
            code = 1
        self._past.keep(self._verdicts.evidence())
        self._report = self._make_report(
            2 if interrupted else code, interrupted=interrupted, problem=problem
        )
        self._write()
        return code

    def give_up(self, problem: str) -> None:
        """Write what is known of a session that broke; nothing counts as recorded.

        Raises
        ------
        StoreUnreachable
            Where the disk refuses.
        """
        self._verdicts.judge_as_it_stands()
        self.by_item(interrupted=True)
        self._report = self._make_report(
            EXIT_INTERNAL, interrupted=False, problem=problem
        )
        self._write()

    def _write(self) -> None:
        if self._report is not None and self._prepared:
            self._folder.write_report(self._report)
            for name, text in report_files(self._report):
                write_atomically(self._folder.path / name, text.encode())
            self._folder.release()

    def _make_report(self, code: int, *, interrupted: bool, problem: str) -> Report:
        results = with_q_values(self.all_results())
        summary = summary_sentence(
            results,
            anything_measured=self.anything_measured,
            interrupted=interrupted,
            failed=bool(problem),
        )
        cost = self._measuring.campaign.cost if self._measuring.campaign else None
        return Report(
            created=_now(),
            commit=git.commit(self._settings.rootdir),
            environment=self._ledger.environment,
            results=results,
            exit_code=code,
            summary=summary,
            policy=self._settings.given,
            cost=cost.told if cost else {},
            interrupted=interrupted,
            shift=self._verdicts.shift,
            problem=problem,
            notes=(
                *self._ledger.notes,
                *_left_out(results),
                *idle_metrics(
                    self._settings,
                    {name for result in results for name in result.metrics},
                    typed(self._config),
                ),
                *((self._past.problem,) if self._past.problem else ()),
            ),
            base=self._measuring.base.told,
        )

    def report_lines(self, *, width: int, verbose: bool) -> Iterator[Line]:
        """Yield what a person reads at the end."""
        if self._report is None:
            return
        if self._settings.update:
            told = self._recorder.told(self.policies, runs=self._settings.runs_max)
            yield from update.render(told, width=width)
        yield from terminal.render(self._report, width=width, verbose=verbose)
        if self._prepared:
            start = self._config.invocation_params.dir
            folder = os.path.relpath(self._folder.path, start)
            yield line(f"report: {folder}/report.json")

    def note(self, text: str) -> None:
        """Keep something to be told at the end, once."""
        self._ledger.note(text)

    def plan_lines(self) -> Iterator[str]:
        """Return the plan for `--collect-only`."""
        bounds = (self._settings.looks[0], self._settings.looks[-1])
        recording = (RECORDING_RUNS, RECORDING_RUNS)
        return plan_lines(
            [own.settings for own in self._planned],
            self._shelf,
            runs=recording if self._settings.update else bounds,
        )


def _left_out(results: Iterable[BenchmarkResult]) -> Iterator[str]:
    """Say that there is something which a green verdict does not show."""
    count = sum(len(result.discarded) for result in results)
    if count:
        yield (
            f"{counted(count, 'run')} not used, not whole or disturbed; the reasons "
            "are in the report, and shown with -v"
        )


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
