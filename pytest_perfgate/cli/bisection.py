"""Which commit to measure next, and which one is left: pure, git is not asked.

The history is a graph: a commit has several parents where branches were merged.
As with `git bisect`, what is slow at a commit was brought by it or by one of its
ancestors, and what is not slow at a commit was brought by none of its ancestors.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum


class State(StrEnum):
    """What a commit turned out to be."""

    GOOD = "good"
    BAD = "bad"
    SKIPPED = "skipped"
    """It could not be told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """A commit between good and bad."""

    sha: str
    parents: tuple[str, ...]
    author: str = ""
    date: str = ""
    """ISO 8601."""
    subject: str = ""

    @property
    def short(self) -> str:
        return self.sha[:12]


class Bisection:
    """What is known of a history, and what that leaves."""

    def __init__(self, commits: Sequence[Commit]) -> None:
        """Begin with the newest commit known to be bad.

        Parameters
        ----------
        commits : all that bad has and good has not, children before parents; the
            first is bad itself
        """
        self._commits = tuple(commits)
        self._at = {commit.sha: at for at, commit in enumerate(self._commits)}
        self._reach = self._reaches()
        """By commit: itself and its ancestors, a bit for each."""
        self._left = self._reach[0]
        self._told: dict[int, State] = {0: State.BAD}

    def _reaches(self) -> list[int]:
        reach = [0] * len(self._commits)
        for at in reversed(range(len(self._commits))):
            reach[at] = 1 << at
            for parent in self._commits[at].parents:
                if parent in self._at:
                    reach[at] |= reach[self._at[parent]]
        return reach

    def tell(self, commit: Commit, state: State) -> None:
        """Take an answer in."""
        at = self._at[commit.sha]
        self._told[at] = state
        if state is State.BAD:
            self._left &= self._reach[at]
        elif state is State.GOOD:
            self._left &= ~self._reach[at]

    @property
    def suspects(self) -> tuple[Commit, ...]:
        """Return what may have brought it, newest first; one if it is found."""
        return tuple(
            one for at, one in enumerate(self._commits) if self._left >> at & 1
        )

    @property
    def steps(self) -> int:
        """Say how many more are measured at most, if none is skipped."""
        return (self._left.bit_count() - 1).bit_length()

    def next(self) -> Commit | None:
        """Return the commit whose answer halves what is left; None at the end."""
        size = self._left.bit_count()
        best, most = None, 0
        for at, commit in enumerate(self._commits):
            if not self._left >> at & 1 or at in self._told:
                continue
            older = (self._reach[at] & self._left).bit_count()
            gain = min(older, size - older)
            if gain > most:
                best, most = commit, gain
        return best


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """What one statistic of one benchmark came to, against good."""

    benchmark: str
    statistic: str
    ratio: float
    """Above 1 is worse."""
    low: float
    high: float
    verdict: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What measuring a commit brought."""

    state: State
    effects: tuple[Effect, ...] = ()
    text: str = ""
    """Why, where it could not be told."""

    @property
    def worst(self) -> Effect | None:
        return max(self.effects, key=lambda effect: effect.ratio, default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A commit that was measured, and its answer."""

    commit: Commit
    answer: Answer


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The end of a bisection."""

    suspects: tuple[Commit, ...]
    """One, unless commits between could not be told."""
    steps: tuple[Step, ...]

    def answer_of(self, sha: str) -> Answer | None:
        known: Mapping[str, Answer] = {s.commit.sha: s.answer for s in self.steps}
        return known.get(sha)


def search(
    commits: Sequence[Commit],
    first: Answer,
    measure: Callable[[Commit], Answer],
    *,
    tell: Callable[[Step, int], None],
) -> Found:
    """Measure one commit after another until nothing more can be learned.

    Parameters
    ----------
    commits : as for `Bisection`
    first : what measuring bad brought
    tell : is called with each step, and how many more there may be
    """
    bisection = Bisection(commits)
    steps = [Step(commit=commits[0], answer=first)]
    while (commit := bisection.next()) is not None:
        answer = measure(commit)
        bisection.tell(commit, answer.state)
        steps.append(Step(commit=commit, answer=answer))
        tell(steps[-1], bisection.steps)
    return Found(suspects=bisection.suspects, steps=tuple(steps))
