"""Whether two sides did the same work, told from what came out."""

import math
import statistics
from collections.abc import Mapping, Sequence

from pytest_perfgate.model import RunSummary

ALIKE = 0.01
"""Magnitudes closer than this are the same: other kernels round otherwise."""


def other_work(
    baseline: Sequence[RunSummary], candidate: Sequence[RunSummary]
) -> str | None:
    """Say how the outputs of two sides differ.

    Returns
    -------
    str or None
        None where they agree, and where they cannot be held against each other:
        a side has none, or one whose runs do not agree among themselves.
    """
    if not candidate or not candidate[0].output:
        return None
    before, now = _common(baseline), _common(candidate)
    if not before or not now:
        return None
    if before.keys() != now.keys():
        return f"the output was {_named(before)} and is {_named(now)}"
    for name, value in now.items():
        if not _alike(before[name], value):
            return f"the mean magnitude of {name} was {before[name]:.4g} and is {value:.4g}"
    return None


def _common(runs: Sequence[RunSummary]) -> Mapping[str, float]:
    """Give the output that all runs agree on; nothing where they do not."""
    outputs = [run.output for run in runs]
    if not outputs or any(one.keys() != outputs[0].keys() for one in outputs):
        return {}
    common = {
        name: statistics.median(one[name] for one in outputs) for name in outputs[0]
    }
    agreed = all(
        _alike(common[name], value) for one in outputs for name, value in one.items()
    )
    return common if agreed else {}


def _alike(first: float, second: float) -> bool:
    return math.isclose(first, second, rel_tol=ALIKE)


def _named(output: Mapping[str, float]) -> str:
    return ", ".join(sorted(output))
