"""What a call takes of a GPU's memory: peaks and pains of torch's allocator.

From an empty cache, since what an allocator reserves depends on what it has already;
so it is never a part of anything timed.
"""

import gc
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pytest_perfgate.measure.memory import MemoryUse

CALLS = 2
"""The second finds what the first keeps, such as an optimizer's state."""
NATIVE = "native"
"""torch's own caching allocator; others keep no such accounts."""
_COUNTERS = {
    "allocator_retries": "num_alloc_retries",
    "allocator_ooms": "num_ooms",
    "device_allocations": "num_device_alloc",
}
_SPLIT = "inactive_split_bytes.all.peak"


@dataclass(frozen=True, slots=True, kw_only=True)
class _State:
    """The accounts of the allocator, and what the driver says of the whole GPU."""

    stats: Mapping[str, int]
    allocated: int
    outside: int
    """Bytes in use beside those that the allocator has reserved."""


def memory_of(
    cuda: Any,  # noqa: ANN401 (the module torch.cuda)
    index: int,
    call: Callable[[], object],
) -> MemoryUse:
    """Call twice from an empty cache, and read what that took."""
    gc.collect()
    cuda.synchronize(index)
    cuda.empty_cache()
    cuda.reset_peak_memory_stats(index)
    before = _state(cuda, index)
    for _ in range(CALLS):
        call()
    cuda.synchronize(index)
    after = _state(cuda, index)
    peak = int(cuda.max_memory_allocated(index))
    reserved = int(cuda.max_memory_reserved(index))
    found: dict[str, float] = {
        "peak_memory": peak,
        "base_memory": before.allocated,
        "working_memory": max(peak - before.allocated, 0),
        "reserved_memory": reserved,
        "outside_memory": max(after.outside - before.outside, 0),
    }
    why_not = _why_no_details(cuda)
    if why_not:
        return MemoryUse(values=found, remarks=(why_not,))
    found |= dict(_details(before, after, peak=peak, reserved=reserved))
    return MemoryUse(values=found)


def _state(cuda: Any, index: int) -> _State:  # noqa: ANN401 (as above)
    free, total = cuda.mem_get_info(index)
    return _State(
        stats=cuda.memory_stats(index),
        allocated=int(cuda.memory_allocated(index)),
        outside=int(total - free - cuda.memory_reserved(index)),
    )


def _why_no_details(cuda: Any) -> str:  # noqa: ANN401 (as above)
    """Say why the allocator does not tell more; its zeros are no measurement."""
    backend = getattr(cuda, "get_allocator_backend", lambda: NATIVE)()
    if backend == NATIVE:
        return ""
    return (
        f"no fragmentation, retries and allocations of the driver: the allocator "
        f"{backend} keeps no account of them"
    )


def _details(
    before: _State, after: _State, *, peak: int, reserved: int
) -> Iterator[tuple[str, float]]:
    """Yield what torch's own allocator tells; an older one may not know all of it."""
    if reserved:
        yield "memory_fragmentation", 1 - peak / reserved
    if _SPLIT in after.stats:
        yield "inactive_split_memory", after.stats[_SPLIT]
    for name, counter in _COUNTERS.items():
        if counter in after.stats:
            yield name, after.stats[counter] - before.stats.get(counter, 0)
