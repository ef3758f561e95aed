"""Put our own benchmarks through our own gate.

Where this kind of machine has no baselines yet, they are recorded first.
"""

import subprocess
import sys
from pathlib import Path

from pytest_perfgate.measure.device import resolve_device
from pytest_perfgate.measure.environment import hardware
from pytest_perfgate.store import BaselineStore

ROOT = Path(__file__).resolve().parent.parent


def pytest(*arguments: str) -> int:
    command = [sys.executable, "-m", "pytest", "--perfgate", *arguments]
    print("$ pytest", *command[3:], flush=True)
    return subprocess.run(command, cwd=ROOT, check=False).returncode


def unrecorded(folder: str) -> tuple[str, list[str]]:
    """Return this machine's key and the benchmark files it has no baselines for."""
    key, _ = hardware(resolve_device("auto"), fake_script=None)
    store = BaselineStore(ROOT / "baselines")
    files = sorted((ROOT / folder).rglob("bench_*.py"))
    names = [str(file.relative_to(ROOT)) for file in files]
    return key, [name for name in names if store.load(key, name) is None]


def main() -> int:
    folder = sys.argv[1] if len(sys.argv) > 1 else "benches"
    key, absent = unrecorded(folder)
    if absent:
        print(f"perfgate: no baselines for {key} yet; recording them first", flush=True)
        code = pytest(*absent, "--perfgate-update")
        if code:
            return code
    return pytest(folder)


if __name__ == "__main__":
    sys.exit(main())
