"""How verdicts complete their sentences."""

from collections.abc import Sequence

from pytest_perfgate.gate.budgets import TAIL_IN_RUN, TAIL_ON_SIDE, samples_for


def tail_text(statistic: str, counts: Sequence[int]) -> str:
    """Say how many samples the runs of a side have, and what a tail needs."""
    return (
        f"have {min(counts):,} a run and {sum(counts):,} a side, {statistic.upper()}"
        f" needs {samples_for(statistic, TAIL_IN_RUN):,}"
        f" and {samples_for(statistic, TAIL_ON_SIDE):,}"
    )


def runs_text(needed: int | None) -> str:
    if needed is None:
        return "no number of candidate runs is enough, record more baseline runs"
    return f"needs {needed} runs"
