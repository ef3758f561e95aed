"""What one benchmark is judged by: its gates, its limits, and how they are found."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from pytest_perfgate.gate.budgets import (
    DEFAULT_BUDGET,
    Budget,
    BudgetRule,
    Extra,
    Limit,
    gated_by_default,
    has_witness,
    main_statistic,
)
from pytest_perfgate.gate.grammar import (
    is_for,
    marker_limits,
    marker_rules,
    parse_budget,
    parse_limit,
)
from pytest_perfgate.measured import Metric

__all__ = [
    "BenchmarkPolicy",
    "Budget",
    "BudgetRule",
    "Gate",
    "Limit",
    "main_statistic",
    "parse_budget",
    "parse_limit",
    "resolve_policy",
]

_HEADLINES = ("latency", "step_time", "e2e")
_ANCHOR_TIMES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """One statistic of a metric that takes part in the verdict."""

    statistic: str
    budget: Budget
    explicit: bool = False
    """A budget names it: it is never quietly left out."""
    witness: bool = False
    """The floor: it accuses and never acquits."""

    @property
    def default_tail(self) -> bool:
        """P99 that no budget names: it is gated only where the baseline allows it."""
        return self.statistic == "p99" and not self.explicit


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchmarkPolicy:
    """What one benchmark is judged by."""

    nodeid: str
    rules: tuple[BudgetRule, ...] = ()
    """Those that match the benchmark; the later wins."""
    anchor_rules: tuple[BudgetRule, ...] = ()
    """Likewise, of what is allowed since the anchor session."""
    limits: tuple[Limit, ...] = ()
    metrics: tuple[str, ...] | None = None
    """Where given, nothing but these is gated."""
    gate: bool = True
    defaults: bool = True
    """False: nothing is gated but what a budget names."""

    def gates(self, metric: Metric) -> tuple[Gate, ...]:
        """Give the gated statistics of a metric, the main one first."""
        left_out = self.metrics is not None and metric.name not in self.metrics
        if left_out or not self.gate:
            return ()
        return _gates(metric, self.rules, self.defaults)

    def names(self, metric: str) -> bool:
        """Tell whether somebody asked for this metric, and not for all at once."""
        rules = (*self.rules, *self.anchor_rules)
        return metric in (self.metrics or ()) or metric in {r.metric for r in rules}

    def anchor_gates(self, metric: Metric) -> tuple[Gate, ...]:
        """Give what is held against the anchor session, with its own budgets.

        The main statistic of each gated metric, and what a budget names. Three
        times the usual budget where nothing else is said.
        """
        gates = self.gates(metric)
        found = []
        for gate in gates:
            named = _speaking(self.anchor_rules, metric, gate.statistic)
            asked = gate is gates[0] or gate.explicit or named is not None
            if asked and not gate.witness:
                usual = replace(gate.budget, value=_ANCHOR_TIMES * gate.budget.value)
                found.append(replace(gate, budget=named or usual))
        return tuple(found)

    def limited(self, limit: Limit, metrics: Mapping[str, Metric]) -> Metric | None:
        """Find the metric that a limit is about among those of a benchmark.

        A limit without a metric is about what a user waits for: the first of
        latency, step_time and e2e that is there, or the only metric there is.
        """
        if limit.metric is not None:
            return metrics.get(limit.metric)
        for name in _HEADLINES:
            if name in metrics:
                return metrics[name]
        return next(iter(metrics.values())) if len(metrics) == 1 else None

    @property
    def extra_statistics(self) -> tuple[Extra, ...]:
        """What `summarise` computes besides the usual."""
        named = [(rule.metric, rule.statistic) for rule in self.rules]
        named += [(limit.metric, limit.statistic) for limit in self.limits]
        wanted: dict[Extra, None] = {
            (metric, statistic): None for metric, statistic in named if statistic
        }
        return (*wanted, *self.limits)

    def unknown_metrics(self, metrics: Iterable[str]) -> tuple[str, ...]:
        """Give the metrics that the marker names and the benchmark lacks."""
        rules = (*self.rules, *self.anchor_rules)
        wanted = [rule.metric for rule in rules if rule.marker and rule.metric]
        wanted += self.metrics or ()
        present = set(metrics) if wanted else ()
        return tuple(name for name in dict.fromkeys(wanted) if name not in present)


@lru_cache(maxsize=1024)  # most benchmarks of a suite share their rules and metrics
def _gates(
    metric: Metric,
    rules: tuple[BudgetRule, ...],
    defaults: bool,  # noqa: FBT001 (keywords would make the cache slow)
) -> tuple[Gate, ...]:
    usual = defaults and gated_by_default(metric)
    found = [
        _named(metric, name, rules)
        or (_default(metric, name, rules) if usual else None)
        for name in _statistics(metric, rules)
    ]
    gates = [gate for gate in found if gate]
    if gates and gates[0].statistic == "median" and has_witness(metric):
        budget = gates[0].budget
        gates.append(Gate(statistic="floor", budget=budget, witness=True))
    return tuple(gates)


def _statistics(metric: Metric, rules: Sequence[BudgetRule]) -> tuple[str, ...]:
    main = main_statistic(metric)
    usual = (main, "p99") if main == "median" else (main,)
    named = (rule.statistic for rule in rules if rule.statistic)
    return tuple(dict.fromkeys((*usual, *named)))


def _named(metric: Metric, statistic: str, rules: Sequence[BudgetRule]) -> Gate | None:
    budget = _speaking(rules, metric, statistic)
    if budget is None:
        return None
    return Gate(
        statistic=statistic,
        budget=budget,
        explicit=any(rule.names(metric, statistic) for rule in rules),
        witness=statistic == "floor",
    )


def _default(
    metric: Metric, statistic: str, rules: Sequence[BudgetRule]
) -> Gate | None:
    main = main_statistic(metric)
    if statistic == main:
        return Gate(statistic=statistic, budget=Budget(value=DEFAULT_BUDGET))
    if statistic != "p99" or main != "median":
        return None
    budget = _speaking(rules, metric, main)
    relative = budget is not None and not budget.absolute
    allowed = budget.value if budget and relative else DEFAULT_BUDGET
    return Gate(statistic="p99", budget=Budget(value=2 * allowed))


def _speaking(
    rules: Sequence[BudgetRule], metric: Metric, statistic: str
) -> Budget | None:
    """Find what the latest rule that speaks of a statistic allows."""
    for rule in reversed(rules):
        budget = rule.speaks_of(metric, statistic)
        if budget is not None:
            return budget
    return None


def _latest(limits: Iterable[Limit]) -> tuple[Limit, ...]:
    """Let the later limit on the same thing win."""
    return tuple({(limit.metric, limit.statistic): limit for limit in limits}.values())


def resolve_policy(  # noqa: PLR0913 (one place where every source of a policy meets)
    nodeid: str,
    *,
    specs: Sequence[str] = (),
    limits: Sequence[str] = (),
    marker_budget: Mapping[str, str] | str | None = None,
    marker_limit: Mapping[str, str] | str | None = None,
    anchor_specs: Sequence[str] = (),
    marker_anchor_budget: Mapping[str, str] | str | None = None,
    metrics: tuple[str, ...] | None = None,
    gate: bool = True,
) -> BenchmarkPolicy:
    """Give one benchmark its policy.

    Parameters
    ----------
    nodeid : the benchmark's name, which the globs of the specs are tried on
    specs, limits : as written, the weakest first (ini, then command line)
    marker_budget, marker_limit : the benchmark's own, which win over all
    anchor_specs, marker_anchor_budget : likewise, of what is allowed since the
        anchor session
    metrics : where given, nothing else is gated
    gate : False shows the numbers and judges none

    Raises
    ------
    UsageError
        Any of the texts cannot mean anything, whether or not it matches.
    """
    budgets = [parse_budget(spec) for spec in specs]
    since = [
        parse_budget(spec, name="--perfgate-anchor-budget") for spec in anchor_specs
    ]
    bounds = [parse_limit(spec) for spec in limits]
    rules = [rule for glob, rule in budgets if is_for(glob, nodeid)]
    creep = [rule for glob, rule in since if is_for(glob, nodeid)]
    matching = [limit for glob, limit in bounds if is_for(glob, nodeid)]
    return BenchmarkPolicy(
        nodeid=nodeid,
        rules=(*rules, *marker_rules(marker_budget)),
        anchor_rules=(*creep, *marker_rules(marker_anchor_budget, anchor=True)),
        limits=_latest([*matching, *marker_limits(marker_limit)]),
        metrics=metrics,
        gate=gate,
    )
