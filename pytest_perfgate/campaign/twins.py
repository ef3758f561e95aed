"""Set-up that fails only because the other half of a pair is alive."""

import re

from pytest_perfgate.campaign.ledger import Entry, Ledger

_HELD = re.compile(
    r"address already in use|resource temporarily unavailable|device or resource busy"
    r"|database is locked|file exists|already locked|could not (?:acquire|obtain) .*lock"
    r"|eaddrinuse|out of memory|timeout.* lock|another (?:process|instance)",
    re.IGNORECASE,
)
"""What a fixture says that wants a port, folder, lock or memory of its own."""


def held_by_twin(ledger: Ledger, run: int) -> str:
    """Find set-ups of a pair that failed on one side, as if the other held something.

    Their failures are forgotten: the pair is made again with one worker alive
    at a time. If they fail then too, it was not the twin, and they stand.

    Returns
    -------
    str
        What one of them said; empty where there is none.
    """
    said = ""
    for entry in ledger.entries.values():
        if entry.twin is None:
            continue
        for one, other in ((entry, entry.twin), (entry.twin, entry)):
            text = _held(one, run)
            if text and not any(failure.run == run for failure in other.failures):
                said = said or text
                _forget(one, run)
                other.runs.pop(run, None)  # what it measured has no other half
    return said


def _held(entry: Entry, run: int) -> str:
    for failure in entry.failures:
        if failure.run == run and _HELD.search(failure.text):
            return failure.text
    return ""


def _forget(entry: Entry, run: int) -> None:
    entry.failures[:] = [one for one in entry.failures if one.run != run]
    entry.reports.pop(run, None)


def base_trouble(entry: Entry) -> str:
    """Say why the base tree did not measure a benchmark; empty where it did."""
    twin = entry.twin
    if twin is None:
        return ""
    return twin.unusable or _raised(twin) or _lost(twin) or _not_measured(entry, twin)


def _raised(twin: Entry) -> str:
    if twin.failures:
        first = twin.failures[0]
        return f"its {first.when} failed in the base tree: {first.text}"
    if twin.skipped_runs:
        return "it was skipped in the base tree"
    return f"{twin.tracer} is active in the base tree" if twin.tracer else ""


def _lost(twin: Entry) -> str:
    if not twin.losses or (twin.runs and not twin.lost_for_good):
        return ""
    ways = ", ".join(loss.how for loss in twin.losses)
    return f"the base tree's worker was lost in it: {ways}"


def _not_measured(entry: Entry, twin: Entry) -> str:
    names = set(entry.benchmarks)
    if twin.reports and names and names.isdisjoint(twin.benchmarks):
        return "the base tree did not measure it"
    return ""
