"""What can be said of a machine's fitness to measure, fact by fact."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from pytest_perfgate.measure.cgroup import Cgroup, own_cgroup
from pytest_perfgate.measure.cpu_guard import DISTURBED_RUN_SHARE, usable_cores
from pytest_perfgate.measure.environment import cpu_governor, cpu_model
from pytest_perfgate.measure.health import (
    HW_SLOWDOWN,
    SW_POWER_CAP,
    WAITED_FOR,
    DeviceReading,
    GpuProcess,
    Telemetry,
    judge_device,
    reason_words,
)
from pytest_perfgate.measure.nvml import Gpu
from pytest_perfgate.measure.readiness import BUSY_SHARE, MARGIN_C, foreign_in
from pytest_perfgate.measure.side_by_side import Turn
from pytest_perfgate.measure.xid import BY_APPLICATIONS, xid_text
from pytest_perfgate.model import Reason

_RESET = "reset the GPU; if they come back, have it replaced"
_SICK = (
    "reset it with nvidia-smi --gpu-reset, or restart the machine; if it comes back, "
    "have the GPU replaced"
)
_CRASHED = "a program on the GPU crashed: the kernel's log (dmesg) says which"
_STEAL_SHARE = 0.01
_LOAD_SHARE = 0.25
_GIB = 2**30


class State(StrEnum):
    """How a fact bears on measuring."""

    GOOD = "good"
    WARN = "warn"
    UNFIT = "unfit"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One line of an examination."""

    name: str
    value: str
    state: State = State.GOOD
    advice: str = ""


def _found(name: str, value: str) -> Finding:
    return Finding(name=name, value=value)


def _warned(name: str, value: str, advice: str) -> Finding:
    return Finding(name=name, value=value, state=State.WARN, advice=advice)


def _unfit(name: str, value: str, advice: str) -> Finding:
    return Finding(name=name, value=value, state=State.UNFIT, advice=advice)


# the GPU ------------------------------------------------------------------------


def examine_gpu(
    gpu: Gpu, telemetry: Telemetry, *, driver: str | None
) -> Iterator[Finding]:
    """Read a GPU once and say what there is to say of it."""
    memory = f", {gpu.memory_bytes / _GIB:.0f} GiB" if gpu.memory_bytes else ""
    uuid = f", {gpu.uuid}" if gpu.uuid else ""
    yield _found("GPU", f"{gpu.name}{memory}{uuid}")
    yield _found("driver", driver or "unknown")
    reading = telemetry.read(processes=True)
    if reading.lost:
        yield _unfit(
            "GPU state",
            f"lost: {reading.lost}",
            "reset it with nvidia-smi --gpu-reset, or restart the machine",
        )
        return
    if reading.blind:
        yield _warned(
            "GPU state",
            f"the driver does not answer: {reading.blind}",
            "throttling and other processes cannot be noticed; a container wants the "
            "utility capability of the driver, and the device itself",
        )
        return
    for number in dict.fromkeys(reading.xids or ()):
        advice = _CRASHED if number in BY_APPLICATIONS else _SICK
        yield _unfit("GPU errors", f"the driver reports {xid_text(number)}", advice)
    yield from _clocks(reading)
    yield from _heat(reading)
    yield _processes(reading, foreign_in(reading, telemetry))
    yield from _standing(reading)


def _clocks(reading: DeviceReading) -> Iterator[Finding]:
    if reading.sm_mhz is not None:
        most = f" of {reading.most_sm_mhz:.0f}" if reading.most_sm_mhz else ""
        yield _found("SM clock", f"{reading.sm_mhz:.0f}{most} MHz")
    if reading.memory_mhz is not None:
        yield _found("memory clock", f"{reading.memory_mhz:.0f} MHz")
    if reading.reasons is None:
        yield _warned(
            "throttling", "the driver does not tell", "it will not be noticed"
        )
        return
    words = ", ".join(reason_words(reading.reasons)) or "nothing holds the clocks down"
    if reading.reasons & (WAITED_FOR | HW_SLOWDOWN):
        yield _unfit("throttling", words, "see to cooling and to the power supply")
    elif reading.reasons & SW_POWER_CAP:
        yield _warned(
            "throttling", words, "something draws full power: is the GPU idle?"
        )
    else:
        yield _found("throttling", words)


def _heat(reading: DeviceReading) -> Iterator[Finding]:
    if reading.temperature_c is not None:
        margin = reading.margin_c
        told = "" if margin is None else f", {margin:.0f} °C below its limit"
        value = f"{reading.temperature_c:.0f} °C{told}"
        if margin is not None and margin < MARGIN_C:
            yield _unfit("temperature", value, "let it cool, or cool it better")
        else:
            yield _found("temperature", value)
    if reading.power_w is not None:
        limit = f" of {reading.power_limit_w:.0f}" if reading.power_limit_w else ""
        yield _found("power", f"{reading.power_w:.0f}{limit} W")


