"""Stands for `python` where a test needs no real measurement: pytest is replayed.

Everything else that it is asked to run, the real Python runs.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path


def main():
    arguments = sys.argv[1:]
    if arguments[:2] != ["-m", "pytest"]:
        sys.exit(subprocess.run([sys.executable, *arguments], check=False).returncode)
    folder = Path(os.environ["REPLAY"])
    seen = {"arguments": arguments, "environment": dict(os.environ)}
    (folder / "seen.json").write_text(json.dumps(seen))
    sys.stdout.write((folder / "says.txt").read_text())
    sys.stdout.flush()
    report = Path(arguments[arguments.index("--perfgate-report") + 1])
    shutil.copytree(folder / "report", report, dirs_exist_ok=True)
    sys.exit(int((folder / "code.txt").read_text()))


if __name__ == "__main__":
    main()
