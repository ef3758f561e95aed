"""What several kinds of tests need."""

import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import jsonschema
import pytest

pytest_plugins = ["pytester"]
SCHEMAS = Path(__file__).parents[1] / "docs" / "schemas"


def pytest_configure(config):
    """Lock devices in a folder of our own: tests lock nobody out, nor wait."""
    folder = tempfile.TemporaryDirectory(prefix="perfgate-locks-")
    config.add_cleanup(folder.cleanup)
    os.environ["_PERFGATE_LOCKS"] = folder.name


class Checkout:
    """A small git repository, and the candidate's working tree."""

    def __init__(self, path):
        self.path = path
        path.mkdir(parents=True, exist_ok=True)
        self.git("init", "-q", "-b", "main")

    def git(self, *arguments):
        """Run git; returns what it prints."""
        done = subprocess.run(
            ["git", "-C", self.path, *arguments],
            check=True,
            capture_output=True,
            text=True,
        )
        return done.stdout.strip()

    def write(self, files):
        """Write texts, by path."""
        for name, text in files.items():
            path = self.path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return self

    def commit(self, message="work"):
        """Commit everything; returns the hash."""
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", message)
        return self.git("rev-parse", "HEAD")

    def state(self):
        """All that a measurement must leave as it was: files, refs, worktrees."""
        kept = {
            str(path.relative_to(self.path)): path.read_bytes()
            for path in sorted(self.path.rglob("*"))
            if path.is_file() and not path.is_symlink()
        }
        return kept, self.git("worktree", "list")


@pytest.fixture(scope="session")
def refused_by():
    """What a published schema refuses of a text of JSON, as messages."""

    def refused(name, text):
        path = SCHEMAS / f"{name}.schema.json"
        schema = json.loads(path.read_text(encoding="utf-8"))
        validator = jsonschema.Draft202012Validator(schema)
        return [error.message for error in validator.iter_errors(json.loads(text))]

    return refused


@pytest.fixture
def make_checkout(monkeypatch, tmp_path):
    """Make repositories that no setting of the user's touches.

    By name, each in a folder of its own, or in a folder that is there.
    """
    for name in [n for n in os.environ if n.startswith("GIT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    for who in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{who}_NAME", "A")
        monkeypatch.setenv(f"GIT_{who}_EMAIL", "a@example.com")
    return lambda name="project": Checkout(tmp_path / name)


STUB = Path(__file__).parent / "stubs" / "nvml.c"


@pytest.fixture(scope="session")
def make_driver(tmp_path_factory):
    """Build a driver library that says what the environment tells it to.

    Returns the environment of a process that is to load it: Linux only, and
    only where there is a compiler.
    """
    compiler = shutil.which("cc")
    if compiler is None or os.uname().sysname != "Linux":
        pytest.skip("no C compiler here to build a driver library with")
    built = {}

    def make(*, old=False, **says):
        if old not in built:
            folder = built[old] = tmp_path_factory.mktemp("driver")
            options = ["-DOLD"] if old else []
            subprocess.run(
                [
                    compiler,
                    "-shared",
                    "-fPIC",
                    "-Wl,-soname,libnvidia-ml.so.1",
                    *options,
                    "-o",
                    folder / "libnvidia-ml.so.1",
                    STUB,
                ],
                check=True,
            )
        said = {f"STUB_{name.upper()}": str(value) for name, value in says.items()}
        kept = {n: v for n, v in os.environ.items() if n != "CUDA_VISIBLE_DEVICES"}
        return {**kept, "LD_LIBRARY_PATH": str(built[old]), **said}

    return make
