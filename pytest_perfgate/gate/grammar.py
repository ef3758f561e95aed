"""How budgets and limits are written, and what is wrong with what was written."""

import difflib
import re
from collections.abc import Mapping
from functools import lru_cache

from pytest_perfgate.errors import UsageError
from pytest_perfgate.gate.budgets import (
    STATISTICS,
    Budget,
    BudgetRule,
    Limit,
    fits_unit,
    is_share_of_time,
    is_statistic,
)
from pytest_perfgate.measured import METRICS, Metric
from pytest_perfgate.model import Better
from pytest_perfgate.units import nearest_unit, parse_fraction, parse_quantity


def is_for(glob: str | None, nodeid: str) -> bool:
    """Match `*` and `?` only: brackets in node ids are just brackets."""
    return glob is None or _pattern(glob).fullmatch(nodeid) is not None


@lru_cache(maxsize=256)
def _pattern(glob: str) -> re.Pattern[str]:
    wild = {"*": ".*", "?": "."}
    parts = re.split(r"([*?])", glob)
    regex = "".join(wild.get(part, re.escape(part)) for part in parts)
    return re.compile(regex, re.DOTALL)


_TARGET = re.compile(r"(?:(?:stage|phase):)?[^:]+")
_WITH_GLOB = re.compile(r"(?P<glob>.*?[^:]):(?P<target>(?:(?:stage|phase):)?[^:]*)")


def _split_glob(text: str) -> tuple[str | None, str]:
    """Split `GLOB:TARGET` at the one colon that is neither `::` nor `stage:`."""
    if not text or _TARGET.fullmatch(text):
        return None, text
    found = _WITH_GLOB.fullmatch(text)
    return (found["glob"], found["target"]) if found else (None, text)


def _split_target(target: str, *, where: str) -> tuple[str | None, str | None]:
    """Split `METRIC.STATISTIC`, either of which may be left out."""
    if not target:
        return None, None
    if is_statistic(target):
        return None, target
    metric, dot, statistic = target.rpartition(".")
    if not dot:
        _refuse_typo(target, where=where)
        return target, None
    if not metric or not is_statistic(statistic):
        raise UsageError(
            f"{where} names the statistic {statistic!r}, which is none of"
            f" {', '.join(STATISTICS)} or a quantile like p99"
        )
    return metric, statistic


def _refuse_typo(name: str, *, where: str) -> None:
    """Refuse what is no known metric but nearly a statistic."""
    near = difflib.get_close_matches(name, STATISTICS, n=1, cutoff=0.75)
    if name in METRICS or (not near and not re.fullmatch(r"p\d.*", name)):
        return
    hint = near[0] if near else "p99"
    raise UsageError(f"{where} names {name!r}; write {hint}, or METRIC.{hint}")


def _budget(text: str | float, target: str, *, name: str, where: str) -> Budget:
    written = str(text).strip()
    place = f"{name} {target}".rstrip()
    if written.startswith("+"):
        return _absolute(written, target, place=place, where=where)
    fraction = parse_fraction(text, name=place)
    if fraction == 0:
        raise UsageError(
            f"{where} allows nothing, and noise alone would exceed it;"
            " write a percentage, or +0 for a count"
        )
    known = _known(target)
    if known is not None and is_share_of_time(known):
        raise UsageError(
            f"{where}: {known.name} is a share itself and may be 0, of which nothing is"
            f" a multiple; write +{fraction:.3g}, which is what may be added to it"
        )
    return Budget(value=fraction)


def _absolute(written: str, target: str, *, place: str, where: str) -> Budget:
    value, unit = parse_quantity(written[1:], name=place)
    if value < 0:
        raise UsageError(f"{where} is negative; write +0 or more")
    known = _known(target)
    if value == 0 and (known is None or known.unit != "B") and _is_noisy(target):
        raise UsageError(
            f"{where} allows nothing, and noise alone would exceed it;"
            " +0 is for counts, write a percentage here"
        )
    if value > 0 and known is not None and not fits_unit(unit, known.unit):
        example = _EXAMPLES.get(known.unit, "2")
        raise UsageError(
            f"{where}: {known.name} is measured in {known.unit}; write +{example}"
        )
    return Budget(value=value, absolute=True, unit=unit)


_EXAMPLES = {"s": "150ms", "B": "2GiB", "1/s": "500/s", "1": "5%"}


def _known(target: str) -> Metric | None:
    """Find the metric that a target names, with or without a statistic."""
    if target.startswith(("stage:", "phase:")):
        return METRICS["latency"]
    return METRICS.get(target) or METRICS.get(target.rpartition(".")[0])


def _is_noisy(target: str) -> bool:
    """Tell whether a target is known to be measured with noise."""
    return not target or is_statistic(target) or _known(target) is not None


