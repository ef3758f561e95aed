"""The action on machines of our own: a fake device, a fake GitHub, real processes."""

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
