import random
import sys
import types

import pytest

from pytest_perfgate.measure.seeding import Seeding, stable_seed


def test_a_seed_is_the_same_on_every_machine():
    assert stable_seed(0, "a.py::b") == 4196456204921483402
    assert 0 <= stable_seed(-5, "ü") < 2**63


def test_seeds_differ_by_base_and_benchmark():
    seeds = {stable_seed(0, "a"), stable_seed(1, "a"), stable_seed(0, "b")}
    assert len(seeds) == 3


def draw_everything():
    import numpy as np

    values = [random.random(), float(np.random.rand())]  # noqa: NPY002, S311
    if "torch" in sys.modules:
        values.append(float(sys.modules["torch"].rand(1)))
    return values


def test_the_same_numbers_again_and_the_old_states_after():
    pytest.importorskip("torch")
    random.seed(1)
    expected = draw_everything()
    random.seed(1)
    seeding = Seeding()
    seeding.apply(0, "b")
    first = draw_everything()
    seeding.apply(0, "c")
    other = draw_everything()
    seeding.apply(0, "b")
    assert draw_everything() == first
    assert other != first
    seeding.restore()
    assert random.random() == expected[0]  # noqa: S311
    seeding.restore()  # does nothing more


def test_states_of_numpy_and_torch_come_back():
    np = pytest.importorskip("numpy")
    torch = pytest.importorskip("torch")
    before = np.random.get_state()[1].tolist(), torch.get_rng_state().tolist()
    seeding = Seeding()
    seeding.apply(0, "b")
    draw_everything()
    seeding.restore()
    assert (np.random.get_state()[1].tolist(), torch.get_rng_state().tolist()) == before


def test_a_gpu_s_states_come_back(monkeypatch):
    given = []
    torch = types.SimpleNamespace(
        manual_seed=lambda _: None,
        random=types.SimpleNamespace(
            get_rng_state=lambda: "cpu", set_rng_state=given.append
        ),
        cuda=types.SimpleNamespace(
            is_initialized=lambda: True,
            get_rng_state_all=lambda: ["gpu"],
            set_rng_state_all=given.append,
        ),
    )
    monkeypatch.setitem(sys.modules, "torch", torch)
    seeding = Seeding()
    seeding.apply(0, "b")
    seeding.restore()
    assert given == ["cpu", ["gpu"]]


def test_what_is_not_loaded_is_not_imported(monkeypatch):
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    monkeypatch.delitem(sys.modules, "numpy", raising=False)
    seeding = Seeding()
    seeding.apply(0, "b")
    seeding.restore()
    assert "torch" not in sys.modules
    assert "numpy" not in sys.modules
