"""What of a run is lost with its worker: nothing is dropped silently."""

from collections.abc import Sequence

from pytest_perfgate.campaign.ledger import NOT_COLLECTED, Ledger, Loss
from pytest_perfgate.campaign.worker_process import WorkerEnd
from pytest_perfgate.errors import MeasurementError


def book_loss(ledger: Ledger, nodeid: str, end: WorkerEnd, *, run: int) -> None:
    """Book a benchmark that its worker did not survive, or did not collect."""
    absent = nodeid in ledger.absent
    loss = Loss(
        run=run,
        how=NOT_COLLECTED if absent else end.how,
        timed_out=end.timed_out and not absent,
        tail=end.tail,
    )
    ledger.lose(nodeid, loss)


def book_left(ledger: Ledger, left: Sequence[str], end: WorkerEnd, *, run: int) -> None:
    """Book what a worker never came to.

    Raises
    ------
    MeasurementError
        If no worker so far came as far as any benchmark: the same would happen
        again, so its own words are shown.
    """
    if not any(entry.reports for entry in ledger.entries.values()):
        raise MeasurementError(_why_none_began(ledger, end))
    for nodeid in left:
        book_loss(ledger, nodeid, end, run=run)


def book_half(
    ledger: Ledger, wanted: Sequence[str], end: WorkerEnd, *, begun: set[str], run: int
) -> None:
    """Book what one half of a pair lost; what it never came to has another pair."""
    if end.out_of_time:
        return
    if end.open_item is not None:
        book_loss(ledger, end.open_item, end, run=run)
    elif not begun and ledger.is_base:
        disqualify(ledger, _why_none_began(ledger, end))
    elif not begun:
        book_left(ledger, wanted, end, run=run)
        return
    for nodeid in set(wanted) & ledger.absent - begun:
        book_loss(ledger, nodeid, end, run=run)


def disqualify(base: Ledger, why: str) -> None:
    """Let nothing count that was measured of the base tree."""
    for entry in base.entries.values():
        entry.unusable = entry.unusable or why


def _why_none_began(ledger: Ledger, end: WorkerEnd) -> str:
    errors = "\n".join(ledger.collect_errors.values())
    return (
        f"no benchmark began in a worker process ({end.how}); it said:\n"
        f"{errors or end.tail}"
    )
