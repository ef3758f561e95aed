"""Run our tests with coverage, and hold the pure core to every branch.

The closing line of pytest is printed last, so that it is what a log ends with.
"""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CORE = ["stats", "gate", "store", "model.py", "units.py"]


def run(*arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", *arguments], cwd=ROOT, text=True, check=False
    )


def main() -> int:
    for stale in ROOT.glob(".coverage*"):
        stale.unlink()
    tests = run("coverage", "run", "-m", "pytest", *sys.argv[1:])
    run("coverage", "combine", "--quiet")
    core = ",".join(
        f"pytest_perfgate/{name}{'' if '.' in name else '/*'}" for name in CORE
    )
    covered = run("coverage", "report", f"--include={core}", "--fail-under=100")
    return tests.returncode or covered.returncode


if __name__ == "__main__":
    sys.exit(main())
