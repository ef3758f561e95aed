"""What pytest loads: options, marker, fixture, and the way to everything else.

PYTEST_DONT_REWRITE: no asserts here, and every pytest start pays for this file.

Nothing heavy is imported at the top; with the flag off, this module and
`options` are all of ours that is loaded.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest

from pytest_perfgate.options import MARKER_KEYWORDS, OPTIONS, Option

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from pytest_perfgate.fixture import PerfGate

FIXTURES = frozenset({"perfgate", "benchmark"})  # the second is pytest-benchmark's
_TASK = "_PERFGATE_TASK"  # protocol.TASK_VARIABLE, which is too far to import

_make: pytest.StashKey[Callable[[pytest.FixtureRequest], PerfGate]] = pytest.StashKey()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("perfgate", "performance gate")
    for option in OPTIONS:
        if option.metavar is None:
            kind: dict[str, Any] = {"action": "store_true", "default": False}
        elif option.repeatable:
            kind = {"action": "append", "metavar": option.metavar, "default": None}
        else:
            kind = {"action": "store", "metavar": option.metavar, "default": None}
        group.addoption(option.flag, dest=option.dest, help=_help(option), **kind)
        if option.ini:
            kind = {"type": "linelist" if option.repeatable else "string"}
            parser.addini(option.dest, f"as {option.flag}", default=None, **kind)


def _help(option: Option) -> str:
    text = option.help + (f" (default: {option.default})" if option.default else "")
    return text.replace("%", "%%")


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    if _TASK in os.environ:
        from pytest_perfgate import worker

        worker.neutralise(config)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        f"perfgate({', '.join(MARKER_KEYWORDS)}): how a benchmark is measured and judged",
    )
    gating = config.getoption("perfgate")
    if _TASK in os.environ and gating:
        _configure(config, _start_worker)
    elif gating:
        _configure(config, _start_manager)
    else:
        _refuse_options_without_the_flag(config)
    if gating or any(_is_bench_file(argument) for argument in config.args):
        from pytest_perfgate.campaign.bench_files import BenchFiles

        # hooks of collection are called for each file and name: not when off
        config.pluginmanager.register(
            BenchFiles(config, FIXTURES, whole_tree=gating), "perfgate-bench-files"
        )


def _configure(config: pytest.Config, start: Callable[[pytest.Config], None]) -> None:
    from pytest_perfgate.errors import PerfGateError

    try:
        start(config)
    except PerfGateError as error:
        raise pytest.UsageError(f"perfgate: {error}") from None


def _start_worker(config: pytest.Config) -> None:
    from pytest_perfgate import worker

    config.stash[_make] = worker.start(config)


def _start_manager(config: pytest.Config) -> None:
    from pytest_perfgate.campaign import session

    session.start(config, fixtures=FIXTURES)


def _refuse_options_without_the_flag(config: pytest.Config) -> None:
    for option in OPTIONS:
        if option.name and config.getoption(option.dest) not in (None, False):
            raise pytest.UsageError(
                f"perfgate: {option.flag} does nothing without --perfgate; add --perfgate"
            )


@pytest.fixture
def perfgate(request: pytest.FixtureRequest) -> Generator[PerfGate, None, None]:
    """Measure inference, training steps, generation or any callable.

    Under `--perfgate` what is called is warmed up, measured in fresh processes
    and judged against its baseline; otherwise it is called once, unmeasured.
    """
    make = request.config.stash.get(_make, None)
    if make is None:
        from pytest_perfgate.fixture import PerfGate

        gate = PerfGate(request.node.nodeid, context=None)
    else:
        gate = make(request)
    yield gate
    gate.close(complete=False)


def _is_bench_file(argument: str) -> bool:
    name = os.path.basename(str(argument).split("::", 1)[0])  # noqa: PTH119 (pathlib costs more, on every start)
    return name.startswith("bench_") and name.endswith(".py")
