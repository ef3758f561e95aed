"""What of a benchmark's runs was not used, or is in doubt: nothing is dropped silently."""

from collections.abc import Collection, Iterator, Mapping

from pytest_perfgate.campaign.ledger import Entry
from pytest_perfgate.measured import Measurement

UNEQUAL_HALVES = "one half of the pair was disturbed more than the other"
_USED = "used, for want of a quiet one, though disturbed"


def discarded(entry: Entry, *, used: Collection[int] = ()) -> tuple[str, ...]:
    """List runs that were not used or not whole, each with its reason.

    Parameters
    ----------
    used : the runs that a verdict was read from; disturbed ones among them had
        to do
    """
    twin = entry.twin
    if twin is None:
        return (*_unused(entry), *_disturbances(entry, used))
    return (
        *_unused(entry),
        *_unused(twin, of=" of the base"),
        *(f"run {n} not used: its twin was lost" for n in _single(entry, twin)),
        *(
            f"run {n} of the base not used: its twin was lost"
            for n in _single(twin, entry)
        ),
        *(f"run {n} {_use(n, used)}: {UNEQUAL_HALVES}" for n in entry.disturbed_runs),
        *_disturbances(entry, used),
        *_disturbances(twin, used, of=" of the base"),
    )


def _single(entry: Entry, other: Entry) -> list[int]:
    return [number for number in entry.runs if number not in other.runs]


def _unused(entry: Entry, *, of: str = "") -> Iterator[str]:
    for loss in entry.losses:
        yield f"run {loss.run}{of} not used: {loss.how}"
    for unfit in entry.unfit:
        yield f"run {unfit.run}{of} not used: {unfit}"


def _use(number: int, used: Collection[int]) -> str:
    return _USED if number in used else "not used"


def _disturbances(
    entry: Entry, used: Collection[int], *, of: str = ""
) -> Iterator[str]:
    for number, run in entry.all_runs.items():
        evidence = "; ".join(dict.fromkeys(_evidence(run)))
        if any(map(_made_again, run.values())):
            because = f": {evidence}" if evidence else ""
            yield f"run {number}{of} {_use(number, used)}{because}"
        elif evidence:
            yield f"run {number}{of}: {evidence}"


def _made_again(measurement: Measurement) -> bool:
    """Tell whether a run was to be made again.

    Turns of a pair are not repeated, and what took the CPU from both halves alike
    takes nothing from what they say of each other.
    """
    return measurement.health.disturbed and not measurement.turns


def _evidence(run: Mapping[str, Measurement]) -> Iterator[str]:
    """Yield why a run, or some of its blocks, had to be made again."""
    for measurement in run.values():
        if _made_again(measurement) or measurement.health.repeated_blocks:
            yield from measurement.health.evidence
