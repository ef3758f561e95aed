"""What has misled others about timing on GPUs, where no other test of ours shows it."""

import contextlib
from pathlib import Path

import pytest

import pytest_perfgate
from pytest_perfgate.measure import counters
from pytest_perfgate.measure.compile_watch import BreakBook
from pytest_perfgate.measure.counters import NOTHING, Occasion, take_counts
from pytest_perfgate.measure.operators import dispatched
from pytest_perfgate.measure.profiling import Traced
from pytest_perfgate.measure.recipe import Recipe
from pytest_perfgate.measure.runner import drive, schedule
from pytest_perfgate.workloads import assembly
from pytest_perfgate.workloads.call import measure_call
from pytest_perfgate.workloads.generation import measure_generation
from pytest_perfgate.workloads.inference import Work, measure_inference
from pytest_perfgate.workloads.target import Target
from pytest_perfgate.workloads.training import Step, measure_training

PACKAGE = Path(pytest_perfgate.__file__).parent


@pytest.fixture
def torch():
    return pytest.importorskip("torch")


def test_autocast_entered_for_every_call_casts_its_weights_every_time(torch):
    linear = torch.nn.Linear(4, 4, bias=False)
    x = torch.ones(2, 4)

    def casts(call):
        return dispatched(call).by_name.get("aten::_to_copy", 0)

    def entered():
        with torch.autocast("cpu", torch.bfloat16):
            return linear(x)

    assert casts(entered) == casts(entered) == 2  # the input and the weight
    with torch.autocast("cpu", torch.bfloat16):
        linear(x)
        assert casts(lambda: linear(x)) == 1  # the cached weight serves


@pytest.mark.parametrize(
    "switch",
    [
        "set_sync_debug_mode",
        "cudaProfilerStart",
        "_activate_gpu_trace",
        "cudnn.benchmark =",
        "allow_tf32 =",
        "set_float32_matmul_precision",
        "use_deterministic_algorithms",
    ],
)
def test_nothing_global_is_switched_on(switch):
    for file in PACKAGE.rglob("*.py"):
        assert switch not in file.read_text(encoding="utf-8"), file


def test_the_first_trace_of_a_call_is_thrown_away(torch, monkeypatch, make_fake):
    made = []

    @contextlib.contextmanager
    def tracing(*, on_gpu, wait):
        yield Traced()
        made.append(on_gpu)

    monkeypatch.setattr(counters, "tracing", tracing)
    used = []
    monkeypatch.setattr(counters, "profile_of", used.extend)
    x = torch.ones(2)
    take_counts(
        Occasion(
            device=make_fake(),
            made=3,
            typical_s=0.001,
            recompiles=0,
            breaks=BreakBook(),
        ),
        lambda: x + x,
    )
    assert len(made) == 3
    assert len(used) == 2


def test_every_shape_is_warm_since_the_warm_up_is_the_call_itself(make_fake):
    device = make_fake(benchmarks={"*": {"seconds": 0.01}})
    seen = []

    def call():
        seen.append(None)

    def perform(request):
        before = len(seen)
        times = device.time_calls(call, count=request.count, inner=1).host_ns
        assert len(seen) - before == request.count
        return times

    wanted = Recipe(iterations=5, warmup=None, inner_loop=1, max_time_s=1.0)
    outcome = drive(schedule(device, wanted), perform)
    assert len(seen) == outcome.warmup + 5
    assert outcome.warmup >= 3


@pytest.mark.parametrize("form", ["call", "inference", "generation", "training"])
def test_nothing_is_timed_once_counting_has_begun(
    form, torch, monkeypatch, make_context, make_fake
):
    """Torch's own counters, for one, make a compiled function slow for good."""
    device = make_fake(benchmarks={"*": {"period": 0.5, "device": 0.5}})
    context = make_context(device=device, counting=True, iterations=3, warmup=2)
    clock = []

    def take_counts(occasion, call):
        assert callable(call)
        assert occasion.device is device
        clock.append(device.now_ns())
        return NOTHING

    monkeypatch.setattr(assembly, "take_counts", take_counts)
    target = Target(nodeid="a.py::b", benchmark="a.py::b")
    layer = torch.nn.Linear(2, 2)
    x = torch.ones(1, 2)
    step = Step(
        model=layer,
        optimizer=torch.optim.SGD(layer.parameters(), lr=0.1),
        loss_fn=lambda y: y.sum(),
        batch={"input": x},
    )
    measure = {
        "call": lambda: measure_call(context, target, layer, (x,), {}),
        "inference": lambda: measure_inference(context, target, layer, (x,), Work()),
        "generation": lambda: measure_generation(context, target, range, [3]),
        "training": lambda: measure_training(context, target, step, batch_size=1),
    }
    measure[form]()
    assert clock == [device.now_ns()]
    assert clock[0] > 0
