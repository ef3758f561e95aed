"""Whatever is measured: of a block that is measured again nothing is left."""

import pytest

from pytest_perfgate.workloads.call import measure_call
from pytest_perfgate.workloads.generation import measure_generation
from pytest_perfgate.workloads.rounds import Rounds
from pytest_perfgate.workloads.training import Step, measure_training
from tests.parts import Parts

ITERATIONS = 1000  # of a millisecond: four blocks, one of which may be repeated


def call(context, target):
    return measure_call(context, target, lambda: None, (), {})[0]


def generation(context, target):
    return measure_generation(context, target, range, [2, 2])[0]


def training(context, target):
    parts = Parts()
    step = Step(
        model=parts, optimizer=parts, loss_fn=lambda *_: parts, batch=("x", "y")
    )
    return measure_training(context, target, step, batch_size=None)[0]


def rounds(context, target):
    found = []
    loop = Rounds(context, target, done=found.append)
    for _ in loop:
        with loop.stage("x"):
            pass
    return found[0]


@pytest.mark.parametrize(
    ("measure", "each"), [(call, 1), (generation, 2), (training, 1), (rounds, 1)]
)
def test_a_block_that_is_measured_again_leaves_no_sample(
    make_context, make_fake, target, by_name, measure, each
):
    quarter = {"parts": {"first": 0.25, "chunk": 0.25}}
    law = {"runs": {"0": {"disturbed_blocks": [1]}}, "device": 0.5, **quarter}
    device = make_fake(benchmarks={"*": law})
    context = make_context(device=device, iterations=ITERATIONS, warmup=7)
    measured = measure(context, target)
    assert measured.health.repeated_blocks == 1
    single = {"cpu_time", "first_call", "throughput", "peak_memory"}
    series = {n: v for n, v in by_name(measured).items() if n not in single}
    assert len(series) > 1
    for name, values in series.items():
        per_request = name in {"ttft", "tpot", "e2e"}
        assert len(values) == ITERATIONS * (each if per_request else 1), name
        assert values == pytest.approx([values[0]] * len(values))
