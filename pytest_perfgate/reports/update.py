"""What `--perfgate-update` did: for every number old → new, and what became of it."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import groupby

from pytest_perfgate.reports.escape import one_line, visible
from pytest_perfgate.reports.layout import (
    Line,
    Segment,
    clip,
    display_width,
    line,
    pad,
    shorten_id,
    wrap,
)
from pytest_perfgate.units import format_change, format_fraction, format_value

_NARROWEST = 50
_TOO_COARSE = 2


class Action(StrEnum):
    """What was done to a baseline."""

    RECORDED = "recorded"
    ADDED_SESSION = "added a session"
    REPLACED = "replaced"
    REFUSED = "refused"


_MARKS: dict[Action, tuple[str, tuple[str, ...]]] = {
    Action.REFUSED: ("✗", ("red", "bold")),
    Action.REPLACED: ("~", ("yellow", "bold")),
    Action.RECORDED: ("+", ("green",)),
    Action.ADDED_SESSION: ("=", ("green",)),
}
"""The order of the list: what needs a look comes first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Update:
    """One statistic of one benchmark before and after an update."""

    benchmark: str
    metric: str = ""
    """Empty where nothing was measured, with `old` and `new` absent."""
    statistic: str = ""
    old: float | None = None
    new: float | None = None
    unit: str = ""
    action: Action
    detail: str = ""
    """Why it was refused or replaced."""
    sees: float | None = None
    """The smallest slowdown that the new baseline lets the gate see, a fraction."""
    budget: float | None = None
    runs: int = 0
    """How many candidate runs there may be for that."""

    @property
    def blind(self) -> bool:
        """Whether a change of twice the budget can go unseen."""
        if self.sees is None or self.budget is None:
            return False
        return self.sees > _TOO_COARSE * self.budget


def render(updates: Iterable[Update], *, width: int) -> tuple[Line, ...]:
    """Render one block for each benchmark, and a count of what was done.

    Parameters
    ----------
    updates : in any order; those of one benchmark share action and detail
    width : columns; fewer than 50 are taken as 50
    """
    ordered = sorted(updates, key=_rank)
    room = max(width, _NARROWEST)
    if not ordered:
        return (line("no baseline was changed", "yellow"),)
    blocks = [
        tuple(group)
        for _, group in groupby(ordered, key=lambda one: (one.action, one.benchmark))
    ]
    lines = [entry for block in blocks for entry in _block(block, room)]
    return (
        *lines,
        *(line(text, "yellow") for text in wrap(_warning(ordered), room) if text),
        *(line(text, "bold") for text in wrap(_summary(blocks), room)),
    )


def _rank(update: Update) -> tuple[int, str, str, str]:
    order = tuple(_MARKS).index(update.action)
    return order, update.benchmark, update.metric, update.statistic


def _block(updates: tuple[Update, ...], width: int) -> Iterator[Line]:
    first = updates[0]
    glyph, styles = _MARKS[first.action]
    room = width - 4 - display_width(first.action)
    name = shorten_id(visible(first.benchmark), room)
    yield Line(
        segments=(
            Segment(text=f"{glyph} ", styles=styles),
            Segment(text=f"{pad(name, room)}  "),
            Segment(text=first.action, styles=styles),
        )
    )
    for text in wrap(one_line(first.detail), width - 4) if first.detail else ():
        yield line(f"    {text}", "light")
    for update in updates:
        if update.metric:
            yield line(clip(f"    {_figures(update)}", width))
        if update.sees is not None and update.budget is not None:
            style = "yellow" if update.blind else "light"
            yield line(clip(f"    {_sight(update.sees, update.budget)}", width), style)


def _figures(update: Update) -> str:
    name = one_line(f"{update.metric}·{update.statistic}")
    if update.action is Action.REFUSED:
        return f"{pad(name, 22)} {_kept(update)}"
    old = "nothing" if update.old is None else format_value(update.old, update.unit)
    new = "nothing" if update.new is None else format_value(update.new, update.unit)
    return f"{pad(name, 22)} {old} → {new}{_change(update)}"


def _sight(sees: float, budget: float) -> str:
    text = f"sees slowdowns from {format_fraction(sees)} on"
    return f"{pad('', 22)} {text}, budget {format_fraction(budget)}"


def _warning(updates: Sequence[Update]) -> str:
    """Say which baselines are too noisy for their budgets, and the ways out."""
    blind = [update for update in updates if update.blind]
    if not blind:
        return ""
    runs = 2 * max(update.runs for update in blind)
    return (
        f"{len(blind):,} of {len(updates):,} would miss a slowdown of twice the budget:"
        f" allow more runs (`--perfgate-runs 3:{runs}`), compare base and change in"
        " pairs on one machine, or set a budget that this noise allows"
        " (`--perfgate-budget`)"
    )


def _kept(update: Update) -> str:
    if update.old is None:
        return "nothing is stored"
    return f"{format_value(update.old, update.unit)} stays"


def _change(update: Update) -> str:
    if update.old is None or update.new is None:
        return ""
    if update.old <= 0 or update.new <= 0:
        return f"  {update.new - update.old:+.6g}"
    return f"  {format_change(update.new / update.old)}"


def _summary(blocks: list[tuple[Update, ...]]) -> str:
    done = Counter(block[0].action for block in blocks)
    return "baselines: " + ", ".join(
        f"{done[action]:,} {action}" for action in _MARKS if done[action]
    )
