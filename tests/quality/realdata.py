"""Runs of identical code that were really measured."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from pytest_perfgate.gate.judge import FreshPairs, Look, judge_benchmark
from pytest_perfgate.gate.looks import planned_looks
from pytest_perfgate.gate.policy import resolve_policy
from pytest_perfgate.gate.summary import summarise
from pytest_perfgate.measured import METRICS, Measurement, Plan, Samples
from pytest_perfgate.model import Baseline, RunStatistic, Session
from tests.quality.engine import Runs

CONTENDED = Path(__file__).parents[1] / "data" / "contended"
LATENCY = METRICS["latency"]


def load_contended(name):
    """Give seconds, shape (60 processes, 400 iterations)."""
    return np.load(CONTENDED / f"{name}.npz")["ns"] / 1e9


def summary_of(samples):
    """Reduce a run's seconds as a worker's are."""
    return summarise(
        Measurement(
            benchmark="b",
            nodeid="b",
            run=0,
            plan=Plan(iterations=len(samples), warmup=0),
            samples=(Samples(metric=LATENCY, values=tuple(map(float, samples))),),
        )
    )


def slower(run, factor):
    """Scale every statistic of a run, as slower code would."""
    statistics = {
        metric: {
            name: RunStatistic(value=one.value * factor, se=one.se * factor)
            for name, one in columns.items()
        }
        for metric, columns in run.statistics.items()
    }
    return type(run)(iterations=run.iterations, statistics=statistics, drift=run.drift)


def baseline_of(*sessions, metric=LATENCY):
    stored = tuple(
        Session(time="", commit=None, environment_digest="", runs=tuple(runs))
        for runs in sessions
    )
    return Baseline(
        plan=Plan(iterations=stored[0].runs[0].iterations, warmup=0),
        metrics={metric.name: metric},
        sessions=stored,
        # one run decides nothing: what is tried here is the latest sessions
        anchor=replace(stored[0], runs=stored[0].runs[:1])
        if len(stored) > 1
        else stored[0],
    )


def run_gate(
    sessions, now, *, fresh=None, fresh_base=None, comparisons=300, paired=False
):
    """Judge one benchmark as a session does: look by look, then confirm.

    Parameters
    ----------
    sessions : the stored ones, each a list of runs; one, of the pairs' other
        halves, where `paired`

    Returns
    -------
    BenchmarkJudgement and the number of candidate runs that it took
    """
    policy = resolve_policy("b")
    counts = planned_looks(5 if paired else 3, 12, paired=paired)
    for index, count in enumerate(counts):
        look = Look(
            index=index,
            last=count == counts[-1],
            comparisons=comparisons,
            base_code=fresh_base is not None,
            paired=paired,
        )
        known = [sessions[0][:count]] if paired else sessions
        baseline = baseline_of(*known)
        settings = {"policy": policy, "baseline": baseline, "look": look}
        judged = judge_benchmark(candidate=now[:count], **settings)
        if judged.decided:
            break
    wanted = judged.flagged or (judged.suspect and fresh_base is not None)
    if fresh is None or not wanted:
        return judged, count
    confirmation = (
        tuple(fresh)
        if fresh_base is None
        else FreshPairs(baseline=tuple(fresh_base), candidate=tuple(fresh))
    )
    confirmed = judge_benchmark(
        candidate=now[:count], confirmation=confirmation, **settings
    )
    return confirmed, count


def draws(total, rng, *, count, chronological=False, take=32):
    """Draw which processes play which part: 10 base, 12 candidate, 5 and 5 fresh.

    In order of time the fresh ones alternate, as pairs are made.
    """
    for _ in range(count):
        if chronological:
            start = rng.integers(0, total - take + 1)
            order = np.arange(start, start + take)
        else:
            order = rng.permutation(total)[:take]
        yield order[:10], order[10:22], order[22:32:2], order[23:32:2]


# public Go rounds -------------------------------------------------------------

GO_FILE = Path("go_cloud_rounds") / "go_cloud_rounds.parquet"
FEWEST_ROUNDS = 32


def load_go(folder):
    """Give log times by benchmark, rounds in order; None where they are not there."""
    path = Path(folder or "") / GO_FILE
    if not folder or not path.exists():
        return None
    try:
        from pyarrow import parquet
    except ImportError:
        return None
    table = parquet.read_table(path)
    columns = [
        table[name].combine_chunks().dictionary_encode().indices.to_numpy()
        if name != "which"
        else table[name].to_numpy()
        for name in ("project", "which", "host", "benchmark")
    ]
    keys = np.stack([column.astype(np.int64) for column in columns])
    _, group = np.unique(keys, axis=1, return_inverse=True)
    order = np.lexsort((table["round"].to_numpy(), group.ravel()))
    logs = np.log(table["ns_op"].to_numpy().astype(float))[order]
    ends = np.cumsum(np.bincount(group.ravel()))[:-1]
    return [rounds for rounds in np.split(logs, ends) if len(rounds) >= FEWEST_ROUNDS]


def draw_go(series, rng, count, *, chronological):
    """Draw comparisons of rounds of one benchmark each with itself."""
    picked = np.empty((count, FEWEST_ROUNDS))
    for row, index in enumerate(rng.integers(0, len(series), count)):
        rounds = series[index]
        if chronological:
            start = rng.integers(0, len(rounds) - FEWEST_ROUNDS + 1)
            picked[row] = rounds[start : start + FEWEST_ROUNDS]
        else:
            picked[row] = rng.choice(rounds, FEWEST_ROUNDS, replace=False)
    return Runs(
        baseline=picked[:, None, :10],
        candidate=picked[:, 10:22],
        fresh_base=picked[:, 22::2],
        fresh=picked[:, 23::2],
    )


# labelled series --------------------------------------------------------------


def load_series(folder):
    """Give (name, values, labelled places); an empty list where they are not there."""
    path = Path(folder or "") / "labelled_series"
    if not folder or not path.exists():
        return []
    labels = dict(_columns(path / "labels.csv", 1))
    values = dict(_columns(path / "series.csv", 3))
    return [
        (name, np.array(values[name], float), sorted(map(int, labels.get(name, []))))
        for name in values
    ]


def _columns(path, place) -> Iterator[tuple[str, list[str]]]:
    rows: dict[str, list[str]] = {}
    for line in path.read_text().splitlines()[1:]:
        cells = line.split(",")
        rows.setdefault(cells[0], []).append(cells[place])
    yield from rows.items()


def series_windows(values, labels, *, before=10, after=12):
    """Split into windows without a change inside, and windows around each change.

    Returns
    -------
    two arrays of starts; the change, if any, lies `before` values after the start
    """
    length = before + after
    starts = np.arange(0, len(values) - length + 1)
    places = np.array(labels)
    inside = np.array(
        [((places > start) & (places < start + length)).any() for start in starts]
    )
    around = places - before
    clean = [
        start
        for start in around
        if 0 <= start <= len(values) - length
        and ((places > start) & (places < start + length)).sum() == 1
    ]
    return starts[~inside], np.array(clean, dtype=int)
