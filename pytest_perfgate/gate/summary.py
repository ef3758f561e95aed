"""From the samples of one run to the few numbers that the gate looks at."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from pytest_perfgate.gate.budgets import (
    SHARE,
    TAIL_IN_RUN,
    TYPE_8,
    Extra,
    Limit,
    is_tail,
    is_timed,
    main_statistic,
    quantile_of,
    tail_samples,
)
from pytest_perfgate.measured import Measurement, Metric, Samples
from pytest_perfgate.model import RunStatistic, RunSummary
from pytest_perfgate.stats.samples import (
    FloatArray,
    drift,
    mean_error,
    quantile,
    standard_errors,
)

Named = tuple[str | None, str]
"""A statistic by name, of one metric or of all times."""

_EXTREMES = {"median": 0.5, "floor": 0.0, "max": 1.0}
_TAILS = ("p99", "p95")


def summarise(
    measurement: Measurement,
    *,
    extra_statistics: Sequence[Extra] = (),
) -> RunSummary:
    """Reduce a run's samples to its statistics, each with its standard error.

    Parameters
    ----------
    measurement : what one process measured
    extra_statistics : `BenchmarkPolicy.extra_statistics`; of a limit on a tail
        the share of samples beyond it and the median-unbiased quantile are
        kept, since they need the raw samples

    Returns
    -------
    RunSummary
        Of a time: median, floor, and P99 where at least two samples lie beyond
        it, else P95 by the same rule. Of a size or a count the maximum, of a
        throughput the mean. With an inner loop there is no tail at all: a
        sample is then a mean of several calls, and its P99 not theirs. Rounds
        of pytest-benchmark have one, which is called what it is.
    """
    single = measurement.plan.inner_loop == 1
    limits = [extra for extra in extra_statistics if isinstance(extra, Limit)]
    named = [extra for extra in extra_statistics if not isinstance(extra, Limit)]
    tailed = [
        samples for samples in measurement.samples if single or samples.metric.of_rounds
    ]
    statistics = {
        samples.metric.name: _statistics(samples, named, tails=samples in tailed)
        for samples in measurement.samples
    }
    for limit in limits:
        statistics.update(_beyond(limit, tailed, statistics))
    return RunSummary(
        iterations=measurement.plan.iterations,
        statistics=statistics,
        drift=dict(_drifts(measurement.samples)),
        clock_tick_s=measurement.clock_tick_s,
        disturbed=measurement.health.disturbed,
        steady=measurement.health.steady,
        alone=measurement.alone,
        samples={
            samples.metric.name: len(samples.values)
            for samples in measurement.samples
            if len(samples.values) != measurement.plan.iterations
        },
        device=measurement.health.device,
        output=measurement.output,
        enqueue_share=measurement.enqueue_share,
    )


def _drifts(series: Sequence[Samples]) -> Iterator[tuple[str, float]]:
    for samples in series:
        if is_timed(samples.metric):
            trend = drift(samples.values)
            if trend is not None:
                yield samples.metric.name, trend


def _wanted(metric: Metric, extra: Sequence[Named], samples: int) -> list[str]:
    main = main_statistic(metric)
    names = [main]
    if main == "median" and samples > 1:
        names.append("floor")
        names += [tail for tail in _TAILS if _has_tail(tail, samples)][:1]
    for owner, statistic in extra:
        # a bare statistic is about times, as a bare budget is
        if owner == metric.name or (owner is None and main == "median"):
            names.append(statistic)
    return list(dict.fromkeys(names))


def _has_tail(statistic: str, samples: int) -> bool:
    return tail_samples(statistic, samples) >= TAIL_IN_RUN


def _statistics(
    samples: Samples, extra: Sequence[Named], *, tails: bool
) -> dict[str, RunStatistic]:
    count = len(samples.values)
    names = [
        name
        for name in _wanted(samples.metric, extra, count)
        if not is_tail(name) or (tails and _has_tail(name, count))
    ]
    return statistics_of(samples.values, names)


def share_of(statistic: str) -> float | None:
    """Give the share of a statistic that is a quantile; None for the mean."""
    return (
        _EXTREMES.get(statistic)
        or quantile_of(statistic)
        or (0.0 if statistic == "floor" else None)
    )


def statistics_of(
    values: Sequence[float], names: Sequence[str]
) -> dict[str, RunStatistic]:
    """Compute statistics of one run's samples by name.

    Parameters
    ----------
    values : finite, in the order they were measured
    names : `median`, `floor`, `max`, `mean` or quantiles such as `p99`
    """
    array = np.asarray(values, dtype=np.float64)
    shares = {name: share for name in names if (share := share_of(name)) is not None}
    ordered = np.sort(array)
    errors = standard_errors(array, shares)
    found = {
        name: RunStatistic(value=quantile(ordered, share), se=errors[name])
        for name, share in shares.items()
    }
    if "mean" in names:
        found["mean"] = RunStatistic(value=float(array.mean()), se=mean_error(array))
    return {name: found[name] for name in names}


def _beyond(
    limit: Limit,
    series: Sequence[Samples],
    known: Mapping[str, Mapping[str, RunStatistic]],
) -> dict[str, dict[str, RunStatistic]]:
    """Keep what a limit on a tail needs of the raw samples."""
    statistic = limit.statistic or ""
    if not is_tail(statistic):
        return {}
    added: dict[str, dict[str, RunStatistic]] = {}
    for samples in series:
        name = samples.metric.name
        if limit.metric not in {None, name} or len(samples.values) == 1:
            continue
        array = np.sort(np.asarray(samples.values, dtype=np.float64))
        added[name] = {
            **known[name],
            statistic + TYPE_8: RunStatistic(value=_type_8(array, statistic)),
        }
        share = np.mean(
            array > limit.value if limit.operator == "<=" else array < limit.value
        )
        added[limit.share_of(name)] = {SHARE: RunStatistic(value=float(share))}
    return added


def _type_8(ordered: FloatArray, statistic: str) -> float:
    share = quantile_of(statistic) or 0.0
    return quantile(ordered, share, alpha=1 / 3, beta=1 / 3)
