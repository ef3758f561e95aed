"""May these numbers be compared at all: machines and plans side by side."""

from collections.abc import Iterable, Mapping
from dataclasses import fields

from pytest_perfgate.measured import UNSTABLE, Measurement, Metric, Plan
from pytest_perfgate.model import Difference, Environment

_CLOCKS = ("mhz", "clock")
_ABSENT = "not recorded"

Facts = Mapping[str, str | int | float | bool | None]


def compare_environments(
    baseline: Environment, candidate: Environment
) -> tuple[Difference, ...]:
    """List what differs between two machines.

    Returns
    -------
    tuple of Difference
        Differences of hardware forbid a comparison; a field that one side did
        not record at all does not, for a newer version may record more. Those
        of software never do: an upgrade that slows the code is what the gate
        is for. Current clock figures are no difference: they change by the
        second.
    """
    found = []
    if baseline.key != candidate.key:
        found.append(_difference("key", baseline.key, candidate.key, forbids=True))
    if baseline.fake != candidate.fake:
        found.append(_difference("fake", baseline.fake, candidate.fake, forbids=True))
    found += _facts(baseline.hardware, candidate.hardware, forbids=True)
    found += _facts(baseline.software, candidate.software, forbids=False)
    return tuple(found)


def _facts(baseline: Facts, candidate: Facts, *, forbids: bool) -> list[Difference]:
    if baseline == candidate:
        return []
    found = []
    for name in sorted(baseline.keys() | candidate.keys()):
        before, now = baseline.get(name, _ABSENT), candidate.get(name, _ABSENT)
        if before != now and not any(word in name.lower() for word in _CLOCKS):
            both = name in baseline and name in candidate
            found.append(_difference(name, before, now, forbids=forbids and both))
    return found


def compare_plans(baseline: Plan, candidate: Plan) -> tuple[Difference, ...]:
    """List in what two plans differ; each difference forbids a comparison.

    torch's threads are known only where something in the process imported
    torch, which for a benchmark without torch depends on its neighbours: not
    known on one side is no difference.
    """
    if baseline == candidate:
        return ()
    return tuple(
        _difference(name, before, now, forbids=True)
        for name in (each.name for each in fields(Plan))
        if (before := getattr(baseline, name)) != (now := getattr(candidate, name))
        and not (name == "threads" and None in {before, now})
    )


def compare_metrics(baseline: Metric, candidate: Metric) -> tuple[Difference, ...]:
    """List in what two definitions of a metric differ; each forbids a comparison."""
    return tuple(
        _difference(f"{baseline.name}.{name}", before, now, forbids=True)
        for name in ("unit", "better", "definition", "exact")
        if (before := getattr(baseline, name)) != (now := getattr(candidate, name))
    )


def not_comparable(baseline: Metric, candidate: Metric) -> str | None:
    """Say why a count is only shown: it holds for something else, or for nothing.

    A count is that of one version of torch on one kind of device: another
    version does the same work by other operators. None where it can be judged,
    or where the definitions differ in more than that, which is a matter of
    `compare_metrics`.
    """
    name, before, now = candidate.name, baseline.holds_for, candidate.holds_for
    if before == now != UNSTABLE or baseline.made != candidate.made:
        return None
    if UNSTABLE in {before, now}:
        when = "now" if now == UNSTABLE else "when recorded"
        return f"{name} is not gated: it differed {when} between two calls of one run"
    return (
        f"{name} is not gated: it was counted with {before}, now with {now};"
        " record it anew to gate it"
    )


def definitions(measured: Iterable[Measurement]) -> dict[str, Metric]:
    """Return the metrics of several runs; unstable in one is unstable in all."""
    found: dict[str, Metric] = {}
    for measurement in measured:
        for series in measurement.samples:
            metric = series.metric
            known = found.get(metric.name)
            if known is None or known.holds_for != UNSTABLE:
                found[metric.name] = metric
    return found


def _difference(
    name: str, baseline: object, candidate: object, *, forbids: bool
) -> Difference:
    return Difference(
        field=name, baseline=str(baseline), candidate=str(candidate), forbids=forbids
    )


def difference_text(differences: tuple[Difference, ...]) -> str:
    """Write differences for a verdict: `iterations was 50, is 60`."""
    return "; ".join(
        f"{each.field} was {each.baseline}, is {each.candidate}" for each in differences
    )
