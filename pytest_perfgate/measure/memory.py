"""Peak memory of the process, reset before what is to be measured."""

import gc
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

_RESET_PEAK = "5"


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryUse:
    """What an untimed look at memory brought."""

    values: Mapping[str, float] = field(default_factory=dict)
    """By the name of the metric."""
    remarks: tuple[str, ...] = ()


def host_peak(
    call: Callable[[], object], *, proc: Path = Path("/proc/self")
) -> int | None:
    """Peak resident bytes of this process while `call` runs.

    Returns
    -------
    int or None
        None where the kernel lets the peak not be reset (`clear_refs`), for a
        peak of the whole life of the process would not be this call's.
    """
    gc.collect()
    try:
        (proc / "clear_refs").write_text(_RESET_PEAK)
    except OSError:
        return None
    call()
    return _high_water_mark(proc / "status")


def _high_water_mark(status: Path) -> int | None:
    try:
        lines = status.read_text().splitlines()
    except OSError:
        return None
    for line in lines:
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return None