@lru_cache(maxsize=256)  # what a session is judged by is asked for each benchmark
def parse_budget(
    spec: str, *, name: str = "--perfgate-budget"
) -> tuple[str | None, BudgetRule]:
    """Read `[GLOB:][METRIC][.STATISTIC]=VALUE`, or a value alone.

    Returns
    -------
    tuple
        The glob on node ids, None for all of them, and the rule.

    Raises
    ------
    UsageError
        The value is no budget, is 0 where that cannot hold, or a statistic
        does not exist.
    """
    left, equals, value = spec.rpartition("=")
    if equals:
        glob, target = _split_glob(left.strip())
        if not target:
            raise UsageError(f"{name}={spec!r} names nothing to budget; write p99=10%")
    else:
        head, _, value = spec.rpartition(":")
        glob, target = head or None, ""
    return glob, _rule(target, value, name=name, source=spec)


def _rule(target: str, value: str | float, *, name: str, source: str) -> BudgetRule:
    where = f"{name}={source!r}"
    metric, statistic = _split_target(target, where=where)
    if statistic == "floor":
        raise UsageError(
            f"{where}: the floor has no budget of its own, it is a witness"
            " judged with the median's; write median"
        )
    return BudgetRule(
        budget=_budget(value, target, name=name, where=where),
        metric=metric,
        statistic=statistic,
        source=source,
        marker=name in {_MARKER_BUDGET, _MARKER_ANCHOR},
    )


_LIMIT = re.compile(r"(?P<left>.*?)(?P<operator><=|>=)(?P<value>[^<>=]*)")


@lru_cache(maxsize=256)
def parse_limit(
    spec: str, *, name: str = "--perfgate-limit"
) -> tuple[str | None, Limit]:
    """Read `[GLOB:][METRIC.]STATISTIC<=VALUE` (or `>=`, or METRIC alone).

    Raises
    ------
    UsageError
        There is no `<=` or `>=`, the value has no unit where a time or a size
        needs one, or the bound is on the side where bigger is better.
    """
    where = f"{name}={spec!r}"
    found = _LIMIT.fullmatch(spec.strip())
    if found is None:
        raise UsageError(
            f"{where} is not a limit; write p99<=150ms or throughput>=500/s"
        )
    glob, target = _split_glob(found["left"].strip())
    if not target:
        raise UsageError(f"{where} names nothing before {found['operator']}")
    metric, statistic = _split_target(target, where=where)
    value, unit = parse_quantity(found["value"], name=f"{name} {target}")
    limit = Limit(
        metric=metric,
        statistic=statistic,
        operator=found["operator"],
        value=value,
        unit=unit,
        source=spec,
    )
    _check_limit(limit, where=where)
    return glob, limit


def _check_limit(limit: Limit, *, where: str) -> None:
    if limit.metric is None and not limit.unit:
        raise UsageError(f"{where} has no unit; write 150ms, or name the metric")
    meant = nearest_unit(limit.unit) if limit.metric is None else None
    if meant is not None:
        raise UsageError(
            f"{where}: {limit.unit!r} is no unit, is {meant!r} meant? For a unit of your"
            f" own name the metric: METRIC.{limit.source}"
        )
    # a time without a metric is about a latency
    known = METRICS["latency"] if limit.metric is None else _known(limit.metric)
    if known is None or (limit.metric is None and limit.unit != "s"):
        return
    if not fits_unit(limit.unit, known.unit):
        raise UsageError(
            f"{where}: {known.name} is measured in {known.unit};"
            f" write {_EXAMPLES[known.unit]}"
        )
    way = "<=" if known.better is Better.LOWER else ">="
    if limit.operator != way:
        raise UsageError(
            f"{where}: of {known.name} {known.better} is better; write {way}"
        )


_MARKER_BUDGET = "@pytest.mark.perfgate budget"
_MARKER_ANCHOR = "@pytest.mark.perfgate anchor_budget"
_MARKER_LIMIT = "@pytest.mark.perfgate limit"


def marker_rules(
    budget: Mapping[str, str] | str | None, *, anchor: bool = False
) -> list[BudgetRule]:
    """Read the budgets of `@pytest.mark.perfgate(budget=…)`, or `anchor_budget=…`."""
    name = _MARKER_ANCHOR if anchor else _MARKER_BUDGET
    if budget is None:
        return []
    if not isinstance(budget, Mapping):
        target, _, value = str(budget).rpartition("=")
        return [_rule(target, value, name=name, source=str(budget))]
    return [
        _rule(target, value, name=name, source=f"{target}={value}")
        for target, value in budget.items()
    ]


def marker_limits(limit: Mapping[str, str] | str | None) -> list[Limit]:
    """Read the limits of `@pytest.mark.perfgate(limit=…)`."""
    if limit is None:
        return []
    specs = (
        [f"{target}{bound}" for target, bound in limit.items()]
        if isinstance(limit, Mapping)
        else [limit]
    )
    return [parse_limit(spec, name=_MARKER_LIMIT)[1] for spec in specs]
