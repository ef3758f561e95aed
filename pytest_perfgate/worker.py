"""The plugin's other half: what a pytest does inside a worker.

PYTEST_DONT_REWRITE: no asserts here.

A worker runs the benchmarks it is asked for, in the order it is given, and
appends what happens to a file. It reports to nobody else: options of the
user's command line that write files, stop early or open a debugger are put out
of action before any plugin reads them.
"""

import ctypes
import gc
import os
import signal
import sys
import warnings
from collections.abc import Callable, Generator
from pathlib import Path

import pytest

from pytest_perfgate import protocol, redirect
from pytest_perfgate.errors import BadSample, NothingMeasured, PerfGateError, UsageError
from pytest_perfgate.fixture import PerfGate
from pytest_perfgate.interop import pytest_benchmark
from pytest_perfgate.measure.compile_watch import BreakBook
from pytest_perfgate.measure.context import MeasureContext
from pytest_perfgate.measure.device import Device, open_device
from pytest_perfgate.measure.environment import fingerprint
from pytest_perfgate.measure.tracing import active_tracer
from pytest_perfgate.measured import HOT, Measurement
from pytest_perfgate.model import Reason
from pytest_perfgate.protocol import RecordWriter, Task
from pytest_perfgate.settings import Settings, item_settings, resolve
from pytest_perfgate.store import encode_environment, encode_measurement
from pytest_perfgate.turns import TurnClient
from pytest_perfgate.workloads.benchmark import BenchmarkRounds

_NEUTRAL: dict[str, object] = {
    "maxfail": 0,
    "lf": False,
    "failedfirst": False,
    "newfirst": False,
    "stepwise": False,
    "stepwise_skip": False,
    "usepdb": False,
    "trace": False,
    "collectonly": False,
    "xmlpath": None,
    "durations": None,
    "pastebin": None,
    # plugins that write files of their own, or trace
    "report_log": None,
    "htmlpath": None,
    "json_report": False,
    "allure_report_dir": None,
    "no_cov": True,
}
_PR_SET_PDEATHSIG = 1
_MACHINERY = {"_pytest", "pluggy"}
_OURS = Path(__file__).parent
_REASONS: dict[type[BaseException], Reason] = {
    BadSample: Reason.NOT_A_NUMBER,
    NothingMeasured: Reason.NOTHING_MEASURED,
}


def neutralise(config: pytest.Config) -> None:
    """Put out of action what belongs to the manager alone.

    Runs before `pytest_configure`, where other plugins read their options.
    """
    for name, value in _NEUTRAL.items():
        if hasattr(config.option, name):
            setattr(config.option, name, value)
    pytest_benchmark.put_out(config.option, output=True)


def start(config: pytest.Config) -> Callable[[pytest.FixtureRequest], PerfGate]:
    """Become a worker; returns the maker of the `perfgate` fixture's object."""
    # taken out, so that a pytest which a benchmark starts is no worker of ours
    task = Task.read(Path(os.environ.pop(protocol.TASK_VARIABLE)))
    _die_with(task.manager)
    fake = os.environ.get(protocol.FAKE_VARIABLE)
    worker = Worker(
        config,
        task=task,
        settings=resolve(config),
        device=open_device(task.device, fake_script=Path(fake) if fake else None),
    )
    config.pluginmanager.register(worker, "perfgate-worker")
    return worker.make_fixture


