"""When a benchmark wants no more runs."""

from collections.abc import Sequence

from pytest_perfgate.gate.bounds import is_futile
from pytest_perfgate.gate.looks import Look
from pytest_perfgate.gate.readings import Reading, State
from pytest_perfgate.model import Outcome


def gated_of(readings: Sequence[Reading]) -> list[Reading]:
    return [reading for reading in readings if reading.judgement.gated]


def is_decided(readings: Sequence[Reading], look: Look) -> bool:
    """Tell whether more runs are wanted.

    A benchmark stops when a statistic is beyond its budget, or when all but
    the tails have a verdict; a tail alone holds it for one more look. The floor
    holds nothing.
    """
    gated = gated_of(readings)
    if look.last or any(
        reading.judgement.outcome is Outcome.REGRESSED for reading in gated
    ):
        return True
    heard = [reading for reading in gated if not reading.witness]
    mains = [reading for reading in heard if not reading.tail] or heard
    holding = mains if look.index >= 1 else heard
    if all(reading.state is not State.OPEN for reading in holding):
        return True
    return look.index >= 1 and _futile(mains, gated, look)


def _futile(mains: Sequence[Reading], gated: Sequence[Reading], look: Look) -> bool:
    """Tell whether the planned runs are far from enough, and nothing looks slow."""
    if any(reading.over for reading in (*mains, *gated) if not reading.tail):
        return False
    return any(
        reading.state is State.OPEN
        and reading.estimate is not None
        and reading.bar is not None
        and is_futile(reading.estimate, reading.bar, look)
        for reading in mains
    )
