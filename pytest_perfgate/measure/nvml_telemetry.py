"""The driver's readings of one GPU through NVML: newest call first, all optional.

What a driver or a board does not tell is None. What it says with an error that
no other call would survive ends a reading: the GPU is lost, or nobody can be
asked any more.
"""

import contextlib
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from pytest_perfgate.measure.health import DeviceReading, GpuProcess, Telemetry
from pytest_perfgate.measure.nvml import import_binding, text_of
from pytest_perfgate.measure.xid import XidEvents

T = TypeVar("T")
Nvml = Any
"""The module pynvml, which has no types."""

_LOST = {15, 16}
"""GPU is lost; GPU requires a reset."""
_BLIND = {1, 9, 10, 12, 17, 18, 999}
"""Not initialised, driver not loaded, timeout, no library, the system refused,
driver and library of two versions, unknown: a container that lost its devices."""
_COUNTERS = {
    74: "sw_power_cap",
    76: "sync_boost",
    77: "board_limit",
    79: "reliability",
    269: "sw_thermal",
    270: "hw_thermal",
    271: "power_brake",
}
"""Fields that count nanoseconds. By number: bindings before 13.580 know no
names of the last three."""
_MEMORY_TEMPERATURE, _POWER_NOW = 82, 186
_MEMBERS = ("dVal", "uiVal", "ulVal", "ullVal", "sllVal", "siVal", "usVal")
"""Members of the value's union, by the number of its type."""
_SM, _MEMORY = 1, 2
_GPU_SENSOR, _SLOWDOWN = 0, 1
_UNCORRECTED, _VOLATILE = 1, 0


class _Ended(Exception):
    """No further call can be answered."""

    def __init__(self, text: str, *, lost: bool) -> None:
        super().__init__(text)
        self.lost = lost


class SilentTelemetry:
    """Stands in where the driver can tell nothing of a GPU: it says why."""

    def __init__(self, why: str, *, lost: bool = False) -> None:
        self._why = why
        self._lost = lost

    def read(self, *, processes: bool = False) -> DeviceReading:
        del processes
        if self._lost:
            return DeviceReading(time_s=0.0, lost=self._why)
        return DeviceReading(time_s=0.0, blind=self._why)

    def is_ours(self, pid: int) -> bool:
        return pid == os.getpid()

    @property
    def sees_itself(self) -> int:
        return os.getpid()


def worker_telemetry(uuid: str) -> Telemetry:
    """Stand ready to read a GPU in a worker.

    Its parent is the manager, or a launcher below it, and what stems from that
    is ours: the other half of a pair, other ranks, a worker that still dies.
    """
    return open_telemetry(uuid, family=(os.getpid(), os.getppid()))


def manager_telemetry(uuid: str) -> Telemetry:
    """Stand ready in a manager, of whose siblings none is ours."""
    return open_telemetry(uuid, family=(os.getpid(),))


def open_telemetry(uuid: str, *, family: Sequence[int]) -> Telemetry:
    """Find a GPU by its UUID and stand ready to read it.

    Parameters
    ----------
    uuid : as the driver or as torch writes it, with or without `GPU-`
    family : processes that are ours, with all that stem from them
    """
    nvml = import_binding()
    full = uuid.startswith(("GPU-", "MIG-"))
    problem, lost = "", False
    for name in (uuid,) if full else (f"GPU-{uuid}", f"MIG-{uuid}"):
        try:
            nvml.nvmlInit()
            handle = nvml.nvmlDeviceGetHandleByUUID(name)
            return NvmlTelemetry(nvml, handle, family=family)
        except nvml.NVMLError as error:
            problem = problem or str(error)
            lost = lost or getattr(error, "value", 0) in _LOST
        except _Ended as end:
            problem, lost = str(end), end.lost
    return SilentTelemetry(problem, lost=lost)


