"""What the driver tells of a GPU before, between and after the blocks of a run.

Readings are values, and what they mean is worked out from them alone; the
driver is asked by a `Telemetry`, and never inside a block.
"""

import itertools
import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from pytest_perfgate.measure.xid import xid_text
from pytest_perfgate.measured import Health
from pytest_perfgate.model import Reason

THROTTLED_SHARE = 0.005
"""A run that was throttled for more than this share of its time is not used."""
CLOCK_MOVED = 0.02
"""A clock that moved by a larger share during a run is told with it."""
WARMED_C = 15.0
"""A run during which the GPU warmed by more is disturbed."""

SW_POWER_CAP, HW_SLOWDOWN, RELIABILITY = 0x4, 0x8, 0x400
SW_THERMAL, HW_THERMAL, POWER_BRAKE = 0x20, 0x40, 0x80
REASONS: Mapping[int, str] = {
    0x1: "idle",
    0x2: "application clocks",
    SW_POWER_CAP: "software power cap",
    HW_SLOWDOWN: "hardware slowdown",
    0x10: "sync boost",
    SW_THERMAL: "software thermal slowdown",
    HW_THERMAL: "hardware thermal slowdown",
    POWER_BRAKE: "power brake",
    0x100: "display clocks",
    0x200: "board limit",
    RELIABILITY: "reliability limit",
}
"""The bits of the clocks' event reasons."""
WAITED_FOR = SW_THERMAL | HW_THERMAL | POWER_BRAKE
"""What keeps a session from beginning: it passes, or the machine is unfit."""

_UNFIT_COUNTERS: Mapping[str, int] = {
    "hw_thermal": HW_THERMAL,
    "sw_thermal": SW_THERMAL,
    "power_brake": POWER_BRAKE,
    "reliability": RELIABILITY,
}
"""Counters whose growth makes a run unfit, each with the bit that stands in
where the driver does not count."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuProcess:
    """A process that computes on the GPU."""

    pid: int
    name: str = ""
    """As this machine knows it; empty where it lies in another namespace."""
    memory_bytes: int | None = None

    def __str__(self) -> str:
        known = f" ({self.name})" if self.name else ""
        return f"process {self.pid}{known}"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceReading:
    """What the driver said at one moment; None is what it did not tell."""

    time_s: float
    reasons: int | None = None
    """Bits of why the clocks are not higher."""
    throttled_s: Mapping[str, float] = field(default_factory=dict)
    """By reason: how long the clocks were held down by it, so far."""
    sm_mhz: float | None = None
    memory_mhz: float | None = None
    most_sm_mhz: float | None = None
    temperature_c: float | None = None
    memory_temperature_c: float | None = None
    margin_c: float | None = None
    """Degrees left before the driver slows the GPU down."""
    power_w: float | None = None
    power_limit_w: float | None = None
    busy_share: float | None = None
    """Share of the last moments in which anything ran."""
    processes: tuple[GpuProcess, ...] | None = None
    """None where they were not asked for, or not told."""
    free_bytes: int | None = None
    """Of its memory; asked with the processes."""
    mig: bool | None = None
    ecc: bool | None = None
    memory_errors: int | None = None
    """Uncorrected ones since the driver was loaded."""
    remapping: str | None = None
    """What of its memory's rows has failed or awaits a reset; empty where nothing."""
    xids: tuple[int, ...] | None = None
    """Errors reported since the reading before this one."""
    persistence: bool | None = None
    pcie_generation: int | None = None
    pcie_width: int | None = None
    performance_state: int | None = None
    lost: str = ""
    """What the driver said when it gave the GPU up."""
    blind: str = ""
    """Why the driver could not be asked at all."""


