"""The cache of a device, displaced before each sample: `cache="flush"`.

What a call has just read and written lies in the cache, so the next call in a loop
finds it there; in a larger program, other work has displaced it meanwhile.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(slots=True, kw_only=True)
class Flush:
    """Flushes when it is called, and knows what that has cost: it is in no sample."""

    fill: Callable[[], object]
    """Returns when the cache holds nothing else any more."""
    now_ns: Callable[[], int]
    cpu_ns: Callable[[], int] = time.process_time_ns
    count: int = 0
    spent_ns: int = 0
    spent_cpu_ns: int = 0

    def __call__(self) -> None:
        cpu, began = self.cpu_ns(), self.now_ns()
        self.fill()
        self.spent_ns += self.now_ns() - began
        self.spent_cpu_ns += self.cpu_ns() - cpu
        self.count += 1

    @property
    def spent(self) -> tuple[int, int]:
        """Nanoseconds so far: on the clock, and of the processor."""
        return self.spent_ns, self.spent_cpu_ns

    @property
    def typical_ns(self) -> int:
        """What one has taken on average; zero before the first."""
        return round(self.spent_ns / max(self.count, 1))