def _processes(reading: DeviceReading, foreign: Sequence[GpuProcess]) -> Finding:
    name = "other processes"
    if foreign:
        listed = ", ".join(map(str, foreign))
        return _unfit(name, listed, "stop them, or let one job at a time have the GPU")
    if reading.busy_share is not None and reading.busy_share > BUSY_SHARE:
        value = f"none is listed, but the GPU is {reading.busy_share:.0%} busy"
        return _unfit(name, value, "look for it from outside of this container")
    if reading.processes is None:
        return _warned(name, "the driver does not tell", "they will not be noticed")
    return _found(name, "none")


def _standing(reading: DeviceReading) -> Iterator[Finding]:
    if reading.mig:
        yield _warned(
            "MIG",
            "on",
            "neighbours on the same GPU are invisible: keep its other slices idle",
        )
    if reading.persistence is False:
        yield _warned("persistence mode", "off", "as root: nvidia-smi -pm 1")
    elif reading.persistence:
        yield _found("persistence mode", "on")
    if reading.ecc is not None:
        yield _found("ECC", "on" if reading.ecc else "off")
    if reading.remapping:
        yield _warned("memory rows", reading.remapping, _SICK)
    if reading.memory_errors:
        yield _warned(
            "memory errors",
            f"{reading.memory_errors} uncorrected since the driver was loaded",
            _RESET,
        )


def examine_gpu_at_work(before: DeviceReading, after: DeviceReading) -> Finding:
    """Say whether the GPU was well while the trial ran."""
    found = judge_device(before, (), after)
    if found.unfit is Reason.DEVICE_LOST:
        value = f"sick: {'; '.join(found.evidence)}"
        crashed = after.xids and BY_APPLICATIONS.issuperset(after.xids)
        return _unfit("GPU at work", value, _CRASHED if crashed else _SICK)
    if found.unfit is not None or found.disturbed:
        value = f"not well: {'; '.join(found.evidence)}"
        return _unfit("GPU at work", value, "see to cooling and to the power supply")
    if found.remarks:
        return _warned("GPU at work", "; ".join(found.remarks), "see above")
    return _found("GPU at work", "well")


# the processor ------------------------------------------------------------------


def examine_cpu(
    cgroup: Cgroup | None = None, *, load: float | None = None
) -> Iterator[Finding]:
    """Say what there is to say of the processor before anything is measured.

    Parameters
    ----------
    load : runnable processes, over the last minute; None asks the system
    """
    group = own_cgroup() if cgroup is None else cgroup
    cores = usable_cores(group)
    yield _found("CPU", f"{cpu_model()}, {cores} usable cores")
    running = os.getloadavg()[0] if load is None else load
    value = f"{running:.1f} processes on {os.cpu_count() or 1} cores"
    if running > _LOAD_SHARE * (os.cpu_count() or 1):
        yield _warned("load", value, "stop what else runs on this machine")
    else:
        yield _found("load", value)
    quota = group.quota_cores()
    if quota is not None:
        yield _warned(
            "CPU quota",
            f"{quota:g} cores",
            "who uses it up is stopped for milliseconds: give the container whole "
            "cores (a cpuset) in place of a quota",
        )
    governor = cpu_governor()
    if governor is not None and governor != "performance":
        advice = "as root: cpupower frequency-set -g performance"
        yield _warned("CPU governor", governor, advice)
    elif governor is not None:
        yield _found("CPU governor", governor)


def examine_turns(turns: Sequence[Turn]) -> Iterator[Finding]:
    """Say what the processor did while identical code was measured."""
    disturbed = [turn.disturbed for turn in turns if turn.disturbed]
    value = f"{len(disturbed)} of {len(turns)} turns"
    advice = "stop what else runs on this machine, or have cores of your own"
    if not disturbed:
        yield _found("disturbed", value)
    else:
        reasons = ", ".join(sorted(set(disturbed)))
        many = len(disturbed) > DISTURBED_RUN_SHARE * len(turns)
        made = _unfit if many else _warned
        yield made("disturbed", f"{value}: {reasons}", advice)
    steal = sum(turn.steal for turn in turns) / len(turns)
    if steal > _STEAL_SHARE:
        yield _warned(
            "stolen CPU time", f"{steal:.1%}", "the host is overcommitted: move away"
        )
    throttled_s = sum(turn.throttled_s for turn in turns)
    if throttled_s:
        yield _warned(
            "stopped by quota", f"{throttled_s:.2g} s", "raise the container's quota"
        )