class Telemetry(Protocol):
    """The door to the driver, for one GPU."""

    def read(self, *, processes: bool = False) -> DeviceReading:
        """Ask for everything; listing processes is slow, and so apart."""
        ...

    def is_ours(self, pid: int) -> bool:
        """Whether a process belongs to this session."""
        ...

    @property
    def sees_itself(self) -> int:
        """The process id by which this process would be listed."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceHealth:
    """What the readings of a run mean."""

    unfit: Reason | None = None
    disturbed: bool = False
    evidence: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    device: Mapping[str, float] = field(default_factory=dict)

    def added_to(self, health: Health) -> Health:
        """Add what the GPU has to say to what the processor had."""
        return replace(
            health,
            disturbed=health.disturbed or self.disturbed,
            unfit=self.unfit,
            evidence=(*health.evidence, *self.evidence),
            device=self.device,
        )


def judge_device(
    before: DeviceReading,
    between: Sequence[DeviceReading],
    after: DeviceReading,
    *,
    foreign: Sequence[GpuProcess] = (),
) -> DeviceHealth:
    """Say what a run's readings mean, without a baseline.

    Parameters
    ----------
    before, between, after : in the order they were made
    foreign : processes of others that were seen beside us

    Returns
    -------
    DeviceHealth
        Unfit where the GPU was lost or reported an error, or was throttled for
        more than half a per cent of the time, or shared; disturbed where it warmed by more than
        15 °C or its memory failed. What only a baseline can tell (other
        clocks, a narrower link, more power cap) is the gate's to judge.
    """
    seen = (before, *between, after)
    told = [reading for reading in seen if not reading.blind and not reading.lost]
    lost = next((reading.lost for reading in seen if reading.lost), "")
    sick = tuple(_sick(seen))
    throttled = tuple(_throttled(told))
    shared = tuple(f"{process} computed on the GPU" for process in foreign)
    upset = tuple(_upset(told))
    return DeviceHealth(
        unfit=_unfit(
            lost=bool(lost or sick), throttled=bool(throttled), shared=bool(shared)
        ),
        disturbed=bool(upset),
        evidence=(
            *((f"the driver lost the GPU ({lost})",) if lost else ()),
            *sick,
            *throttled,
            *shared,
            *upset,
        ),
        remarks=tuple(_remarks(seen)),
        device=dict(_kept(told)),
    )


def _unfit(*, lost: bool, throttled: bool, shared: bool) -> Reason | None:
    if lost:
        return Reason.DEVICE_LOST
    if throttled:
        return Reason.THROTTLED
    return Reason.BUSY if shared else None


def _sick(seen: Sequence[DeviceReading]) -> Iterator[str]:
    """Name each error once, with how often it was reported."""
    numbers = [number for reading in seen for number in reading.xids or ()]
    for number in dict.fromkeys(numbers):
        times = numbers.count(number)
        often = f", {times} times" if times > 1 else ""
        yield f"the driver reported {xid_text(number)}{often}"


def shares_of(told: Sequence[DeviceReading]) -> dict[str, float]:
    """Give the share of the time for which each reason held the clocks down.

    Only reasons that the first and the last reading both count. A counter that
    went back, as when the driver is loaded anew, says nothing.
    """
    if len(told) < 2:
        return {}
    first, last = told[0], told[-1]
    wall_s = last.time_s - first.time_s
    if wall_s <= 0:
        return {}
    return {
        name: min((last.throttled_s[name] - start) / wall_s, 1.0)
        for name, start in first.throttled_s.items()
        if last.throttled_s.get(name, -1.0) >= start
    }


def _throttled(told: Sequence[DeviceReading]) -> Iterator[str]:
    shares = shares_of(told)
    for name, bit in _UNFIT_COUNTERS.items():
        share = shares.get(name)
        if share is None:
            if _in_a_row(told, bit):
                yield f"{REASONS[bit]} at two boundaries of blocks in a row"
        elif share > THROTTLED_SHARE:
            yield f"{REASONS[bit]} for {share:.1%} of the run"
    # it may blink when the GPU changes its performance state: once is no proof
    if _in_a_row(told, HW_SLOWDOWN):
        yield f"{REASONS[HW_SLOWDOWN]} at two boundaries of blocks in a row"


def _in_a_row(told: Sequence[DeviceReading], bit: int) -> bool:
    flags = [bool((reading.reasons or 0) & bit) for reading in told]
    return any(one and two for one, two in itertools.pairwise(flags))


def _upset(told: Sequence[DeviceReading]) -> Iterator[str]:
    warmths = [r.temperature_c for r in told if r.temperature_c is not None]
    if warmths and warmths[-1] - warmths[0] > WARMED_C:
        yield f"the GPU warmed from {warmths[0]:.0f} to {warmths[-1]:.0f} °C"
    errors = [r.memory_errors for r in told if r.memory_errors is not None]
    if errors and errors[-1] > errors[0]:
        yield f"{errors[-1] - errors[0]} uncorrected memory errors of the GPU"
    rows = [r.remapping for r in told if r.remapping is not None]
    if rows and rows[-1] and rows[-1] != rows[0]:
        yield f"the GPU began to fail: {rows[-1]}"


def _remarks(seen: Sequence[DeviceReading]) -> Iterator[str]:
    blind = [reading.blind for reading in seen if reading.blind]
    if len(blind) == len(seen):
        yield f"nobody watched the GPU: {blind[0]}"
    elif blind:
        yield f"the driver could not be asked any more ({blind[0]}): the GPU was not watched to the end"
    if any(reading.mig for reading in seen):
        yield "MIG is on: neighbours on the same GPU are invisible"
    unknown = sorted({bit for r in seen for bit in unknown_bits(r.reasons or 0)})
    if unknown:
        names = ", ".join(f"{bit:#x}" for bit in unknown)
        yield f"the driver names reasons for its clocks that are not known: {names}"


def unknown_bits(reasons: int) -> Iterator[int]:
    """Yield each bit that our table has no name for."""
    for place in range(reasons.bit_length()):
        if reasons >> place & 1 and 1 << place not in REASONS:
            yield 1 << place


def reason_words(reasons: int) -> tuple[str, ...]:
    """Name every bit; those unknown to us in hexadecimal."""
    known = [name for bit, name in REASONS.items() if reasons & bit]
    return (*known, *(f"{bit:#x}" for bit in unknown_bits(reasons)))


def _kept(told: Sequence[DeviceReading]) -> Iterator[tuple[str, float]]:
    """Yield what is worth keeping of a run."""
    at_work = told[1:] or told  # the first was taken before any block
    for name, values in (
        ("sm_clock_mhz", _values(r.sm_mhz for r in at_work)),
        ("memory_clock_mhz", _values(r.memory_mhz for r in at_work)),
    ):
        if values:
            yield name, statistics.median(values)
    yield from _moved_clock(_values(r.sm_mhz for r in at_work))
    warmths = _values(r.temperature_c for r in told)
    if warmths:
        yield "temperature_c", max(warmths)
    memory = _values(r.memory_temperature_c for r in told)
    if memory:
        yield "memory_temperature_c", max(memory)
    states = _values(r.performance_state for r in at_work)
    if states:
        yield "performance_state", max(states)  # the higher, the slower
    powers = _values(r.power_w for r in at_work)
    if powers:
        yield "power_w", max(powers)
    for name, share in shares_of(told).items():
        yield f"{name}_share", share
    for name, links in (
        ("pcie_generation", _values(r.pcie_generation for r in at_work)),
        ("pcie_width", _values(r.pcie_width for r in at_work)),
    ):
        if links:
            yield name, max(links)  # it drops when nothing runs


def _moved_clock(mhz: Sequence[float]) -> Iterator[tuple[str, float]]:
    """Keep where the clock began and ended, if that is not the same."""
    if mhz and abs(mhz[-1] - mhz[0]) > CLOCK_MOVED * mhz[0]:
        yield "sm_clock_first_mhz", mhz[0]
        yield "sm_clock_last_mhz", mhz[-1]


def _values(given: Iterable[float | None]) -> list[float]:
    return [float(value) for value in given if value is not None]


def foreign_processes(
    listed: Sequence[GpuProcess],
    *,
    earlier: Sequence[GpuProcess],
    itself: int,
    is_ours: Callable[[int], bool],
) -> tuple[GpuProcess, ...]:
    """Tell the processes of others among those that compute on the GPU.

    Parameters
    ----------
    listed : as they are now
    earlier : as they were when the run began, ours among them
    itself : our own process id

    Notes
    -----
    A driver may list a container's processes by the ids of the host, where
    ours cannot be told from another's. We then are not among them, and only
    who came during the run is taken for foreign.
    """
    translated = any(process.pid == itself for process in (*earlier, *listed))
    known = () if translated else tuple(process.pid for process in earlier)
    return tuple(
        process
        for process in listed
        if not is_ours(process.pid) and process.pid not in known
    )


class Watch:
    """Watches one GPU during one run; where there is none it sees nothing."""

    def __init__(self, telemetry: Telemetry | None) -> None:
        self._telemetry = telemetry
        self._between: list[DeviceReading] = []
        if telemetry is not None:
            self._before = telemetry.read(processes=True)

    @property
    def sm_mhz(self) -> float | None:
        """The clock as it was between the last two blocks; None where not told."""
        return self._between[-1].sm_mhz if self._between else None

    def look(self) -> None:
        """Read between two blocks."""
        if self._telemetry is not None:
            self._between.append(self._telemetry.read())

    def close(self) -> DeviceHealth:
        """Read for the last time, and say what all of it means."""
        if self._telemetry is None:
            return DeviceHealth()
        before, after = self._before, self._telemetry.read(processes=True)
        listed = {p.pid: p for r in (before, after) for p in r.processes or ()}
        foreign = foreign_processes(
            tuple(listed.values()),
            earlier=before.processes or (),
            itself=self._telemetry.sees_itself,
            is_ours=self._telemetry.is_ours,
        )
        return judge_device(before, self._between, after, foreign=foreign)
