"""Run our tests with coverage, and hold the pure core to every branch.

The closing line of pytest is printed last, so that it is what a log ends with.
"""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = "pytest_perfgate"
CORE = ("stats/*", "gate/*", "store/*", "model.py", "outcomes.py", "units.py")


def module(*arguments: str) -> list[str]:
    return [sys.executable, "-m", *arguments]


def run_tests(*arguments: str) -> tuple[int, str]:
    """Run pytest under coverage; returns its exit code and its closing line."""
    command = module("coverage", "run", "-m", "pytest", *arguments)
    closing = ""
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as process:
        for line in process.stdout or ():
            print(line, end="", flush=True)
            closing = line if line.strip() else closing
    return process.returncode, closing


def coverage(*arguments: str) -> int:
    return subprocess.run(
        module("coverage", *arguments), cwd=ROOT, check=False
    ).returncode


def main() -> int:
    for stale in ROOT.glob(".coverage*"):
        stale.unlink()
    tests, closing = run_tests(*sys.argv[1:])
    coverage("combine", "--quiet")
    core = ",".join(f"{PACKAGE}/{part}" for part in CORE)
    uncovered = coverage("report", f"--include={core}", "--fail-under=100")
    if uncovered:
        print("the core must be covered to the last branch", flush=True)
    print(closing, end="", flush=True)
    return tests or uncovered


if __name__ == "__main__":
    sys.exit(main())
