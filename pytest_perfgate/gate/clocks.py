"""What the GPU's clocks have to do with a difference in time.

A change of the code shows in time and in cycles (time × clock of the SMs). One
that shows in time alone is a difference of clocks, and the gate calls neither a
regression nor, the other way round, a pass on it.
"""

import math
import statistics
from collections.abc import Iterator
from dataclasses import dataclass, replace

from pytest_perfgate.gate.bounds import Bar, is_faster, is_over
from pytest_perfgate.gate.looks import Look
from pytest_perfgate.measured import Metric
from pytest_perfgate.model import RunSummary
from pytest_perfgate.stats.interval import Estimate
from pytest_perfgate.units import format_change

SM_CLOCK = "sm_clock_mhz"
POWER_CAP = "sw_power_cap_share"
_OF_THE_HOST = frozenset({"cpu_time", "first_call", "loader_wait", "loader_rate"})
LINKS = {"pcie_generation": "PCIe generation", "pcie_width": "PCIe width"}
MORE_POWER_CAP = 0.10
"""So much more of the time under the power cap than the baseline was is odd."""
OTHER_CLOCK = 0.02
"""A clock that is higher by more may hide what the code lost."""

Runs = tuple[RunSummary, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Clocks:
    """How the GPU's state differs between two sides; nothing where unknown."""

    before_mhz: float | None = None
    now_mhz: float | None = None
    odd: tuple[str, ...] = ()
    """What is worse for the candidate than it was for the baseline."""

    @property
    def shift(self) -> float | None:
        """Log of the candidate's clock ÷ the baseline's."""
        if self.before_mhz is None or self.now_mhz is None:
            return None
        return math.log(self.now_mhz / self.before_mhz)

    @property
    def links(self) -> tuple[str, ...]:
        return tuple(odd for odd in self.odd if "PCIe" in odd)

    @property
    def of_a_waiting_gpu(self) -> "Clocks":
        """What is left of it where the GPU waits for the host: its link alone."""
        return Clocks(odd=self.links)

    @property
    def text(self) -> str:
        return f"{self.before_mhz:.0f} → {self.now_mhz:.0f} MHz"


UNKNOWN = Clocks()


def compare_clocks(baseline: Runs, candidate: Runs) -> Clocks:
    """Compare what the driver told during the runs of two sides."""
    if not [run for run in candidate if run.device]:
        return UNKNOWN
    before, now = _middle(baseline, SM_CLOCK), _middle(candidate, SM_CLOCK)
    return Clocks(
        before_mhz=before or None,
        now_mhz=now or None,
        odd=tuple(_odd(baseline, candidate)),
    )


def _middle(runs: Runs, name: str) -> float | None:
    told = [run.device[name] for run in runs if name in run.device]
    return statistics.median(told) if told else None


def _odd(baseline: Runs, candidate: Runs) -> Iterator[str]:
    before, now = _middle(baseline, POWER_CAP), _middle(candidate, POWER_CAP)
    if before is not None and now is not None and now - before > MORE_POWER_CAP:
        yield f"power cap {before:.0%} → {now:.0%} of the time"
    for name, words in LINKS.items():
        before, now = _middle(baseline, name), _middle(candidate, name)
        if before is not None and now is not None and now < before:
            yield f"{words} {before:.0f} → {now:.0f}"


def is_clocked(metric: Metric) -> bool:
    """Tell whether a metric is a time, or a rate, in which a GPU has a part."""
    timed = metric.unit == "s" or metric.unit.endswith("/s")
    return timed and metric.name not in _OF_THE_HOST


def excuse(clocks: Clocks, found: Estimate, bar: Bar, look: Look) -> str | None:
    """Say what else explains that the time lies beyond its budget.

    Returns
    -------
    str or None
        None where the cycles lie beyond it as well, whatever the clocks do;
        and where no clock is known and nothing else is odd.
    """
    shift = clocks.shift
    if shift is None:
        return f"not the code alone: {'; '.join(clocks.odd)}" if clocks.odd else None
    if is_over(_in_cycles(found, shift), bar, look):
        links = "; ".join(clocks.links)
        return f"not the code alone: {links}" if links else None
    return f"a difference of clocks, not a regression: {_told(clocks, found, shift)}"


def flattery(clocks: Clocks, found: Estimate, bar: Bar, look: Look) -> str | None:
    """Say so where a higher clock hides that the cycles lie beyond the budget."""
    shift = clocks.shift
    if shift is None or shift <= math.log1p(OTHER_CLOCK):
        return None
    if not is_over(_in_cycles(found, shift), bar, look):
        return None
    return f"a difference of clocks hides it: {_told(clocks, found, shift)}"


def is_faster_in_cycles(clocks: Clocks, found: Estimate, look: Look) -> bool:
    """Tell whether a gain is the code's, as far as the clocks are known."""
    shift = clocks.shift
    if shift is None or shift <= math.log1p(OTHER_CLOCK):
        return True
    return is_faster(_in_cycles(found, shift), look)


def _in_cycles(found: Estimate, shift: float) -> Estimate:
    return replace(found, delta=found.delta + shift)


def _told(clocks: Clocks, found: Estimate, shift: float) -> str:
    time, cycles = math.exp(found.delta), math.exp(found.delta + shift)
    return (
        f"{format_change(time)} in time, {format_change(cycles)} in cycles "
        f"({clocks.text})"
    )
