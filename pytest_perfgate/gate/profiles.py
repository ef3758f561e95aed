"""Two operator profiles side by side: what came, went, and grew."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pytest_perfgate.measured import OperatorUse
from pytest_perfgate.model import Clue, ClueKind
from pytest_perfgate.units import format_duration

GREW = {ClueKind.KERNEL: 1.05, ClueKind.OPERATOR: 1.25}
"""A time that grew by less is the profiler's own noise: few calls were profiled."""
SHARE_AT_LEAST = 0.10
"""A time that grew is named if it is so much of the slowdown."""
MOST = 8
_ALL = 0.99
"""A profile that lists so much of its time lists every name that matters."""
_UNUSED = OperatorUse(count=0, self_s=0.0)

Uses = Mapping[str, OperatorUse]


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """The operators, or the kernels, of one profile."""

    uses: Uses
    total_s: float

    @property
    def whole(self) -> bool:
        """Whether a name that is not listed was not there, rather than too short."""
        return sum(use.self_s for use in self.uses.values()) >= _ALL * self.total_s


@dataclass(frozen=True, slots=True, kw_only=True)
class _Change:
    name: str
    old: OperatorUse
    new: OperatorUse

    @property
    def grew_s(self) -> float:
        return self.new.self_s - self.old.self_s

    @property
    def more(self) -> int:
        return self.new.count - self.old.count

    @property
    def weight_s(self) -> float:
        """What the calls that came or went take, by what a call takes on both sides.

        The difference of the times would have the noise of two single profiles in
        it, which for short operators is all there is.
        """
        calls = self.old.count + self.new.count
        return abs(self.more) * (self.old.self_s + self.new.self_s) / calls


def profile_clues(
    kind: ClueKind, old: Listing, new: Listing, *, slowdown_s: float | None, told: bool
) -> tuple[Clue, ...]:
    """Name what changed most: first by how often it is called, then by its time.

    Parameters
    ----------
    kind : `operator` or `kernel`
    slowdown_s : of one call; None where it did not become slower, or where that is
        not known: then only what is called more or less often is named
    told : whether a share of the slowdown can be told from these times
    """
    changes = list(_changes(old, new))
    often = sorted((one for one in changes if one.more), key=_by_calls)
    longer = sorted(
        (one for one in changes if not one.more and _grew(one, kind, slowdown_s)),
        key=lambda one: (-one.grew_s, one.name),
    )
    found = [*often, *longer]
    clues = [_clue(kind, one, slowdown_s if told else None) for one in found[:MOST]]
    if len(found) > MOST:
        clues.append(Clue(kind=kind, text=f"… and {len(found) - MOST} more {kind}s"))
    return tuple(clues)


def _changes(old: Listing, new: Listing) -> Iterator[_Change]:
    """Pair what both list; a name that one could have left out says nothing."""
    for name in sorted(old.uses.keys() | new.uses.keys()):
        before, now = old.uses.get(name), new.uses.get(name)
        if (before is None and not old.whole) or (now is None and not new.whole):
            continue
        yield _Change(name=name, old=before or _UNUSED, new=now or _UNUSED)


def _by_calls(one: _Change) -> tuple[bool, float, int, str]:
    """Order what is called more often first, then by time, then by calls."""
    return one.more < 0, -one.weight_s, -abs(one.more), one.name


def _grew(one: _Change, kind: ClueKind, slowdown_s: float | None) -> bool:
    if slowdown_s is None:
        return False
    beyond_noise = one.new.self_s > GREW[kind] * one.old.self_s
    return beyond_noise and one.grew_s >= SHARE_AT_LEAST * slowdown_s


def _clue(kind: ClueKind, one: _Change, slowdown_s: float | None) -> Clue:
    calls = f"{one.old.count:,} → {one.new.count:,} calls" if one.more else ""
    times = " → ".join(
        format_duration(use.self_s) if use.count else "–" for use in (one.old, one.new)
    )
    share = one.grew_s / slowdown_s if slowdown_s and one.grew_s > 0 else None
    told = ", ".join(part for part in (calls, times) if part)
    return Clue(
        kind=kind,
        text=f"{one.name}: {told}",
        old=_side(one.old),
        new=_side(one.new),
        share=share,
    )


def _side(use: OperatorUse) -> str:
    return f"{use.count:,} in {format_duration(use.self_s)}" if use.count else "–"
