"""Try pairs on this machine while another process keeps one core busy.

Makes a small repository with a matrix benchmark, an encoder layer and an
interpreted one, each twice: once with the same code on both sides, and once with
ten percent more work on the candidate's. Measures it with --perfgate-against again
and again, and prints how often which verdict came, how much the numbers of pairs
and of single runs spread, and what it cost.

    python scripts/paired_trial.py --sessions 10 --json trial.json
"""

import argparse
import json
import math
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

LIBRARY = '''\
"""Ten parts of work; the candidate's tree does eleven where it is slower."""
import numpy

SLOWER = {parts}
_random = numpy.random.default_rng(0)
_left, _right = _random.normal(size=(2, 96, 96))
_tokens = _random.normal(size=(4, 16, 64))
_queries, _keys, _values = _random.normal(size=(3, 64, 64)) / 8
_wide, _narrow = _random.normal(size=(64, 256)) / 8, _random.normal(size=(256, 64)) / 16


def matrix(parts):
    for _ in range(parts):
        found = _left @ _right
    return found


def _layer(tokens):
    scores = (tokens @ _queries) @ (tokens @ _keys).swapaxes(-1, -2) / 8
    weights = numpy.exp(scores - scores.max(axis=-1, keepdims=True))
    mixed = tokens + weights / weights.sum(axis=-1, keepdims=True) @ (tokens @ _values)
    mixed = mixed + numpy.maximum(mixed @ _wide, 0) @ _narrow
    return mixed / numpy.sqrt((mixed**2).mean(axis=-1, keepdims=True))


def encoder(parts):
    found = _tokens
    for _ in range(parts):
        found = _layer(found)
    return found


def interpreted(parts):
    total = 0
    for part in range(parts):
        for number in range(2000):
            total += number ^ part
    return total
'''
BENCH = """\
import library
import pytest


@pytest.mark.parametrize("kind", ["matrix", "encoder", "interpreted"])
@pytest.mark.parametrize("parts", ["same", "slower"])
def bench_trial(perfgate, kind, parts):
    work = getattr(library, kind)
    perfgate(work, library.SLOWER if parts == "slower" else 10)
"""
INI = """\
[pytest]
pythonpath = .
perfgate_max_time = {seconds}
"""
STATISTICS = ("median", "floor", "p99")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--sessions", type=int, default=10, help="how many")
    parser.add_argument("--seconds", type=float, default=0.4, help="perfgate_max_time")
    parser.add_argument("--idle", action="store_true", help="keep no core busy")
    parser.add_argument("--json", type=Path, help="write everything that was found")
    given = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="paired-trial-"))
    busy = None if given.idle else subprocess.Popen([sys.executable, "-c", _SPIN])
    sessions = []
    try:
        make_repository(folder, seconds=given.seconds)
        for number in range(given.sessions):
            sessions.append(run(folder))
            print(number + 1, describe(sessions[-1]), flush=True)
            if given.json:
                given.json.write_text(json.dumps(sessions))
    finally:
        if busy is not None:
            busy.kill()
            busy.wait()
        shutil.rmtree(folder)
    for line in table(sessions):
        print(line)


_SPIN = "while True: sum(range(100000))"


def make_repository(folder: Path, *, seconds: float) -> None:
    (folder / "benches").mkdir()
    (folder / "benches" / "bench_trial.py").write_text(BENCH)
    (folder / "pytest.ini").write_text(INI.format(seconds=seconds))
    (folder / "library.py").write_text(LIBRARY.format(parts=10))
    (folder / ".gitignore").write_text(".perfgate/\n__pycache__/\n")
    identity = ("-c", "user.name=trial", "-c", "user.email=trial@example.org")
    for command in (("init", "-q", "-b", "main"), ("add", "-A")):
        subprocess.run(["git", *command], cwd=folder, check=True)
    commit = ["git", *identity, "commit", "-q", "-m", "ten parts"]
    subprocess.run(commit, cwd=folder, check=True)


def run(folder: Path) -> dict[str, Any]:
    """Make one session; the change is left uncommitted, which is measured too."""
    (folder / "library.py").write_text(LIBRARY.format(parts=11))
    report = folder / ".perfgate" / "last" / "report.json"
    report.unlink(missing_ok=True)  # an earlier session's says nothing of this one
    begun = time.monotonic()
    subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"),
            *("--perfgate", "--perfgate-against", "main", "benches"),
        ],
        cwd=folder,
        check=False,
        stdout=subprocess.DEVNULL,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
    )
    results = json.loads(report.read_text())["results"]
    return {
        "seconds": time.monotonic() - begun,
        "results": {name_of(one): found(one) for one in results},
    }


def name_of(result: dict[str, Any]) -> str:
    return str(result["nodeid"]).partition("[")[2].removesuffix("]")


def found(result: dict[str, Any]) -> dict[str, Any]:
    columns = {
        side: result[side]["statistics"].get("latency", {})
        for side in ("runs", "confirmation", "base_runs", "base_confirmation")
        if side in result
    }
    return {
        "verdict": f"{result['verdict']['outcome']}: {result['verdict']['reason']}",
        "pairs": len(result["runs"]["iterations"]),
        "columns": columns,
    }


def describe(session: dict[str, Any]) -> str:
    verdicts = ", ".join(
        f"{name} {one['verdict']} ({one['pairs']} pairs)"
        for name, one in sorted(session["results"].items())
    )
    return f"{verdicts}; {session['seconds']:.0f} s"


# what it comes to -----------------------------------------------------------


def table(sessions: Sequence[dict[str, Any]]) -> Iterator[str]:
    names = sorted(sessions[0]["results"])
    for name in names:
        verdicts = Counter(one["results"][name]["verdict"] for one in sessions)
        for verdict, count in verdicts.most_common():
            yield f"{name:20} {verdict:32} {count}"
    yield ""
    yield "spread of the log, in percent: of pairs | of single runs × √2"
    for name in names:
        cells = "   ".join(
            f"{statistic} {100 * paired:.1f} | {100 * single:.1f}"
            for statistic in STATISTICS
            for paired, single in [spreads(sessions, name, statistic)]
        )
        yield f"{name:20} {cells}"
    seconds = statistics.fmean(session["seconds"] for session in sessions)
    yield f"{seconds / len(names):.0f} s for a benchmark"


def spreads(
    sessions: Sequence[dict[str, Any]], name: str, statistic: str
) -> tuple[float, float]:
    """Return the standard deviation between pairs, and what unpaired runs have."""
    apart, single = [], []
    planted = math.log(1.1) if name.startswith("slower") else 0.0
    for session in sessions:
        for base, now in halves(session["results"][name]["columns"], statistic):
            own = now[2] if len(now) == 4 else math.log(now[0] / base[0])
            apart.append(own - planted)
            single += [math.log(base[0]), math.log(now[0]) - planted]
    return deviation(apart), math.sqrt(2) * deviation(single)


def deviation(values: Sequence[float]) -> float:
    return statistics.stdev(values) if len(values) > 1 else math.nan


def halves(
    columns: dict[str, Any], statistic: str
) -> Iterator[tuple[list[float], list[float]]]:
    for own, base in (("runs", "base_runs"), ("confirmation", "base_confirmation")):
        ours = columns.get(own, {}).get(statistic, [])
        theirs = columns.get(base, {}).get(statistic, [])
        for now, before in zip(ours, theirs, strict=False):
            if now and before:
                yield before, now


if __name__ == "__main__":
    main()
