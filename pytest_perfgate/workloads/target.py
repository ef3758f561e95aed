"""Which benchmark a measurement belongs to."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A test, and the id under which one of its measurements is known."""

    nodeid: str
    benchmark: str
