"""The action on machines of our own: a fake device, a fake GitHub, real processes."""

import os
import re
import shutil
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))  # lets the tests import what lies beside them
PROGRAMS = str(Path(sys.executable).parent)


@pytest.fixture(autouse=True)
def programs(monkeypatch):
    """The python that the action finds is the one that runs the tests."""
    monkeypatch.setenv("PATH", f"{PROGRAMS}:/usr/bin:/bin")


@pytest.fixture
def make_machine(tmp_path):
    """Make a machine for one event; its workspace is empty."""
    from tests.action.runner import Machine

    return lambda event, **fields: Machine(tmp_path / "machine", event, **fields)


BENCHES = """
import library


def bench_fast(perfgate):
    perfgate(lambda: library.FACTOR)


def bench_slow(perfgate):
    perfgate(lambda: None)
"""


@pytest.fixture(scope="session")
def adopted_project(tmp_path_factory):
    """A project with two benchmarks, their baselines, and a base branch."""
    from tests.action.checkout import git
    from tests.plugin.conftest import INI, Spawned

    project = Spawned(tmp_path_factory.mktemp("project"), {})
    (project.path / "tox.ini").write_text(f"{INI}pythonpath = .\n")
    (project.path / "library.py").write_text("FACTOR = 1.0\n")
    project.bench(BENCHES)
    project.adopt("benches")
    ignored = ".perfgate/\n__pycache__/\nfake-device.json\n"
    (project.path / ".gitignore").write_text(ignored)
    git(project.path, "init", "-q", "-b", "topic")
    git(project.path, "add", "-A")
    git(project.path, "commit", "-q", "-m", "first")
    git(project.path, "update-ref", "refs/remotes/origin/main", "HEAD")
    return project


@pytest.fixture
def make_project(adopted_project, tmp_path):
    """Make a copy of the project whose device is as slow as the test says."""
    from tests.plugin.conftest import Folder

    def make(benchmarks, *, salt=1, **fields):
        path = tmp_path / "workspace"
        shutil.copytree(adopted_project.path, path)
        project = Folder(path, {})
        project.device(benchmarks, salt=salt, **fields)
        locks = {"_PERFGATE_LOCKS": os.environ["_PERFGATE_LOCKS"]}
        project.given = project.environment | locks
        return project

    return make


@pytest.fixture
def hub(httpserver):
    """GitHub, as far as we use it."""
    from tests.unit.github.conftest import FakeGitHub

    fake = FakeGitHub(url=httpserver.url_for("/api/v3"))
    httpserver.expect_request(re.compile(r".*")).respond_with_handler(fake)
    yield fake
    httpserver.check_assertions()
