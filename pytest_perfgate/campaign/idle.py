"""Budgets and limits that are for no benchmark: a slip of the pen, more often than not."""

import difflib
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Protocol

import pytest

from pytest_perfgate.campaign.missing import Collected
from pytest_perfgate.gate.grammar import is_for, parse_budget, parse_limit
from pytest_perfgate.options import OPTIONS
from pytest_perfgate.reports.words import counted
from pytest_perfgate.settings import Settings


class _Rule(Protocol):
    """A budget or a limit, as far as it matters here."""

    @property
    def metric(self) -> str | None: ...


class _Parse(Protocol):
    def __call__(self, spec: str, *, name: str) -> tuple[str | None, _Rule]: ...


def _parsers(
    settings: Settings,
) -> tuple[tuple[str, Sequence[str], _Parse], ...]:
    return (
        ("--perfgate-budget", settings.budgets, parse_budget),
        ("--perfgate-anchor-budget", settings.anchor_budgets, parse_budget),
        ("--perfgate-limit", settings.limits, parse_limit),
    )


def idle_specs(
    settings: Settings, collected: Collected, typed: Mapping[str, Sequence[str]]
) -> Iterator[str]:
    """Yield a note on each glob that fits none of the collected benchmarks.

    What `-k` and its like deselect was collected. Where the user names files, the
    others are not, and nothing is said of what stands in the ini file.

    Parameters
    ----------
    typed : by option, what stands on the command line
    """
    known = {nodeid for found in collected.benchmarks.values() for nodeid in found}
    some = any(".py" in argument for argument in collected.arguments)
    for option, spec, glob in _globs(settings):
        said = not some or spec in typed.get(option, ())
        if known and said and not _fits(glob, known):
            yield (
                f"{option}={spec!r} fits none of {counted(len(known), 'benchmark')}:"
                f" correct {glob!r}, or drop it"
            )


def idle_metrics(
    settings: Settings,
    measured: Collection[str],
    typed: Mapping[str, Sequence[str]],
) -> Iterator[str]:
    """Yield a note on each budget or limit of a metric that nothing measured.

    What stands in the ini file may be for benchmarks that were not asked for today:
    it is told of only where it looks like the slip of a pen.

    Parameters
    ----------
    measured : names of metrics
    typed : by option, what stands on the command line
    """
    for option, specs, parse in _parsers(settings):
        for spec in specs:
            name = parse(spec, name=option)[1].metric
            if not measured or name is None or name in measured:
                continue
            near = difflib.get_close_matches(name, measured, n=1, cutoff=0.8)
            if near or spec in typed.get(option, ()):
                hint = f"; is {near[0]} meant?" if near else ""
                yield f"{option}={spec!r}: nothing measured {name}{hint}"


def _globs(settings: Settings) -> Iterator[tuple[str, str, str]]:
    for option, specs, parse in _parsers(settings):
        for spec in specs:
            glob = parse(spec, name=option)[0]
            if glob is not None:
                yield option, spec, glob


def _fits(glob: str, known: Collection[str]) -> bool:
    return any(is_for(glob, nodeid) for nodeid in known)


def typed(config: pytest.Config) -> dict[str, tuple[str, ...]]:
    """Return what the user gave on the command line of options that may be repeated."""
    return {
        option.flag: tuple(config.getoption(option.dest) or ())
        for option in OPTIONS
        if option.repeatable
    }
