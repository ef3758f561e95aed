"""Counts of what happened, with how sure they are."""

from dataclasses import dataclass

import numpy as np
from scipy.special import betaincinv


def exact_interval(hits, total, *, level=0.95):
    """Clopper and Pearson's interval of a share."""
    out = (1 - level) / 2
    low = betaincinv(hits, total - hits + 1, out) if hits else 0.0
    high = betaincinv(hits + 1, total - hits, 1 - out) if hits < total else 1.0
    return float(low), float(high)


@dataclass(frozen=True, kw_only=True)
class Share:
    """How many of how many."""

    hits: int
    total: int

    @classmethod
    def of(cls, flags):
        return cls(hits=int(np.count_nonzero(flags)), total=int(np.size(flags)))

    @property
    def value(self):
        return self.hits / self.total

    @property
    def interval(self):
        return exact_interval(self.hits, self.total)

    def __add__(self, other):
        return Share(hits=self.hits + other.hits, total=self.total + other.total)

    def __str__(self):
        low, high = self.interval
        return f"{percent(self.value)} ({percent(low)}–{percent(high)})"


@dataclass(frozen=True, kw_only=True)
class Mean:
    """A mean with its sum of squares, so that parts can be added."""

    total: float
    squares: float
    count: int

    @classmethod
    def of(cls, values):
        values = np.asarray(values, dtype=float)
        return cls(
            total=float(values.sum()),
            squares=float(np.square(values).sum()),
            count=int(values.size),
        )

    @property
    def value(self):
        return self.total / self.count

    @property
    def interval(self):
        variance = max(0.0, self.squares / self.count - self.value**2)
        reach = 1.96 * (variance / self.count) ** 0.5
        return self.value - reach, self.value + reach

    def __add__(self, other):
        return Mean(
            total=self.total + other.total,
            squares=self.squares + other.squares,
            count=self.count + other.count,
        )

    def __str__(self):
        low, high = self.interval
        return f"{self.value:.2f} ({low:.2f}–{high:.2f})"


@dataclass(frozen=True, kw_only=True)
class Points:
    """How far a share is from where it should be; never an estimate of its own."""

    value: float

    @property
    def interval(self):
        return self.value, self.value

    def __str__(self):
        return percent(self.value)


def percent(share):
    """Write a share in percent with the digits that it deserves."""
    value = 100 * share
    if value == 0 or value >= 99.995:
        return f"{value:.0f}"
    if value < 0.1:
        return f"{value:.2g}"
    return f"{value:.2f}" if value < 10 or value > 90 else f"{value:.1f}"


def encode(figure):
    return {**vars(figure), "kind": type(figure).__name__}


def decode(stored):
    kinds = {"Share": Share, "Mean": Mean, "Points": Points}
    return kinds[stored["kind"]](
        **{key: value for key, value in stored.items() if key != "kind"}
    )
