"""One statistic against its budget: what the data say at this look.

A reading is open, settled or flagged. What it means for the benchmark, and
when to stop, is the judge's business.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum

from pytest_perfgate.gate.bounds import (
    Bar,
    bar_of,
    is_far_beyond,
    is_faster,
    is_over,
    is_suspect,
    is_within,
)
from pytest_perfgate.gate.budgets import (
    TAIL_IN_RUN,
    TAIL_ON_SIDE,
    is_tail,
    is_timed,
    tail_samples,
)
from pytest_perfgate.gate.clocks import (
    UNKNOWN,
    Clocks,
    excuse,
    flattery,
    is_clocked,
    is_faster_in_cycles,
)
from pytest_perfgate.gate.evidence import (
    Numbers,
    Sides,
    collect,
    comparison,
    estimate,
    scale_of,
)
from pytest_perfgate.gate.looks import Look
from pytest_perfgate.gate.policy import Gate
from pytest_perfgate.gate.trends import why_not_steady
from pytest_perfgate.gate.wording import runs_text, tail_text
from pytest_perfgate.measured import Metric
from pytest_perfgate.model import Comparison, Judgement, Outcome, Reason, Verdict
from pytest_perfgate.stats.interval import Estimate, half_width, runs_needed
from pytest_perfgate.units import format_duration, format_value

OF_ROUNDS = "a quantile of rounds, each the mean of its calls, not of calls"
_SMALL = {"s": "ms", "B": "MiB"}


class State(Enum):
    """Where a statistic stands at a look."""

    OPEN = "open"
    """More runs may tell."""
    SETTLED = "settled"
    """It has its verdict, or more runs cannot bring one."""
    FLAGGED = "flagged"
    """Beyond the budget; a confirmation is to follow."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """A judgement in the making."""

    judgement: Judgement
    """As it stands if measuring stops here."""
    state: State
    gate: Gate | None = None
    """None for an absolute limit."""
    estimate: Estimate | None = None
    bar: Bar | None = None

    @property
    def witness(self) -> bool:
        return self.gate is not None and self.gate.witness

    @property
    def suspect(self) -> bool:
        return self.judgement.reason is Reason.SUSPECT

    @property
    def tail(self) -> bool:
        return is_tail(self.judgement.statistic)

    @property
    def over(self) -> bool:
        """Tell whether the estimate lies beyond the budget."""
        found, bar = self.estimate, self.bar
        return found is not None and bar is not None and found.delta > bar.theta

    def with_verdict(self, verdict: Verdict, state: State) -> "Reading":
        judgement = replace(self.judgement, verdict=verdict)
        return replace(self, judgement=judgement, state=state)


_FLAGGED = Verdict(outcome=Outcome.REGRESSED, reason=Reason.FLAGGED)
_UNCHANGED = Verdict(outcome=Outcome.UNCHANGED, reason=Reason.WITHIN_BUDGET)


def inconclusive(reason: Reason, detail: str = "") -> Verdict:
    return Verdict(outcome=Outcome.INCONCLUSIVE, reason=reason, detail=detail)


def plain_reading(
    metric: Metric,
    gate: Gate,
    verdict: Verdict,
    *,
    comparison: Comparison | None = None,
) -> Reading:
    """Make a reading that rests on no estimate: an error, a refusal, a count."""
    judgement = _judgement(metric, gate, verdict, comparison)
    return Reading(judgement=judgement, state=State.SETTLED, gate=gate)


def _judgement(
    metric: Metric,
    gate: Gate,
    verdict: Verdict,
    comparison: Comparison | None,
    remarks: tuple[str, ...] = (),
) -> Judgement:
    return Judgement(
        metric=metric,
        statistic=gate.statistic,
        verdict=verdict,
        budget=None if gate.budget.absolute else gate.budget.value,
        comparison=comparison,
        bound=gate.budget.text(metric.unit),
        remarks=remarks,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Case:
    numbers: Numbers
    gate: Gate
    sides: Sides
    look: Look


_Stand = tuple[Verdict, State]
"""The verdict if measuring stops here, and whether more runs may change it."""


def read(metric: Metric, gate: Gate, sides: Sides, look: Look) -> Reading:
    """Judge one noisy statistic at one look.

    Every candidate run must have the metric; a tail may be missing where a run
    has too few samples for it.
    """
    numbers = collect(sides, metric, gate.statistic)
    refusal = _refusal(numbers, gate, sides)
    if refusal is not None:
        return plain_reading(metric, gate, refusal)
    case = _Case(numbers=numbers, gate=gate, sides=sides, look=look)
    stand = _too_few_runs(numbers, look)
    if min(len(numbers.base_values), len(numbers.values)) < 2:
        blank = plain_reading(metric, gate, inconclusive(Reason.TOO_FEW_RUNS))
        return blank.with_verdict(*stand) if stand else blank
    scale, bar = scale_of(metric, gate.budget), bar_of(gate.budget)
    found = estimate(numbers, scale, look)
    verdict, state = stand or _weigh(case, found, bar)
    shown = comparison(scale, found, bar=bar, look=look)
    remarks = _remarks(numbers, gate.statistic, found)
    return Reading(
        judgement=_judgement(metric, gate, verdict, shown, remarks),
        state=state,
        gate=gate,
        estimate=found,
        bar=bar,
    )


def _refusal(numbers: Numbers, gate: Gate, sides: Sides) -> Verdict | None:
    """Say why there is nothing to compare at all."""
    metric, statistic = numbers.metric, gate.statistic
    if is_tail(statistic):
        few = _too_few_in_a_run(metric, statistic, sides)
        if few is not None:
            return few
        if not numbers.base_values and not numbers.candidate:
            detail = f"{statistic.upper()} needs single calls, not means of inner loops"
            return inconclusive(Reason.TOO_FEW_TAIL_SAMPLES, detail)
    if not numbers.baseline:
        detail = f"the baseline has no {statistic} of {metric.name}"
        return Verdict(
            outcome=Outcome.NO_BASELINE, reason=Reason.NOTHING_STORED, detail=detail
        )
    if len(numbers.candidate) < len(sides.candidate):
        missing = len(sides.candidate) - len(numbers.candidate)
        detail = (
            f"{metric.name} {statistic} in {missing} of {len(sides.candidate)} runs"
        )
        return Verdict(
            outcome=Outcome.ERROR, reason=Reason.METRIC_ABSENT, detail=detail
        )
    if gate.budget.absolute or min(*numbers.base_values, *numbers.values) > 0:
        return None
    return _not_a_ratio(numbers)


def _not_a_ratio(numbers: Numbers) -> Verdict:
    """Name the first value that is not above 0."""
    side, values = "baseline", numbers.base_values
    if min(values) > 0:
        side, values = "candidate", numbers.values
    index = [value <= 0 for value in values].index(True)
    unit = numbers.metric.unit
    shown = format_value(values[index], unit)
    return Verdict(
        outcome=Outcome.ERROR,
        reason=Reason.NOT_A_NUMBER,
        detail=f"{side} run {index} is {shown}, and a ratio needs more than 0;"
        f" give it an absolute budget like +1{_SMALL.get(unit, '')}",
    )


def _too_few_in_a_run(metric: Metric, statistic: str, sides: Sides) -> Verdict | None:
    counts = sides.samples(metric.name)
    fewest = min(min(side) for side in counts)
    if tail_samples(statistic, fewest) >= TAIL_IN_RUN:
        return None
    return _few_tail(statistic, counts)


def _few_tail(statistic: str, counts: Sequence[list[int]]) -> Verdict:
    fewest = min(counts, key=sum)
    return inconclusive(Reason.TOO_FEW_TAIL_SAMPLES, tail_text(statistic, fewest))


def _too_few_runs(numbers: Numbers, look: Look) -> _Stand | None:
    base, now = len(numbers.base_values), len(numbers.values)
    if min(base, now) >= look.fewest_runs:
        return None
    kind = "pairs" if look.paired else "runs a side"
    detail = f"baseline {base}, candidate {now}; needs {look.fewest_runs} {kind}"
    hopeless = base < look.fewest_runs and not look.paired
    state = State.SETTLED if hopeless else State.OPEN
    return inconclusive(Reason.TOO_FEW_RUNS, detail), state


def _remarks(numbers: Numbers, statistic: str, found: Estimate) -> tuple[str, ...]:
    remarks = ("variability changed",) if found.variability_changed else ()
    if is_tail(statistic) and numbers.metric.of_rounds:
        remarks = (*remarks, OF_ROUNDS)
    if numbers.sessions_left_out:
        lacking = f"{numbers.sessions_left_out} stored sessions lack {statistic}"
        remarks = (*remarks, lacking)
    return remarks


def _weigh(case: _Case, found: Estimate, bar: Bar) -> _Stand:
    """Hold the estimate against the budget, unless the data are unfit for it."""
    look = case.look
    coarse = _too_coarse(case)
    if coarse is not None:
        return coarse, State.SETTLED
    hindered = _hindrance(case, found, bar)
    if hindered is not None:
        return hindered, State.OPEN
    if is_over(found, bar, look):
        return _over(case, found, bar)
    if is_within(found, bar, look):
        return _within(case, found, bar)
    return doubt(found, bar, look), State.OPEN


def _clocks(case: _Case, *, by_host: bool) -> Clocks:
    """Return the clocks of both sides, where they have a part in the statistic.

    Parameters
    ----------
    by_host : the host decides, and a GPU that waits is as fast at any clock
    """
    clocked = is_clocked(case.numbers.metric) and not case.gate.budget.absolute
    if not clocked:
        return UNKNOWN
    clocks = case.sides.clocks
    return clocks.of_a_waiting_gpu if by_host else clocks


def _over(case: _Case, found: Estimate, bar: Bar) -> _Stand:
    # cycles can be compared only where both sides had to wait for the GPU
    clocks = _clocks(case, by_host=case.sides.bound.either)
    excused = excuse(clocks, found, bar, case.look)
    if excused is not None:
        return inconclusive(Reason.DISTURBED, excused), State.OPEN
    if case.gate.witness and not case.look.paired:
        # a neighbour alone moves a floor: against stored runs it only accuses
        return _suspect(case.numbers.metric, found), State.OPEN
    return _FLAGGED, State.FLAGGED


def _within(case: _Case, found: Estimate, bar: Bar) -> _Stand:
    # what is asked is how long the candidate takes at the baseline's clock
    clocks, look = _clocks(case, by_host=case.sides.bound.now_by_host), case.look
    flattered = flattery(clocks, found, bar, look)
    if flattered is not None:
        return inconclusive(Reason.DISTURBED, flattered), State.OPEN
    if not is_faster(found, look) or not is_faster_in_cycles(clocks, found, look):
        return _UNCHANGED, State.SETTLED
    beyond = found.upper(look.green) < -bar.theta
    reason = Reason.FASTER_BEYOND_BUDGET if beyond else Reason.FASTER
    return Verdict(outcome=Outcome.IMPROVED, reason=reason), State.SETTLED


def doubt(found: Estimate, bar: Bar, look: Look) -> Verdict:
    """Say why the data cannot tell, if there are to be no more."""
    if is_suspect(found, bar, look):
        return inconclusive(Reason.SUSPECT, f"p = {found.p_worse:.1g}")
    alpha = look.green
    if half_width(found, alpha=alpha, runs=found.candidate_runs) < bar.theta:
        # identical code would have passed: this is neither it nor clearly over
        return inconclusive(Reason.AT_BUDGET)
    needed = runs_needed(found, theta=bar.theta, alpha=alpha)
    return inconclusive(Reason.TOO_NOISY, runs_text(needed))


def _suspect(metric: Metric, found: Estimate) -> Verdict:
    detail = f"the floor of {metric.name} alone, p = {found.p_worse:.1g}"
    return inconclusive(Reason.SUSPECT, detail)


def _too_coarse(case: _Case) -> Verdict | None:
    """Refuse a clock whose tick is a larger part of the time than the budget."""
    numbers, budget = case.numbers, case.gate.budget
    if numbers.metric.unit != "s":
        return None
    tick = case.sides.health.clock_tick_s
    if tick == 0:
        return None
    least = 1.0 if budget.absolute else min(*numbers.base_values, *numbers.values)
    if tick <= budget.value * least:
        return None
    detail = f"the clock ticks every {format_duration(tick)}; use an inner loop"
    return inconclusive(Reason.RESOLUTION, detail)


def _hindrance(case: _Case, found: Estimate, bar: Bar) -> Verdict | None:
    """Say what keeps a statistic from more than `inconclusive`."""
    metric, gate, sides = case.numbers.metric, case.gate, case.sides
    if is_tail(gate.statistic):
        counts = sides.samples(metric.name)
        total = min(sum(side) for side in counts)
        if tail_samples(gate.statistic, total) < TAIL_ON_SIDE:
            return _few_tail(gate.statistic, counts)
    if not is_timed(metric):
        return None
    if sides.health.disturbed and not gate.witness:
        return inconclusive(Reason.DISTURBED)
    moved = why_not_steady(sides, metric, gate)
    if moved and not is_far_beyond(found, bar, case.look):
        return inconclusive(Reason.NOT_STEADY, moved)
    return None
