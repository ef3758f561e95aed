"""Run our tests, and hold the pure core to every branch.

Two pytest processes share the machine's cores: most of the whole sessions of
`tests/plugin`, and everything else under coverage. The closing line, of both
together, is printed last, so that it is what a log ends with.
"""

import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import IO

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = "pytest_perfgate"
CORE = (
    "stats/*",
    "gate/*",
    "store/*",
    "model.py",
    "measured.py",
    "outcomes.py",
    "units.py",
)
SESSIONS = "tests/plugin"
WITH_THE_OTHERS = ("test_bisect.py", "test_canary.py", "test_base_imports.py")
"""Of the sessions: so many that both processes take about as long."""
_COUNT = re.compile(r"(\d+) ([a-z]+)")
_ORDER = ("failed", "error", "passed", "skipped", "xfailed", "xpassed", "warning")


def module(*arguments: str) -> list[str]:
    return [sys.executable, "-m", *arguments]


def folders() -> list[str]:
    """Return the folders of tests, but for the whole sessions."""
    found = sorted({path.parent for path in (ROOT / "tests").rglob("test_*.py")})
    names = {path.relative_to(ROOT).parts[1] for path in found}
    return [f"tests/{name}" for name in sorted(names) if f"tests/{name}" != SESSIONS]


def start(command: Sequence[str], log: IO[str]) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        command, cwd=ROOT, stdout=log, stderr=subprocess.STDOUT, text=True
    )


def shown(lines: Iterable[str]) -> str:
    """Print lines as they come; return the last one that says something."""
    closing = ""
    for line in lines:
        print(line, end="", flush=True)
        closing = line if line.strip() else closing
    return closing


def run_tests() -> tuple[int, str]:
    """Run everything; returns the worse exit code and the closing line of both."""
    begun = time.monotonic()
    with tempfile.TemporaryFile("w+") as log:
        # two processes must not write one cache
        apart = [f"{SESSIONS}/{name}" for name in WITH_THE_OTHERS]
        ignored = [f"--ignore={file}" for file in apart]
        sessions = start(
            module("pytest", "-p", "no:cacheprovider", SESSIONS, *ignored), log
        )
        others = module("coverage", "run", "-m", "pytest", *folders(), *apart)
        try:
            with subprocess.Popen(
                others, cwd=ROOT, stdout=subprocess.PIPE, text=True
            ) as process:
                first = shown(process.stdout or ())
            code = sessions.wait()
        finally:
            sessions.kill()
            sessions.wait()
        log.seek(0)
        second = shown(log)
    closing = together((first, second), seconds=time.monotonic() - begun)
    return process.returncode or code, closing


def together(closings: Sequence[str], *, seconds: float) -> str:
    """Add two closing lines of pytest up to one.

    Where one of them counts nothing its process did not come to its end, and what
    it said stands.
    """
    total: Counter[str] = Counter()
    for closing in closings:
        counts = _COUNT.findall(closing.partition(" in ")[0])
        if not counts:
            return closing
        for number, what in counts:
            total[what.removesuffix("s")] += int(number)
    parts = [f"{total[what]} {what}" for what in _ORDER if total[what]]
    minutes, rest = divmod(int(seconds), 60)
    return f"{', '.join(parts)} in {seconds:.2f}s ({minutes // 60}:{minutes % 60:02}:{rest:02})\n"


def coverage(*arguments: str) -> int:
    return subprocess.run(
        module("coverage", *arguments), cwd=ROOT, check=False
    ).returncode


def main() -> int:
    for stale in ROOT.glob(".coverage*"):
        stale.unlink()
    tests, closing = run_tests()
    coverage("combine", "--quiet")
    core = ",".join(f"{PACKAGE}/{part}" for part in CORE)
    uncovered = coverage("report", f"--include={core}", "--fail-under=100")
    if uncovered:
        print("the core must be covered to the last branch", flush=True)
    print(closing, end="", flush=True)
    return tests or uncovered


if __name__ == "__main__":
    sys.exit(main())