def _die_with(manager: int) -> None:
    """Ask the kernel to end this process with its parent (Linux only)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if manager and os.getppid() != manager:
        os._exit(1)  # it died while plugins and conftests were imported


def _in_words(excinfo: pytest.ExceptionInfo[BaseException]) -> str:
    """Say what is wrong with a benchmark, and where in the user's own code.

    A traceback through our code would bury both.
    """
    text = f"perfgate: {excinfo.value}"
    for entry in reversed(excinfo.traceback):
        path = Path(entry.path)
        if _MACHINERY.isdisjoint(path.parts) and not path.is_relative_to(_OURS):
            return f"{text}\n{entry.path}:{entry.lineno + 1}"
    return text


class Worker:
    """The hooks of a worker."""

    def __init__(
        self, config: pytest.Config, *, task: Task, settings: Settings, device: Device
    ) -> None:
        self._config = config
        self._task = task
        self._settings = settings
        self._device = device
        self._writer = RecordWriter(Path(task.records))
        self._gate: PerfGate | None = None
        self._rounds: BenchmarkRounds | None = None
        self._breaks = BreakBook()
        self._turns: TurnClient | None = None
        self._writer.write("hello", protocol=protocol.VERSION, pid=os.getpid())
        if task.turns is not None:
            self._turns = TurnClient(task.turns, task.wanted)
            self._turns.hello()

    # -- what is run, and in which order

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        place = {nodeid: at for at, nodeid in enumerate(self._task.wanted)}
        chosen = [item for item in items if item.nodeid in place]
        items[:] = sorted(chosen, key=lambda item: place[item.nodeid])
        found = {item.nodeid for item in items}
        absent = [nodeid for nodeid in self._task.wanted if nodeid not in found]
        self._writer.write("collected", count=len(items), absent=absent)
        if self._turns is not None:
            self._turns.collected()

    @pytest.hookimpl(tryfirst=True, wrapper=True)
    def pytest_runtest_protocol(
        self, item: pytest.Item
    ) -> Generator[None, object, object]:
        if self._turns is not None:
            self._turns.arrive(item.nodeid)
        self._writer.write("open", nodeid=item.nodeid)
        self._gate = self._rounds = None
        try:
            return (yield)
        finally:
            self._end_forked_child()
            if self._rounds is not None:
                self._rounds.close()
            self._writer.write("close", nodeid=item.nodeid)
            gc.collect()  # what one benchmark leaves behind is not the next one's

    def _end_forked_child(self) -> None:
        """Keep a child that fell back into pytest from running the rest of the suite."""
        if not self._writer.owned:
            os._exit(0)

    # -- the fixtures

    def make_fixture(self, request: pytest.FixtureRequest) -> PerfGate:
        """Make the object a benchmark calls."""
        item: pytest.Item = request.node
        if self._rounds is not None:
            raise UsageError(pytest_benchmark.both_in_one(item.nodeid))
        self._look_for_tracer(item)
        self._gate = PerfGate(item.nodeid, context=self._context(item))
        return self._gate

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(
        self, fixturedef: pytest.FixtureDef[object], request: pytest.FixtureRequest
    ) -> Generator[None, object, object]:
        """Take pytest-benchmark's fixture over where it is set up."""
        self._breaks.open()  # what torch compiles is known from its first time on
        value = yield
        mine = self._rounds is None and fixturedef.argname == pytest_benchmark.FIXTURE
        if mine and pytest_benchmark.is_fixture(value):
            self._take_over(request.node, value)
        return value

    def _take_over(self, item: pytest.Item, fixture: object) -> None:
        if self._gate is not None:
            raise UsageError(pytest_benchmark.both_in_one(item.nodeid))
        self._look_for_tracer(item)
        self._say_what_does_not_hold(item)
        self._rounds = BenchmarkRounds(self._context(item), item.nodeid, fixture)

    def _say_what_does_not_hold(self, item: pytest.Item) -> None:
        own = item_settings(item, self._settings)
        given = {
            "iterations": own.iterations is not None,
            "warm-up": own.warmup != self._settings.warmup or own.warmup is not None,
            "inner loop": own.inner_loop is not None,
            "cache": own.cache != HOT,
            "hide_launch": own.hide_launch,
        }
        told = ", ".join(name for name, is_given in given.items() if is_given)
        if told:
            self._note(
                f"{told} given to perfgate do not hold where pytest-benchmark makes the "
                "rounds; use its options, as in --benchmark-min-rounds"
            )

    def _look_for_tracer(self, item: pytest.Item) -> None:
        tracer = active_tracer()
        if tracer is not None:
            self._writer.write("traced", nodeid=item.nodeid, tracer=tracer)

    def _context(self, item: pytest.Item) -> MeasureContext:
        own = item_settings(item, self._settings)
        return MeasureContext(
            device=self._device,
            run=self._task.run,
            seed=own.seed,
            counting=own.counts is not False,
            counting_asked=own.counts is True,
            max_time_s=own.max_time_s,
            iterations=own.iterations,
            warmup=own.warmup,
            inner_loop=own.inner_loop,
            cache=own.cache,
            hide_launch=own.hide_launch,
            plans=self._task.plans,
            calibrated=self._task.iterations,
            calibrated_inner=self._task.inner_loops,
            slowdown=self._settings.slowdown,
            emit=self._emit,
            note=self._note,
            alone=self._task.alone,
            wants_p99=own.gate,
            breaks=self._breaks,
            pair=self._turns,
        )

    def _emit(self, measurement: Measurement) -> None:
        self._writer.write("measured", measurement=encode_measurement(measurement))

    def _note(self, text: str) -> None:
        self._writer.write("note", text=text)

    # -- what happened

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_call(self) -> Generator[None, object, object]:
        """Let no benchmark end well that measured nothing."""
        try:
            result = yield
        except BaseException as error:
            if self._gate is not None:
                self._gate.abandon(error)
            raise
        if self._gate is not None:
            self._gate.close()
        if self._rounds is not None:
            self._emit(self._rounds.measurement())
        return result

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        if call.excinfo is not None and report.failed:
            kind = call.excinfo.type
            reason = next(
                (r for known, r in _REASONS.items() if issubclass(kind, known)),
                Reason.BODY_RAISED,
            )
            report.user_properties.append(("perfgate_failure", reason.value))
            if issubclass(kind, PerfGateError):
                report.longrepr = _in_words(call.excinfo)
        return report

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        data = self._config.hook.pytest_report_to_serializable(
            config=self._config, report=report
        )
        self._writer.write("report", nodeid=report.nodeid, report=data)

    @pytest.hookimpl(tryfirst=True)
    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._writer.write(
                "collect-error", nodeid=report.nodeid, text=report.longreprtext
            )

    def pytest_warning_recorded(
        self, warning_message: warnings.WarningMessage, when: str, nodeid: str
    ) -> None:
        self._writer.write(
            "warning",
            nodeid=nodeid,
            when=when,
            category=warning_message.category.__name__,
            message=str(warning_message.message),
            filename=warning_message.filename,
            lineno=warning_message.lineno,
        )

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, exitstatus: int) -> None:
        environment = encode_environment(fingerprint(self._device))
        self._writer.write("environment", environment=environment)
        proof = redirect.proof()
        if proof is not None:
            self._writer.write("proof", proof=proof)
        self._writer.write("finish", status=int(exitstatus))
