"""A GPU whose health is scripted: see the fake device."""

import os
from collections.abc import Callable
from dataclasses import dataclass

from pytest_perfgate.measure.health import (
    HW_THERMAL,
    WAITED_FOR,
    DeviceReading,
    GpuProcess,
)

_FIRST_PID = 4_000_000_000
"""Beyond any process id a system gives."""
_MARGIN_C = 40.0


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuScript:
    """What the driver tells during a run."""

    sm_mhz: float = 1980.0
    last_sm_mhz: float | None = None
    """From the second look between blocks on, where it does not hold."""
    temperature_c: float = 50.0
    warmed_c: float = 0.0
    pcie_width: int = 16
    throttled: float = 0.0
    power_capped: float = 0.0
    foreign: tuple[str, ...] = ()
    lost: int | None = None
    """From so many readings on the GPU is lost."""
    blind: int | None = None
    xid: int | None = None
    """Reported once, after the first block."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineScript:
    """What the driver tells before the first run."""

    foreign: tuple[str, ...] = ("python train.py",)
    busy_s: float = 0.0
    hot_s: float = 0.0
    throttled_s: float = 0.0
    full_s: float = 0.0
    """Until then a GiB of memory is free, and from then on all of it."""
    lost: bool = False


class FakeGpu:
    """Tells of a run by its script, on the clock of the fake device."""

    def __init__(self, script: GpuScript, now_ns: Callable[[], int]) -> None:
        self._script = script
        self._now_ns = now_ns
        self._began_ns = now_ns()
        self._readings = 0

    def read(self, *, processes: bool = False) -> DeviceReading:
        script, now_s = self._script, self._now_ns() / 1e9
        passed_s = (self._now_ns() - self._began_ns) / 1e9
        place = self._readings
        self._readings += 1
        if script.lost is not None and place >= script.lost:
            return DeviceReading(time_s=now_s, lost="GPU is lost")
        if script.blind is not None and place >= script.blind:
            return DeviceReading(time_s=now_s, blind="Unknown Error")
        return DeviceReading(
            time_s=now_s,
            reasons=HW_THERMAL if script.throttled else 0,
            throttled_s={
                "hw_thermal": script.throttled * passed_s,
                "sw_power_cap": script.power_capped * passed_s,
            },
            sm_mhz=script.sm_mhz if place < 2 else script.last_sm_mhz or script.sm_mhz,
            temperature_c=script.temperature_c + (script.warmed_c if place else 0.0),
            pcie_width=script.pcie_width,
            xids=(script.xid,) if script.xid is not None and place == 1 else (),
            processes=self._processes(place) if processes else None,
        )

    def _processes(self, place: int) -> tuple[GpuProcess, ...]:
        ours = GpuProcess(pid=os.getpid(), name="pytest")
        return (ours, *(_others(self._script.foreign) if place else ()))

    def is_ours(self, pid: int) -> bool:
        return pid == os.getpid()

    @property
    def sees_itself(self) -> int:
        return os.getpid()


class FakeMachine:
    """Tells what there is before the first run; its clock is moved by waiting."""

    def __init__(self, script: MachineScript) -> None:
        self._script = script
        self.now_s = 0.0

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds

    def read(self, *, processes: bool = False) -> DeviceReading:
        script = self._script
        if script.lost:
            return DeviceReading(time_s=self.now_s, lost="GPU is lost")
        busy = processes and self.now_s < script.busy_s
        return DeviceReading(
            time_s=self.now_s,
            reasons=WAITED_FOR & HW_THERMAL if self.now_s < script.throttled_s else 0,
            margin_c=0.0 if self.now_s < script.hot_s else _MARGIN_C,
            processes=_others(script.foreign) if busy else (),
            free_bytes=1 << 30 if self.now_s < script.full_s else 80 << 30,
        )

    def is_ours(self, pid: int) -> bool:
        return pid == os.getpid()

    @property
    def sees_itself(self) -> int:
        return os.getpid()


def _others(names: tuple[str, ...]) -> tuple[GpuProcess, ...]:
    return tuple(
        GpuProcess(pid=_FIRST_PID + number, name=name)
        for number, name in enumerate(names)
    )