class NvmlTelemetry:
    """Reads one GPU; NVML stays initialised until the process ends."""

    def __init__(
        self,
        nvml: Nvml,
        handle: object,
        *,
        family: Sequence[int],
        clock: Callable[[], float] = time.monotonic,
        proc: Path = Path("/proc"),
    ) -> None:
        self._nvml = nvml
        self._family = {pid for pid in family if pid > 1}
        self._clock = clock
        self._proc = proc
        self._sliced = bool(
            self._ask(lambda: _number(nvml.nvmlDeviceIsMigDeviceHandle(handle)))
        )
        # clocks, heat and power are the whole GPU's; memory, and who computes, the slice's
        whole = (
            self._ask(lambda: nvml.nvmlDeviceGetDeviceHandleFromMigDeviceHandle(handle))
            if self._sliced
            else None
        )
        self._slice, self._gpu = handle, handle if whole is None else whole
        self._xids = XidEvents(nvml, self._gpu)

    # -- asking

    def read(self, *, processes: bool = False) -> DeviceReading:
        found: dict[str, Any] = {"xids": self._xids.read()}
        try:
            found.update(self._quantities())  # what was told before an end stays
            if processes:
                found["processes"] = self._processes()
                found["free_bytes"] = self._free_bytes()
        except _Ended as end:
            found["lost" if end.lost else "blind"] = str(end)
        return DeviceReading(time_s=self._clock(), **found)

    def is_ours(self, pid: int) -> bool:
        """Tell our family, and those who wait for us: a notebook, a runner."""
        stems = any(one in self._family for one in self._ancestry(pid))
        return stems or pid in set(self._ancestry(os.getpid()))

    @property
    def sees_itself(self) -> int:
        return os.getpid()

    def _ancestry(self, pid: int) -> Iterator[int]:
        seen: set[int] = set()
        while pid > 1 and pid not in seen:
            yield pid
            seen.add(pid)
            pid = _parent_of(self._proc / str(pid) / "stat")

    def _ask(self, *calls: Callable[[], T]) -> T | None:
        """Return the first answer; None where no call is known or supported.

        Raises
        ------
        _Ended
            Where no other call would be answered either.
        """
        nvml = self._nvml
        for call in calls:
            try:
                return call()
            except nvml.NVMLError as error:
                code = getattr(error, "value", 0)
                if code in _LOST or code in _BLIND:
                    raise _Ended(str(error), lost=code in _LOST) from error
            except (AttributeError, nvml.NVMLLibraryMismatchError):
                pass  # an older binding, or an older library: ask the older call
        return None

    # -- what is asked

    def _quantities(self) -> Iterator[tuple[str, object]]:
        nvml, gpu = self._nvml, self._gpu
        fields = self._fields((*_COUNTERS, _MEMORY_TEMPERATURE, _POWER_NOW))
        yield (
            "throttled_s",
            {
                name: fields[number] / 1e9
                for number, name in _COUNTERS.items()
                if number in fields
            },
        )
        yield "memory_temperature_c", fields.get(_MEMORY_TEMPERATURE)
        yield "power_w", _scaled(fields.get(_POWER_NOW), 1e-3)
        yield (
            "reasons",
            self._ask(
                lambda: int(nvml.nvmlDeviceGetCurrentClocksEventReasons(gpu)),
                lambda: int(nvml.nvmlDeviceGetCurrentClocksThrottleReasons(gpu)),
            ),
        )
        yield from self._clocks()
        yield from self._heat()
        yield from self._standing()

    def _clocks(self) -> Iterator[tuple[str, float | None]]:
        nvml, gpu = self._nvml, self._gpu
        yield "sm_mhz", self._ask(lambda: nvml.nvmlDeviceGetClockInfo(gpu, _SM))
        yield "memory_mhz", self._ask(lambda: nvml.nvmlDeviceGetClockInfo(gpu, _MEMORY))
        yield "most_sm_mhz", self._ask(lambda: nvml.nvmlDeviceGetMaxClockInfo(gpu, _SM))

    def _heat(self) -> Iterator[tuple[str, float | None]]:
        nvml, gpu = self._nvml, self._gpu
        warmth = self._ask(
            lambda: nvml.nvmlDeviceGetTemperatureV(gpu, _GPU_SENSOR),
            lambda: nvml.nvmlDeviceGetTemperature(gpu, _GPU_SENSOR),
        )
        yield "temperature_c", warmth
        margin = self._ask(lambda: nvml.nvmlDeviceGetMarginTemperature(gpu))
        if margin is None and warmth is not None:  # before Ada
            limit = self._ask(
                lambda: nvml.nvmlDeviceGetTemperatureThreshold(gpu, _SLOWDOWN)
            )
            margin = None if limit is None else limit - warmth
        yield "margin_c", margin
        yield (
            "power_limit_w",
            _scaled(self._ask(lambda: nvml.nvmlDeviceGetEnforcedPowerLimit(gpu)), 1e-3),
        )

    def _standing(self) -> Iterator[tuple[str, object]]:
        nvml, gpu = self._nvml, self._gpu
        busy = self._ask(lambda: nvml.nvmlDeviceGetUtilizationRates(gpu).gpu)
        yield "busy_share", _scaled(busy, 1e-2)
        yield (
            "mig",
            self._sliced or self._flag(lambda: nvml.nvmlDeviceGetMigMode(gpu)[0]),
        )
        yield "ecc", self._flag(lambda: nvml.nvmlDeviceGetEccMode(gpu)[0])
        yield (
            "memory_errors",
            self._ask(
                lambda: nvml.nvmlDeviceGetTotalEccErrors(gpu, _UNCORRECTED, _VOLATILE)
            ),
        )
        yield "remapping", self._remapping()
        yield "persistence", self._flag(lambda: nvml.nvmlDeviceGetPersistenceMode(gpu))
        yield (
            "pcie_generation",
            self._ask(lambda: nvml.nvmlDeviceGetCurrPcieLinkGeneration(gpu)),
        )
        yield "pcie_width", self._ask(lambda: nvml.nvmlDeviceGetCurrPcieLinkWidth(gpu))
        yield (
            "performance_state",
            self._ask(lambda: nvml.nvmlDeviceGetPerformanceState(gpu)),
        )

    def _remapping(self) -> str | None:
        """Say what of the memory's rows awaits a reset; empty where all is well."""
        rows = self._ask(lambda: self._nvml.nvmlDeviceGetRemappedRows(self._gpu))
        if rows is None:
            return None
        _, _, pending, failed = rows
        if failed:
            return "a row of its memory could not be replaced"
        return (
            "a row of its memory is to be replaced at the next reset" if pending else ""
        )

    def _free_bytes(self) -> int | None:
        nvml, gpu = self._nvml, self._slice
        return self._ask(lambda: int(nvml.nvmlDeviceGetMemoryInfo(gpu).free))

    def _flag(self, call: Callable[[], object]) -> bool | None:
        answer = self._ask(call)
        return None if answer is None else bool(answer)

    def _fields(self, numbers: Sequence[int]) -> Mapping[int, float]:
        """Read several fields in one call, which succeeds if any of them does."""
        values = self._ask(
            lambda: self._nvml.nvmlDeviceGetFieldValues(self._gpu, list(numbers))
        )
        return {
            int(value.fieldId): float(getattr(value.value, _MEMBERS[value.valueType]))
            for value in values or ()
            if value.nvmlReturn == 0 and 0 <= value.valueType < len(_MEMBERS)
        }

    def _processes(self) -> tuple[GpuProcess, ...] | None:
        """List who computes, under MPS too; None where that is not told."""
        nvml, gpu = self._nvml, self._slice
        lists = [
            self._ask(
                lambda: nvml.nvmlDeviceGetComputeRunningProcesses(gpu),
                lambda: nvml.nvmlDeviceGetComputeRunningProcesses_v2(gpu),
            ),
            self._ask(lambda: nvml.nvmlDeviceGetMPSComputeRunningProcesses(gpu)),
        ]
        if lists == [None, None]:
            return None
        found = {info.pid: info for listed in lists for info in listed or ()}
        return tuple(self._process(info) for info in found.values())

    def _process(self, info: Any) -> GpuProcess:  # noqa: ANN401 (the binding's)
        memory = info.usedGpuMemory
        return GpuProcess(
            pid=int(info.pid),
            name=self._name_of(info.pid),
            memory_bytes=None if memory is None else int(memory),
        )

    def _name_of(self, pid: int) -> str:
        with contextlib.suppress(OSError):
            return (self._proc / str(pid) / "comm").read_text(errors="replace").strip()
        answer = None
        with contextlib.suppress(_Ended):
            answer = self._ask(
                lambda: text_of(self._nvml.nvmlSystemGetProcessName(pid))
            )
        return answer or ""


def _number(answer: Any) -> int:  # noqa: ANN401 (a number, or ctypes' box of one)
    return int(getattr(answer, "value", answer))


def _scaled(value: float | None, factor: float) -> float | None:
    return None if value is None else value * factor


def _parent_of(stat: Path) -> int:
    """Read a process's parent; 0 where it is gone or hidden."""
    try:
        # the second field, a name in parentheses, may hold anything
        return int(stat.read_text(errors="replace").rpartition(")")[2].split()[1])
    except (OSError, ValueError, IndexError):
        return 0
