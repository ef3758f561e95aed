"""Before the first run: whether the GPU is free, cool and at its full clocks."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from pytest_perfgate.measure.health import (
    WAITED_FOR,
    DeviceReading,
    GpuProcess,
    Telemetry,
    reason_words,
)
from pytest_perfgate.measure.xid import xid_text
from pytest_perfgate.model import Reason
from pytest_perfgate.units import format_bytes

PATIENCE_S = 60.0
_PAUSE_S = 2.0
MARGIN_C = 10.0
"""Degrees below the driver's own limit at which a session begins."""
BUSY_SHARE = 0.05
BUSY_OVER_S = 1.0
"""What a driver tells of use is of its last moments: it is asked again after this."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Obstacle:
    """What keeps a session from beginning."""

    reason: Reason
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Readiness:
    """What was found, after all waiting."""

    obstacle: Obstacle | None
    notes: tuple[str, ...]
    waited_s: float
    processes: tuple[GpuProcess, ...] = ()


def wait_until_ready(
    telemetry: Telemetry,
    *,
    sleep: Callable[[float], None],
    say: Callable[[str], None],
    needed_bytes: float = 0.0,
    patience_s: float = PATIENCE_S,
) -> Readiness:
    """Wait, within bounds, for others to leave and for the GPU to recover.

    Parameters
    ----------
    say : told once what is waited for
    needed_bytes : of the GPU's memory; 0 where that is not known

    Notes
    -----
    Who computes on the GPU before our first worker is not one of us, whatever
    namespace the driver's process ids are from.
    """
    waited_s, told = 0.0, False
    errors: dict[int, None] = {}
    while True:
        reading, foreign, obstacle = _look(telemetry, needed_bytes)
        errors |= dict.fromkeys(reading.xids or ())
        if obstacle is None and reading.busy_share is not None:
            sleep(BUSY_OVER_S)
            waited_s += BUSY_OVER_S
            reading, foreign, obstacle = _look(telemetry, needed_bytes)
            errors |= dict.fromkeys(reading.xids or ())
        hopeless = obstacle is None or obstacle.reason is Reason.DEVICE_LOST
        if hopeless or waited_s >= patience_s:
            return Readiness(
                obstacle=obstacle,
                notes=(*notes_on(reading), *_reported(errors)),
                waited_s=waited_s,
                processes=foreign,
            )
        if not told and obstacle is not None:
            say(f"waiting up to {patience_s:.0f} s: {obstacle.text}")
            told = True
        sleep(_PAUSE_S)
        waited_s += _PAUSE_S


def _look(
    telemetry: Telemetry, needed_bytes: float
) -> tuple[DeviceReading, tuple[GpuProcess, ...], Obstacle | None]:
    reading = telemetry.read(processes=True)
    foreign = foreign_in(reading, telemetry)
    obstacle = obstacle_in(reading, foreign) or too_full(reading, needed_bytes)
    return reading, foreign, obstacle


def foreign_in(reading: DeviceReading, telemetry: Telemetry) -> tuple[GpuProcess, ...]:
    """List the processes of others."""
    return tuple(
        process
        for process in reading.processes or ()
        if not telemetry.is_ours(process.pid)
    )


def obstacle_in(
    reading: DeviceReading, foreign: tuple[GpuProcess, ...]
) -> Obstacle | None:
    """Say what one reading has against beginning."""
    if reading.lost:
        text = f"the driver has lost the GPU ({reading.lost})"
        return Obstacle(reason=Reason.DEVICE_LOST, text=text)
    if foreign:
        names = ", ".join(map(str, foreign))
        return Obstacle(reason=Reason.BUSY, text=f"{names} computes on the GPU")
    if reading.busy_share is not None and reading.busy_share > BUSY_SHARE:
        text = f"something that is not listed uses {reading.busy_share:.0%} of the GPU"
        return Obstacle(reason=Reason.BUSY, text=text)
    held_down = (reading.reasons or 0) & WAITED_FOR
    if held_down:
        text = f"the GPU's clocks are held down: {', '.join(reason_words(held_down))}"
        return Obstacle(reason=Reason.THROTTLED, text=text)
    if reading.margin_c is not None and reading.margin_c < MARGIN_C:
        text = f"the GPU is {reading.margin_c:.0f} °C below the limit at which it slows down"
        return Obstacle(reason=Reason.THROTTLED, text=text)
    return None


def too_full(reading: DeviceReading, needed_bytes: float) -> Obstacle | None:
    """Say that too little of its memory is free, whoever holds the rest."""
    free = reading.free_bytes
    if free is None or free >= needed_bytes:
        return None
    text = (
        f"a benchmark took {format_bytes(needed_bytes)} when it was recorded, and "
        f"{format_bytes(free)} of the GPU's memory is free"
    )
    return Obstacle(reason=Reason.BUSY, text=text)


def _reported(errors: Iterable[int]) -> Iterator[str]:
    for number in errors:
        yield f"before the first run the driver reported {xid_text(number)}"


def notes_on(reading: DeviceReading) -> tuple[str, ...]:
    """Say what does not keep a session from beginning, and is worth knowing."""
    notes = []
    if reading.blind:
        notes.append(f"nobody watches the GPU: {reading.blind}")
    if reading.persistence is False:
        notes.append(
            "persistence mode is off: the driver forgets the GPU's state between "
            "processes; nvidia-smi -pm 1 (as root) turns it on"
        )
    if reading.remapping:
        notes.append(f"the GPU's memory is failing: {reading.remapping}")
    if reading.mig:
        notes.append("MIG is on: neighbours on the same GPU are invisible")
    return tuple(notes)
