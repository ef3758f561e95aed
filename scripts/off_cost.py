"""Measure what the plugin adds to a pytest start when it is off.

Runs a plain `pytest` on an empty test file with the plugin installed, against
the same with `-p no:perfgate`, in turns ABBA, and compares user + system CPU
time of the child processes. Of each side's two starts the cheaper one counts: a
neighbour on the machine only ever adds. To be run where only pytest and this
package are installed: every further plugin adds its own noise.

What pytest spends on reading the list of a plugin's files is on both sides.

    python scripts/off_cost.py [PAIRS]

Exit code 1 where the mean or the median of the differences is above 5 ms.
"""

import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from math import sqrt
from pathlib import Path

ALLOWED_S = 0.005
FEWEST_PAIRS = 100
WITHOUT = ("-p", "no:perfgate")
_NO_TESTS = 5


def cpu_s(folder: Path, *arguments: str) -> float:
    """Return the CPU seconds of one pytest start on an empty test file."""
    command = [sys.executable, "-m", "pytest", "-q", *arguments, "test_empty.py"]
    # pytest compiles plugins anew at each start where it may not keep the result
    unset = {"PYTHONDONTWRITEBYTECODE", "PYTEST_ADDOPTS"}
    environment = {n: value for n, value in os.environ.items() if n not in unset}
    child = subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.DEVNULL
    )
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != _NO_TESTS:
        raise SystemExit(f"{' '.join(command)}: exit {child.returncode}, expected 5")
    return usage.ru_utime + usage.ru_stime


def differences_s(pairs: int) -> list[float]:
    """Return with − without, once for each ABBA or BAAB."""
    found = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "test_empty.py").touch()
        for arguments in ((), WITHOUT):  # compiled files and the cache folder
            cpu_s(folder, *arguments)
        for pair in range(pairs):
            first, second = ((), WITHOUT) if pair % 2 else (WITHOUT, ())
            spent: dict[tuple[str, ...], float] = {}
            for arguments in (first, second, second, first):
                once = cpu_s(folder, *arguments)
                spent[arguments] = min(once, spent.get(arguments, once))
            found.append(spent[()] - spent[WITHOUT])
    return found


def mean_interval(values: Sequence[float]) -> tuple[float, float]:
    """95 % interval of the mean (normal; the pairs are many)."""
    half = 1.96 * statistics.stdev(values) / sqrt(len(values))
    mean = statistics.fmean(values)
    return mean - half, mean + half


def median_interval(values: Sequence[float]) -> tuple[float, float]:
    """95 % interval of the median, between two order statistics."""
    ordered = sorted(values)
    half = 1.96 * sqrt(len(ordered)) / 2
    low = max(int(len(ordered) / 2 - half), 0)
    return ordered[low], ordered[len(ordered) - 1 - low]


def main() -> int:
    pairs = int(sys.argv[1]) if len(sys.argv) > 1 else FEWEST_PAIRS
    if pairs < FEWEST_PAIRS:
        raise SystemExit(f"{pairs} pairs are too few; {FEWEST_PAIRS} or more")
    found = differences_s(pairs)
    median, mean = statistics.median(found), statistics.fmean(found)
    rows = (
        ("median", median, median_interval(found)),
        ("mean", mean, mean_interval(found)),
    )
    for name, value, (low, high) in rows:
        print(
            f"{name:<7}{value * 1e3:+.2f} ms of CPU time a start, 95 % interval "
            f"{low * 1e3:+.2f} to {high * 1e3:+.2f} ms ({pairs} pairs)"
        )
    return int(max(median, mean) > ALLOWED_S)


if __name__ == "__main__":
    sys.exit(main())
