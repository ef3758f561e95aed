"""Runs to JSON and back, by column: one line shows a statistic of all runs."""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from pytest_perfgate.measured import Metric
from pytest_perfgate.model import RunStatistic, RunSummary, Twin
from pytest_perfgate.store.codec import number_of, present
from pytest_perfgate.store.fields import Json, Node

N = TypeVar("N", int, float)


def encode_runs(runs: Sequence[RunSummary]) -> Json:
    """Encode runs by column, so that a statistic's values stand side by side.

    Each statistic has one `[value, standard error]` a run, or `[]` where the
    run does not have it; a run that was compared with its twin turn by turn has
    besides that log ratio and its standard error.
    """
    return present(
        iterations=[run.iterations for run in runs],
        clock_tick_s=[run.clock_tick_s for run in runs],
        alone=[run.alone for run in runs],
        disturbed=[run.disturbed for run in runs],
        steady=[run.steady for run in runs],
        drift=_encode_sparse([run.drift for run in runs]) or None,
        samples=_encode_sparse([run.samples for run in runs]) or None,
        device=_encode_sparse([run.device for run in runs]) or None,
        output=_encode_sparse([run.output for run in runs]) or None,
        enqueue_share=_encode_shares(runs),
        statistics=_encode_statistics(runs),
    )


def _encode_shares(runs: Sequence[RunSummary]) -> list[list[float]] | None:
    """Encode the column as those of `device` are; None where no run has a share."""
    shares = [run.enqueue_share for run in runs]
    if all(share is None for share in shares):
        return None
    return [[] if share is None else [share] for share in shares]


def _encode_sparse(rows: Sequence[Mapping[str, float]]) -> Json:
    names = {name for row in rows for name in row}
    return {
        name: [[row[name]] if name in row else [] for row in rows] for name in names
    }


def _encode_statistics(runs: Sequence[RunSummary]) -> Json:
    names = {
        (metric, statistic)
        for run in runs
        for metric, statistics in run.statistics.items()
        for statistic in statistics
    }
    result: dict[str, Json] = {}
    for metric, statistic in names:
        column = [_encode_statistic(run.get(metric, statistic)) for run in runs]
        result.setdefault(metric, {})[statistic] = column
    return dict(result)


def _encode_statistic(statistic: RunStatistic | None) -> list[float]:
    if statistic is None:
        return []
    twin = statistic.twin
    return [statistic.value, statistic.se, *((twin.log_ratio, twin.se) if twin else ())]


def decode_runs(node: Node, *, metrics: Mapping[str, Metric]) -> tuple[RunSummary, ...]:
    """Decode runs; `metrics` says what the statistics of a metric can be."""
    fields = node.fields(
        "iterations",
        "clock_tick_s",
        "alone",
        "disturbed",
        "steady",
        "statistics",
        optional=("drift", "samples", "device", "output", "enqueue_share"),
    )
    iterations = [item.integer(minimum=1) for item in fields["iterations"].items()]
    count = len(iterations)
    ticks = _column(fields["clock_tick_s"], count)
    alone = _column(fields["alone"], count)
    disturbed = _column(fields["disturbed"], count)
    steady = _column(fields["steady"], count)
    statistics = _decode_statistics(fields["statistics"], count, metrics=metrics)
    drift = _decode_sparse(fields.get("drift"), count, read=Node.number)
    samples = _decode_sparse(fields.get("samples"), count, read=_count)
    device = _decode_sparse(fields.get("device"), count, read=Node.number)
    output = _decode_sparse(fields.get("output"), count, read=_size)
    shares = _decode_shares(fields.get("enqueue_share"), count)
    return tuple(
        RunSummary(
            iterations=iterations[index],
            statistics=statistics[index],
            drift=drift[index],
            clock_tick_s=ticks[index].number(minimum=0),
            alone=alone[index].boolean(),
            disturbed=disturbed[index].boolean(),
            steady=steady[index].boolean(),
            samples=samples[index],
            device=device[index],
            output=output[index],
            enqueue_share=shares[index],
        )
        for index in range(count)
    )


def _column(node: Node, count: int) -> list[Node]:
    items = node.items()
    if len(items) != count:
        raise node.corrupt(f"expected {count} entries, one a run, got {len(items)}")
    return items


def _decode_statistics(
    node: Node, count: int, *, metrics: Mapping[str, Metric]
) -> list[dict[str, dict[str, RunStatistic]]]:
    rows: list[dict[str, dict[str, RunStatistic]]] = [{} for _ in range(count)]
    for metric, statistics in node.members().items():
        known = metrics.get(metric, Metric(name=metric, unit=""))
        for name, column in statistics.members().items():
            for row, cell in zip(rows, _column(column, count), strict=True):
                statistic = _decode_statistic(cell, metric=known)
                if statistic is not None:
                    row.setdefault(metric, {})[name] = statistic
    return rows


def _decode_statistic(node: Node, *, metric: Metric) -> RunStatistic | None:
    items = node.items()
    if not items:
        return None
    if len(items) not in {2, 4}:
        raise node.refuse("[value, standard error], or []")
    value, se, *rest = items
    twin = None
    if rest:
        ratio, error = rest
        twin = Twin(log_ratio=ratio.number(), se=error.number(minimum=0))
    return RunStatistic(
        value=number_of(metric, value), se=se.number(minimum=0), twin=twin
    )


def _decode_sparse(
    node: Node | None, count: int, *, read: Callable[[Node], N]
) -> list[dict[str, N]]:
    rows: list[dict[str, N]] = [{} for _ in range(count)]
    members = {} if node is None else node.members()
    for metric, column in members.items():
        for row, cell in zip(rows, _column(column, count), strict=True):
            row.update((metric, read(value)) for value in _at_most_one(cell))
    return rows


def _size(node: Node) -> float:
    return node.number(minimum=0)


def _decode_shares(node: Node | None, count: int) -> list[float | None]:
    if node is None:
        return [None] * count
    columns = [_at_most_one(cell) for cell in _column(node, count)]
    return [cells[0].number(minimum=0) if cells else None for cells in columns]


def _count(node: Node) -> int:
    return node.integer(minimum=1)


def _at_most_one(node: Node) -> list[Node]:
    items = node.items()
    if len(items) > 1:
        raise node.refuse("[value], or []")
    return items
