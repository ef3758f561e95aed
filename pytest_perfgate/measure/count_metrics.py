"""What each count is called, how it is made, and what it may be compared with."""

import sys

from pytest_perfgate.measured import UNSTABLE, Metric
from pytest_perfgate.model import Better

_BYTES = frozenset({"bytes_h2d", "bytes_d2h", "peak_memory"})
_DEFINITIONS = {
    "ops": "leaf-operators/1",
    "ops_eager": "leaf-operators-uncompiled/1",
    "kernel_launches": "launch-calls/1",
    "graph_launches": "graph-launch-calls/1",
    "kernels": "device-kernels/1",
    "syncs": "host-waits/1",
    "copies_h2d": "device-copies/1",
    "copies_d2h": "device-copies/1",
    "copies_pageable": "pageable-copies/1",
    "bytes_h2d": "device-copies/1",
    "bytes_d2h": "device-copies/1",
    "allocations": "allocation-events/1",
    "allocation_retries": "allocator-retries/1",
    "peak_memory": "allocated-over-start/1",
    "compiled_graphs": "graphs-run/1",
    "graph_breaks": "breaks-of-graphs-run/1",
    "recompiles": "compiled-while-timed/1",
    "flops": "formulas/1",
}
MFU = Metric(
    name="mfu",
    unit="",
    better=Better.HIGHER,
    definition="flops-over-dense-peak/1",
)
_ON_CPU = {"syncs": "host-reads/1"}
"""Where a count has another meaning without a GPU."""


def count_metric(name: str, *, on_gpu: bool, stable: bool) -> Metric:
    """Give a count's metric: it holds for one kind of device and one torch.

    Parameters
    ----------
    stable : two passes agreed on it
    """
    kind = "cuda" if on_gpu else "cpu"
    what = _DEFINITIONS[name] if on_gpu else _ON_CPU.get(name)
    what = what or _DEFINITIONS[name]
    version = getattr(sys.modules["torch"], "__version__", "unknown")
    whom = f"{kind} torch {version}" if stable else UNSTABLE
    return Metric(
        name=name,
        unit="B" if name in _BYTES else "1",
        definition=f"{what}@{whom}",
        exact=True,
    )
