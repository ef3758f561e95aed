"""A `perfgate` command as a process of its own, for tests that let one run."""

import os
import subprocess
import sys
import time


def start(folder, *arguments, columns, **environment):
    """Start a command in a project.

    Its temporary files go to the folder `NAME-tmp` beside the project.
    """
    environment = os.environ | folder.environment | environment
    environment |= {"TMPDIR": str(temporary(folder)), "COLUMNS": str(columns)}
    return subprocess.Popen(
        [sys.executable, "-m", "pytest_perfgate", *arguments],
        cwd=folder.path,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def temporary(folder):
    found = folder.path.parent / f"{folder.path.name}-tmp"
    found.mkdir(exist_ok=True)
    return found


def wait_for(folder, pattern, process, *, seconds=120):
    """Wait until a command that runs has written a file."""
    deadline = time.monotonic() + seconds
    while not list(folder.glob(pattern)):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.01)
