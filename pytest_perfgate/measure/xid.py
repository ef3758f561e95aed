"""Errors that the driver reports of a GPU by a number, its XID.

The driver queues them as events for whoever registered. The queue is emptied
between blocks, and never waited for. Where a driver, a board or a binding has no
such events, nothing is told, and that is no evidence.
"""

import contextlib
import weakref
from collections.abc import Mapping
from typing import Any

Nvml = Any
"""The module pynvml, which has no types."""

MEANINGS: Mapping[int, str] = {
    13: "an application's kernel raised an exception",
    31: "an application touched memory that is not its own",
    43: "an application's work was ended after its error",
    45: "an application's work was cleared away, often since it was killed",
    48: "memory error of two bits, which cannot be corrected",
    63: "a row of its memory is being replaced after errors",
    64: "a row of its memory could not be replaced after errors",
    74: "error on an NVLink",
    79: "it has fallen off the bus",
    94: "uncorrected memory error, contained to one application",
    95: "uncorrected memory error that reached all applications",
}
"""In our words, of those met most. Source: NVIDIA, "XID Errors", in the GPU
deployment and management documentation (docs.nvidia.com/deploy/xid-errors)."""
BY_APPLICATIONS = frozenset({13, 31, 43, 45})
"""What a program on the GPU does to itself; the GPU recovers."""

_XID_EVENT = 0x8
_TIMEOUT, _NO_SUCH_FUNCTION = 10, 13
_MOST = 32
"""Events read at once: a GPU that dies may report without end."""


def xid_text(number: int) -> str:
    """Write `XID 79 (it has fallen off the bus)`; the number alone where unknown."""
    known = MEANINGS.get(number)
    return f"XID {number} ({known})" if known else f"XID {number}"


class XidEvents:
    """Gives the XIDs of one GPU since it was asked last; freed with the process."""

    def __init__(self, nvml: Nvml, gpu: object) -> None:
        self._nvml = nvml
        self._events = self._register(gpu)

    def _register(self, gpu: object) -> object:
        """Ask for the events; None where they cannot be had."""
        nvml = self._nvml
        try:
            if not nvml.nvmlDeviceGetSupportedEventTypes(gpu) & _XID_EVENT:
                return None
            events = nvml.nvmlEventSetCreate()
        except (AttributeError, nvml.NVMLError):
            return None
        weakref.finalize(self, _free, nvml, events)
        try:
            nvml.nvmlDeviceRegisterEvents(gpu, _XID_EVENT, events)
        except (AttributeError, nvml.NVMLError):
            return None
        return events

    def read(self) -> tuple[int, ...] | None:
        """Empty the queue; None where nobody tells, or has ceased to."""
        found: list[int] = []
        while self._events is not None and len(found) < _MOST:
            number = self._next()
            if number is None:
                break
            found.append(number)
        return tuple(found) if self._events is not None or found else None

    def _next(self) -> int | None:
        """Take the next event without waiting for one, by the older call if need be."""
        nvml = self._nvml
        for name in ("nvmlEventSetWait_v2", "nvmlEventSetWait"):
            try:
                return int(getattr(nvml, name)(self._events, 0).eventData)
            except (AttributeError, nvml.NVMLLibraryMismatchError):
                continue
            except nvml.NVMLError as error:
                code = getattr(error, "value", 0)
                if code == _TIMEOUT:
                    return None  # the queue is empty
                if code != _NO_SUCH_FUNCTION:
                    break
        self._events = None
        return None


def _free(nvml: Nvml, events: object) -> None:
    with contextlib.suppress(AttributeError, nvml.NVMLError):
        nvml.nvmlEventSetFree(events)
