"""When the gate looks at the data, and how sure it must be each time."""

from dataclasses import dataclass, replace
from functools import cached_property

PLANNED = 3
"""Looks that the levels below are made for."""

_RED = (0.01, 0.03, 0.06)
_GREEN = (0.020, 0.015, 0.015)
_IDENTITY_WITH_BASE = 0.001
_FAMILY = 0.01
_FEWEST_PAIRS = 5
_USUAL_LAST = 12


@dataclass(frozen=True, kw_only=True)
class Look:
    """One of the planned looks at the data.

    The levels are each look's own, not cumulative: the earlier looks ask for
    more, and together they stay within 5 % and 1 %.
    """

    index: int = 0
    """From 0."""
    last: bool = True
    comparisons: int = 1
    """M: gated pairs of metric and statistic judged in the whole session."""
    final_runs: int = _USUAL_LAST
    """Candidate runs, or pairs, at the last look."""
    base_code: bool = False
    """Fresh runs of the base code can confirm what is flagged."""
    paired: bool = False
    """Baseline and candidate runs were made in alternation, pair by pair."""

    def __post_init__(self) -> None:
        for name in ("index", "comparisons", "final_runs"):
            value = getattr(self, name)
            if value < (0 if name == "index" else 1):
                raise ValueError(f"Look.{name}={value!r} is not allowed")

    @property
    def _place(self) -> int:
        # a plan of fewer looks spends the last one's level on its last
        return PLANNED - 1 if self.last else min(self.index, PLANNED - 2)

    @cached_property
    def red(self) -> float:
        """How often "over the budget" may be wrong at this look."""
        return _RED[self._place]

    @cached_property
    def green(self) -> float:
        """How often "within the budget" may be wrong at this look."""
        return _GREEN[self._place]

    @cached_property
    def identity(self) -> float:
        """How small the p-value of "nothing changed" must be for a change."""
        if self.base_code or self.paired:
            return _IDENTITY_WITH_BASE
        return _FAMILY / (self.comparisons * PLANNED)

    @property
    def at_last(self) -> "Look":
        """The same plan's last look."""
        return self if self.last else replace(self, last=True)

    @property
    def fewest_runs(self) -> int:
        """Runs a side, or pairs, below which nothing is decided."""
        return _FEWEST_PAIRS if self.paired else 3


def planned_looks(
    minimum: int, maximum: int, *, paired: bool = False
) -> tuple[int, ...]:
    """Give the numbers of candidate runs, or pairs, at which the gate looks.

    MIN, twice MIN and MAX; paired, from five pairs on, with the mean between.
    Looks that coincide are one.
    """
    if paired:
        first = max(minimum, _FEWEST_PAIRS)
        last = max(maximum, first)
        looks = [first, (first + last) // 2, last]
    else:
        looks = [minimum, min(2 * minimum, maximum), maximum]
    return tuple(sorted(set(looks)))
