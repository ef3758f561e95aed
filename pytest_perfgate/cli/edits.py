"""Which baselines a branch edits, old → new: read from git, never from the report."""

import posixpath
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from statistics import median
from typing import Protocol

from pytest_perfgate.errors import BaselineError
from pytest_perfgate.model import Baseline, BaselineFile
from pytest_perfgate.reports.comment import BaselineEdit
from pytest_perfgate.store import read_baselines

_SHOWN = ("median", "p99")
_HARDLY_SHOWN = frozenset({"cpu_time", "first_call"})
_MOST_FILES = 500
_TIMEOUT_S = 60
_UNKNOWN = "Which baselines this pull request edits is not known"


class Git(Protocol):
    """Runs git in a checkout; None where it fails."""

    def __call__(self, *arguments: str) -> bytes | None: ...


def git_in(root: Path) -> Git:
    """Return the git of a checkout."""

    def run(*arguments: str) -> bytes | None:
        try:
            done = subprocess.run(  # noqa: S603 (no shell; paths follow `--`)
                ["git", "-C", str(root), *arguments],  # noqa: S607 (the user's own git)
                capture_output=True,
                check=False,
                timeout=_TIMEOUT_S,
            )
        except (OSError, subprocess.TimeoutExpired):
            return None
        return done.stdout if done.returncode == 0 else None

    return run


def edited_baselines(
    git: Git, *, base: str, folder: str
) -> tuple[tuple[BaselineEdit, ...], str]:
    """List what changed in the baselines since a branch left its base.

    Parameters
    ----------
    git : runs git in the checkout
    base : the branch or commit that is merged into: `origin/main`
    folder : of the baselines, relative to where git runs

    Returns
    -------
    tuple
        The edits, sorted; and why the list is missing or not whole, or nothing.
    """
    start = git("merge-base", "--end-of-options", base, "HEAD")
    prefix = git("rev-parse", "--show-prefix")
    if start is None or prefix is None:
        return (), (
            f"{_UNKNOWN}: git does not know the merge base with {base} here (check out "
            "with `fetch-depth: 0`)."
        )
    place = posixpath.normpath(posixpath.join(_text(prefix), folder))
    if place.startswith(("/", "..")):
        return (), f"{_UNKNOWN}: they are kept outside of it, in {place}."
    commit = _text(start)
    # of the merge base, or what others merged meanwhile would show as undone
    names = git(
        *("diff", "--name-only", "-z", "--no-renames", commit, "HEAD"),
        *("--", f":(top,literal){place}"),
    )
    if names is None:
        return (), f"{_UNKNOWN}: git cannot compare it with {base}."
    paths = sorted(filter(None, _text(names).split("\0")))
    edits = tuple(
        edit
        for path in paths[:_MOST_FILES]
        if path.endswith(".json")
        for edit in _of_file(git, commit, path, place)
    )
    rest = len(paths) - _MOST_FILES
    return (
        edits,
        f"And {rest:,} more files of baselines are edited." if rest > 0 else "",
    )


def _text(output: bytes) -> str:
    return output.decode("utf-8", "surrogateescape").rstrip("\n")


def _of_file(git: Git, commit: str, path: str, folder: str) -> Iterator[BaselineEdit]:
    inside = PurePosixPath(path).relative_to(PurePosixPath(folder))
    if len(inside.parts) < 2:
        return
    hardware = inside.parts[0]
    name = str(PurePosixPath(*inside.parts[1:])).removesuffix(".json")
    try:
        old = _read(git("cat-file", "blob", f"{commit}:{path}"), path)
        new = _read(git("cat-file", "blob", f"HEAD:{path}"), path)
    except BaselineError as error:
        yield BaselineEdit(
            benchmark=name,
            hardware=hardware,
            metric="",
            statistic="",
            told=f"cannot be read: {error}",
        )
        return
    for benchmark in sorted({*old, *new}):
        yield from _of_benchmark(
            benchmark, hardware, old.get(benchmark), new.get(benchmark)
        )


def _read(data: bytes | None, path: str) -> Mapping[str, Baseline]:
    if data is None:
        return {}
    found: BaselineFile = read_baselines(data, source=path)
    return found.benchmarks


def _of_benchmark(
    benchmark: str, hardware: str, old: Baseline | None, new: Baseline | None
) -> Iterator[BaselineEdit]:
    if old == new:
        return
    before, after = _numbers(old), _numbers(new)
    units = {
        name: metric.unit
        for side in (old, new)
        if side is not None
        for name, metric in side.metrics.items()
    }
    changed = [key for key in before | after if before.get(key) != after.get(key)]
    for metric, statistic in changed:
        yield BaselineEdit(
            benchmark=benchmark,
            hardware=hardware,
            metric=metric,
            statistic=statistic,
            unit=units.get(metric, ""),
            old=before.get((metric, statistic)),
            new=after.get((metric, statistic)),
        )
    if not changed:
        yield BaselineEdit(
            benchmark=benchmark,
            hardware=hardware,
            metric="",
            statistic="",
            told="its plan, its sessions or its anchor, not its numbers",
        )


def _numbers(baseline: Baseline | None) -> dict[tuple[str, str], float]:
    """Give each metric's median and P99, or the one statistic that it has.

    A value is the middle of all runs that are stored, as the gate takes it.
    """
    if baseline is None:
        return {}
    found: dict[tuple[str, str], list[float]] = {}
    for run in baseline.runs:
        for metric, statistics in run.statistics.items():
            wanted = [name for name in _SHOWN if name in statistics] or [*statistics][
                :1
            ]
            if metric in _HARDLY_SHOWN:
                continue
            for name in wanted:
                found.setdefault((metric, name), []).append(statistics[name].value)
    return {key: median(values) for key, values in found.items()}
