"""What our benchmarks feed: random, for constants draw less power and run faster."""

import re
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from benches.models import random_ids  # noqa: E402  (it needs torch)
from benches.vision import random_pictures, random_records  # noqa: E402  (as above)
from pytest_perfgate.measure.seeding import Seeding  # noqa: E402  (beside them)

CPU = torch.device("cpu")
BENCHES = Path(__file__).parents[3] / "benches"
INPUTS = {
    "ids": lambda: random_ids(4, 256, vocabulary=5000, device=CPU),
    "pictures": lambda: random_pictures(2, 32, device=CPU, dtype=torch.float32),
    "records": lambda: torch.tensor(
        [list(r.data[:100]) for r in random_records(4, 32, classes=3)]
    ),
}


def made(kind, benchmark):
    seeding = Seeding()
    seeding.apply(0, benchmark)
    try:
        return INPUTS[kind]()
    finally:
        seeding.restore()


@pytest.mark.parametrize("kind", INPUTS)
def test_the_same_benchmark_has_the_same_inputs_in_every_process(kind):
    once, again, other = (made(kind, name) for name in ("a", "a", "b"))
    assert torch.equal(once, again)
    assert not torch.equal(once, other)


@pytest.mark.parametrize("kind", INPUTS)
def test_no_value_stands_for_many(kind):
    values, counts = made(kind, "a").flatten().unique(return_counts=True)
    assert len(values) > 100
    assert counts.max() < 0.05 * counts.sum()


def test_pictures_are_at_a_realistic_scale():
    pictures = made("pictures", "a")
    assert pictures.std() == pytest.approx(1.0, abs=0.05)
    assert abs(pictures.mean()) < 0.05


@pytest.mark.parametrize(
    "file", sorted(BENCHES.glob("bench_*.py")), ids=lambda f: f.name
)
def test_no_benchmark_fills_its_inputs_with_one_value(file):
    constant = re.compile(r"\b(zeros|ones|empty|full|eye|arange)(_like)?\(")
    assert constant.findall(file.read_text(encoding="utf-8")) == []
