"""Measure how often the gate errs, and write docs/validation.md.

    python -m tests.quality [--data FOLDER] [--cache FOLDER] [--only NAME] [--divide N]

Finished studies are kept in the cache, by the code that made them: interrupted,
the harness goes on where it stopped, and nothing old is ever shown for new.
"""

import argparse
import hashlib
import json
import sys
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import partial
from pathlib import Path

from tests.quality import page, recorded, study
from tests.quality.designs import DESIGNS, LAWS
from tests.quality.figures import decode, encode

ROOT = Path(__file__).parents[2]
SOURCES = (
    "pytest_perfgate/stats/interval.py",
    "pytest_perfgate/gate/bounds.py",
    "pytest_perfgate/gate/looks.py",
    "tests/quality/designs.py",
    "tests/quality/engine.py",
    "tests/quality/figures.py",
    "tests/quality/peers.py",
    "tests/quality/realdata.py",
    "tests/quality/recorded.py",
    "tests/quality/study.py",
)


def digest(divide):
    found = hashlib.sha256(str(divide).encode())
    for source in SOURCES:
        found.update((ROOT / source).read_bytes())
    return found.hexdigest()[:16]


def tasks(data, divide):
    """Give every study by name, the longest first."""
    found = {}
    for name, design in DESIGNS.items():
        wanted = design if divide == 1 else design.smaller(divide)
        found[name] = partial(study.study, name, wanted)
    for name, (_, iterations) in LAWS.items():
        found[f"law-{name}"] = partial(
            study.study_law, name, iterations, total=8000 // divide
        )
    found["tail"] = partial(study.study_tail, "tail", total=6000 // divide)
    found |= recorded.tasks(data, divide)
    return found


def load(path, wanted):
    if not path.exists():
        return None
    stored = json.loads(path.read_text())
    if stored["made_by"] != wanted:
        return None
    return {
        rule: {name: decode(figure) for name, figure in figures.items()}
        for rule, figures in stored["rows"].items()
    }


def save(path, rows, made_by):
    path.parent.mkdir(parents=True, exist_ok=True)
    plain = {
        rule: {name: encode(figure) for name, figure in figures.items()}
        for rule, figures in rows.items()
    }
    text = json.dumps({"made_by": made_by, "rows": plain}, indent=1)
    partial_file = path.with_suffix(".part")
    partial_file.write_text(text)
    partial_file.replace(path)


def run(wanted, cache, made_by, processes):
    """Run what is not in the cache yet."""
    known = {name: load(cache / f"{name}.json", made_by) for name in wanted}
    missing = {name: task for name, task in wanted.items() if known[name] is None}
    for name, rows in finished(missing, processes):
        if rows:
            save(cache / f"{name}.json", rows, made_by)
        known[name] = rows
        sys.stderr.write(f"{name}: {'done' if rows else 'no data here'}\n")
    return {name: known[name] for name in wanted if known[name]}


def finished(missing, processes):
    """Give the studies one by one as they end."""
    if processes == 1:
        for name, task in missing.items():
            yield name, task()
        return
    with ProcessPoolExecutor(max_workers=processes) as pool:
        running = {pool.submit(task): name for name, task in missing.items()}
        for future in as_completed(running):
            yield running[future], future.result()


def parse(arguments):
    parser = argparse.ArgumentParser(prog="python -m tests.quality")
    parser.add_argument("--data", help="folder of public data sets")
    parser.add_argument("--cache", type=Path, default=ROOT / "build" / "quality")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "validation.md")
    parser.add_argument("--only", action="append", help="names of studies")
    parser.add_argument("--divide", type=int, default=1, help="do less, to try it")
    parser.add_argument("--processes", type=int, choices=(1, 2), default=2)
    return parser.parse_args(arguments)


def main(arguments=None):
    options = parse(arguments)
    wanted = tasks(options.data, options.divide)
    if options.only:
        wanted = {name: wanted[name] for name in options.only}
    results = run(wanted, options.cache, digest(options.divide), options.processes)
    options.out.write_text(page.write(results), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
