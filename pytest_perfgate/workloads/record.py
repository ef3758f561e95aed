"""Numbers measured elsewhere: metrics of the test that hands them over."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace

from pytest_perfgate.errors import BadSample, UsageError
from pytest_perfgate.measure.context import MeasureContext
from pytest_perfgate.measured import METRICS, Measurement, Metric, Plan, Samples
from pytest_perfgate.model import Better
from pytest_perfgate.workloads.assembly import samples as checked
from pytest_perfgate.workloads.assembly import torch_threads, workload_digest
from pytest_perfgate.workloads.target import Target


def recorded(
    name: str, samples: Iterable[float], *, unit: str, better: str, exact: bool
) -> Samples:
    """Make a metric and its samples of what a test recorded.

    Raises
    ------
    BadSample
        There is no sample, or one is not a finite number.
    UsageError
        The unit is empty, or `better` is neither `lower` nor `higher`.
    """
    where = f"record({name!r})"
    if better not in tuple(Better):
        raise UsageError(
            f"{where}: better={better!r} is no direction; write 'lower' or 'higher'"
        )
    if not unit:
        raise UsageError(
            f"{where}: unit={unit!r} is no unit; write 's', 'B', '1' or your own"
        )
    _check_known(name, unit, better, where)
    metric = Metric(
        name=name,
        unit=unit,
        better=Better(better),
        definition="recorded/1",
        exact=exact,
    )
    values = [_number(value, index, where) for index, value in enumerate(samples)]
    return checked(metric, values, where=where)


def _check_known(name: str, unit: str, better: str, where: str) -> None:
    """Refuse to call by a known metric's name what is measured in another unit."""
    known = METRICS.get(name)
    if known is None:
        return
    units_fit = unit == known.unit or (
        known.unit == "1/s" and unit.endswith(known.unit[1:])
    )
    if not units_fit or better != known.better:
        raise UsageError(
            f"{where}: unit={unit!r}, better={better!r}, but {name} is in "
            f"{known.unit!r} and {known.better} is better; convert the numbers, or "
            "give the metric a name of its own"
        )


def _number(value: object, index: int, where: str) -> float:
    try:
        number = float(value)  # type: ignore[arg-type]  # what is none is caught below
    except (TypeError, ValueError):
        number = math.nan
    if math.isfinite(number):
        return number
    raise BadSample(
        f"{where}: sample {index} is {value!r}; every sample must be a finite number"
    )


def record_only(
    context: MeasureContext, target: Target, records: Mapping[str, Samples]
) -> Measurement:
    """Make the record of a test that only handed numbers over."""
    plan = Plan(
        iterations=1,  # how many numbers a tool hands over is no matter of ours
        warmup=0,
        seed=context.seed,
        threads=torch_threads(),
        device=context.device.name,
        workload=workload_digest("record", **dict.fromkeys(records, 0.0)),
    )
    return Measurement(
        benchmark=target.benchmark,
        nodeid=target.nodeid,
        run=context.run,
        plan=plan,
        samples=tuple(records.values()),
        alone=context.alone,
    )


def with_records(own: Measurement, records: Mapping[str, Samples]) -> Measurement:
    """Add recorded metrics to what the test measured.

    Raises
    ------
    UsageError
        A recorded metric has the name of a measured one.
    """
    for series in own.samples:
        if series.metric.name in records:
            raise UsageError(
                f"{own.nodeid}: record({series.metric.name!r}) has the name of a "
                "metric that this test measures; choose another"
            )
    return replace(own, samples=(*own.samples, *records.values()))
