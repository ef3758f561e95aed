"""What a session takes that one of our own commands started.

`perfgate canary` and `perfgate bisect` load this by `-p`, and workers load it with
the same arguments: a session then tells what it collected, takes exactly the
benchmarks that it is told, or gets one more that hands a NaN over.

PYTEST_DONT_REWRITE: no asserts here.
"""

from __future__ import annotations  # the fixture's class is only named

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_perfgate.protocol import CHOSEN_VARIABLE, NAN_VARIABLE, SURVEY_VARIABLE
from pytest_perfgate.store import write_atomically

if TYPE_CHECKING:
    from pytest_perfgate.fixture import PerfGate


# after `-k` and its like have made their choice, before a worker makes its own
@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> None:
    if NAN_VARIABLE in os.environ:
        items += _nan_beside(items, name=os.environ[NAN_VARIABLE])
    if CHOSEN_VARIABLE in os.environ:
        file = Path(os.environ[CHOSEN_VARIABLE])
        chosen = set(json.loads(file.read_text(encoding="utf-8")))
        others = [item for item in items if item.nodeid not in chosen]
        items[:] = [item for item in items if item.nodeid in chosen]
        config.hook.pytest_deselected(items=others)


def _nan_beside(items: list[pytest.Item], *, name: str) -> list[pytest.Item]:
    """Make a benchmark of that node id, in a file that was collected."""
    file, _, function = name.partition("::")
    for item in items:
        module = item.getparent(pytest.Module)
        if module is not None and module.nodeid == file:
            made: pytest.Item = pytest.Function.from_parent(
                module, name=function, callobj=_hand_over_nan
            )
            return [made]
    return []


def _hand_over_nan(perfgate: PerfGate) -> None:
    perfgate.record("canary", [1.0, float("nan")], unit="s", better="lower")


def pytest_collection_finish(session: pytest.Session) -> None:
    if SURVEY_VARIABLE in os.environ and session.config.getoption("collectonly"):
        found = [item.nodeid for item in session.items]
        write_atomically(Path(os.environ[SURVEY_VARIABLE]), json.dumps(found).encode())
