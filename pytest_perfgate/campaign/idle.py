"""Budgets and limits that are for no benchmark: a slip of the pen, more often than not."""

from collections.abc import Collection, Iterator, Mapping, Sequence

from pytest_perfgate.campaign.missing import Collected
from pytest_perfgate.gate.grammar import is_for, parse_budget, parse_limit
from pytest_perfgate.reports.words import counted
from pytest_perfgate.settings import Settings


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


def _globs(settings: Settings) -> Iterator[tuple[str, str, str]]:
    for option, specs, parse in (
        ("--perfgate-budget", settings.budgets, parse_budget),
        ("--perfgate-anchor-budget", settings.anchor_budgets, parse_budget),
        ("--perfgate-limit", settings.limits, parse_limit),
    ):
        for spec in specs:
            glob = parse(spec, name=option)[0]
            if glob is not None:
                yield option, spec, glob


def _fits(glob: str, known: Collection[str]) -> bool:
    return any(is_for(glob, nodeid) for nodeid in known)
