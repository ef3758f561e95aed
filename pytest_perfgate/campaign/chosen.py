"""What a session takes that one of our own commands started.

`perfgate canary` and `perfgate bisect` load this by `-p`, and workers load it with
the same arguments: a session then tells what it collected, takes exactly the
benchmarks that it is told, gets one more that hands a NaN over, or takes the library
from another checkout than the one that is installed.

PYTEST_DONT_REWRITE: no asserts here.
"""

from __future__ import annotations  # the fixture's class is only named

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_perfgate import redirect
from pytest_perfgate.protocol import (
    CHECKOUT_VARIABLE,
    CHOSEN_VARIABLE,
    FOREIGN_VARIABLE,
    NAN_VARIABLE,
    SURVEY_VARIABLE,
)
from pytest_perfgate.settings import resolve
from pytest_perfgate.store import write_atomically
from pytest_perfgate.trees import Trees

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
        survey = {
            "benchmarks": [item.nodeid for item in session.items],
            "root": str(session.config.rootpath),
            "ini": str(session.config.inipath or ""),
            "overlay": list(resolve(session.config).pairing.overlay),
        }
        file = Path(os.environ[SURVEY_VARIABLE])
        write_atomically(file, json.dumps(survey).encode())


# -- the library of another checkout


def _trees() -> Trees | None:
    """Return from which checkout to which imports are turned over in this process."""
    if CHECKOUT_VARIABLE not in os.environ:
        return None
    own = Trees.read(os.environ[CHECKOUT_VARIABLE])
    if redirect.VARIABLE in os.environ:
        pair = Trees.read(os.environ[redirect.VARIABLE])
        if pair.side == "base":
            return replace(own, base=pair.base, start=pair.start)
    return own


def _turn_over() -> None:
    """Import from that checkout, from now on: conftests and plugins come later."""
    trees = _trees()
    if trees is not None:
        redirect.install(trees, as_module=False)


_turn_over()


def pytest_sessionfinish() -> None:
    trees = _trees()
    if trees is None or FOREIGN_VARIABLE not in os.environ:
        return
    found = redirect.evidence(trees)
    foreign = [file for _, file in found["foreign"]] + found["mapped"]
    line = json.dumps(sorted(set(foreign))) + "\n"
    with Path(os.environ[FOREIGN_VARIABLE]).open("a", encoding="utf-8") as file:
        file.write(line)
