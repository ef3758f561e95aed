"""Changes of a baseline file as pure functions."""

import difflib
from collections.abc import Collection, Mapping
from dataclasses import replace

from pytest_perfgate.errors import UsageError
from pytest_perfgate.model import Baseline, BaselineFile, Environment
from pytest_perfgate.store.codec import environment_digest


def benchmark_file_of(benchmark: str) -> str:
    """Return the path of the file that a benchmark's id begins with."""
    return benchmark.split("::", 1)[0]


def merged(
    file: BaselineFile | None,
    benchmarks: Mapping[str, Baseline],
    *,
    environment: Environment,
) -> BaselineFile:
    """Put baselines recorded in `environment` into a file; its others stay.

    The file's own environment stays as long as a benchmark was recorded there,
    so that an update of one benchmark is a small diff; a benchmark recorded
    elsewhere carries its own.
    """
    fresh = {
        name: replace(base, environment=environment)
        for name, base in benchmarks.items()
    }
    if file is None:
        return _folded(fresh, common=environment)
    together = {**_unfolded(file), **fresh}
    old = environment_digest(file.environment)
    keeps = any(_digest(baseline) == old for baseline in together.values())
    return _folded(together, common=file.environment if keeps else environment)


def _unfolded(file: BaselineFile) -> dict[str, Baseline]:
    """Return the benchmarks, each with the environment it was recorded in."""
    return {
        name: replace(baseline, environment=baseline.environment or file.environment)
        for name, baseline in file.benchmarks.items()
    }


def _folded(benchmarks: Mapping[str, Baseline], *, common: Environment) -> BaselineFile:
    """Leave out the environment where it is the file's."""
    digest = environment_digest(common)
    return BaselineFile(
        environment=common,
        benchmarks={
            name: replace(baseline, environment=None)
            if _digest(baseline) == digest
            else baseline
            for name, baseline in benchmarks.items()
        },
    )


def _digest(baseline: Baseline) -> str | None:
    where = baseline.environment
    return None if where is None else environment_digest(where)


def without(file: BaselineFile, names: Collection[str]) -> BaselineFile:
    """Forget benchmarks.

    Raises
    ------
    UsageError
        Where one of them is not stored.
    """
    for name in names:
        _require(file, name)
    kept = {name: base for name, base in file.benchmarks.items() if name not in names}
    return replace(file, benchmarks=kept)


def renamed(file: BaselineFile, old: str, new: str) -> BaselineFile:
    """Give a benchmark a new id inside its file.

    Raises
    ------
    UsageError
        Where the old id is not stored, or the new one is already.
    """
    _require(file, old)
    _require_free(file, new)
    benchmarks = {
        new if name == old else name: base for name, base in file.benchmarks.items()
    }
    return replace(file, benchmarks=benchmarks)


def placed(
    target: BaselineFile | None, origin: BaselineFile, *, old: str, new: str
) -> BaselineFile:
    """Put the benchmark `old` of one file into another one as `new`.

    Raises
    ------
    UsageError
        Where the old id is not stored, or the new one is already.
    """
    _require(origin, old)
    if target is not None:
        _require_free(target, new)
    baseline = origin.benchmarks[old]
    environment = baseline.environment or origin.environment
    return merged(target, {new: baseline}, environment=environment)


def _require(file: BaselineFile, name: str) -> None:
    if name in file.benchmarks:
        return
    near = difflib.get_close_matches(name, file.benchmarks, n=3, cutoff=0.4)
    hint = (
        f"did you mean {' or '.join(near)}?"
        if near
        else "see `perfgate baselines list`"
    )
    raise UsageError(f"{name} has no baseline; {hint}")


def _require_free(file: BaselineFile, name: str) -> None:
    if name in file.benchmarks:
        raise UsageError(f"{name} has a baseline already; prune it first, or keep it")
