import math
import sys
import types

import pytest

from pytest_perfgate.errors import BadSample, UsageError
from pytest_perfgate.measure.counters import Counted
from pytest_perfgate.measure.cpu import CpuDevice
from pytest_perfgate.measure.settling import Request
from pytest_perfgate.workloads import training
from pytest_perfgate.workloads.loading import Loader
from pytest_perfgate.workloads.training import (
    PHASES,
    Step,
    Steps,
    check_loss,
    measure_training,
    run_step,
)


class Parts:
    """A model, an optimizer, a scaler and a loss that write down what happens."""

    def __init__(self, loss=1.0):
        self.order = []
        self.scale = 1.0
        self.value = loss

    def zero_grad(self, *, set_to_none):
        self.order.append(f"zero_grad {set_to_none}")

    def __call__(self, *args, **kwargs):
        self.order.append(f"forward {args} {kwargs}")
        return "output"

    def loss_fn(self, *args):
        self.order.append(f"loss {args}")
        return self

    def backward(self):
        self.order.append("backward")

    def step(self, optimizer=None):
        self.order.append("step" if optimizer is None else "scaled step")

    def detach(self):
        return self.value


class Scaler:
    def __init__(self, parts, scales=(1.0,)):
        self.parts = parts
        self.scales = list(scales)

    def scale(self, loss):
        self.parts.order.append("scale")
        return loss

    def unscale_(self, optimizer):
        self.parts.order.append("unscale")

    def step(self, optimizer):
        optimizer.step(optimizer)

    def update(self):
        self.parts.order.append("update")
        if len(self.scales) > 1:
            self.scales.pop(0)

    def get_scale(self):
        return self.scales[0]


def make_step(parts, *, batch=("x", "y"), **changes):
    return Step(
        model=parts, optimizer=parts, loss_fn=parts.loss_fn, batch=batch, **changes
    )


def test_the_order_of_a_step():
    parts, phases = Parts(), []
    loss = run_step(make_step(parts), phases.append)
    assert parts.order == [
        "zero_grad True",
        "forward ('x',) {}",
        "loss ('output', 'y')",
        "backward",
        "step",
    ]
    assert tuple(phases) == PHASES
    assert loss == 1.0


def test_the_order_of_a_scaled_step():
    parts = Parts()
    run_step(make_step(parts, scaler=Scaler(parts)), lambda _: None)
    assert parts.order[2:] == [
        "loss ('output', 'y')",
        "scale",
        "backward",
        "scaled step",
        "update",
    ]


@pytest.mark.parametrize(
    ("batch", "forward", "loss"),
    [
        (("x", "y"), "forward ('x',) {}", "loss ('output', 'y')"),
        ((("x", "m"), "y"), "forward ('x', 'm') {}", "loss ('output', 'y')"),
        (({"ids": 1}, "y"), "forward () {'ids': 1}", "loss ('output', 'y')"),
        ({"ids": 1}, "forward () {'ids': 1}", "loss ('output',)"),
        ("x", "forward ('x',) {}", "loss ('output',)"),
    ],
)
def test_what_a_batch_may_be(batch, forward, loss):
    parts = Parts()
    run_step(make_step(parts, batch=batch), lambda _: None)
    assert parts.order[1:3] == [forward, loss]


def test_a_batch_of_three_is_refused():
    with pytest.raises(UsageError, match="batch has 3 parts"):
        make_step(Parts(), batch=(1, 2, 3))


def test_step_time_and_phases_are_exact(make_context, make_fake, target, by_name):
    law = {"seconds": 0.010, "parts": {"phase:backward": 0.5}, "peak_memory": 77}
    context = make_context(
        device=make_fake(benchmarks={"*": law}), iterations=3, warmup=2
    )
    measurement, loss = measure_training(
        context, target, make_step(Parts()), batch_size=26
    )
    values = by_name(measurement)
    assert values["phase:forward"] == pytest.approx((0.002,) * 3)
    assert values["phase:backward"] == pytest.approx((0.005,) * 3)
    assert values["step_time"] == pytest.approx((0.013,) * 3)
    assert values["throughput"] == pytest.approx((2000.0,))
    assert values["peak_memory"] == (77.0,)
    assert [name for name in values if name.startswith("phase:")] == [
        f"phase:{phase}" for phase in PHASES
    ]
    assert measurement.plan.batch_size == 26
    assert loss == 1.0


def test_a_slowdown_reaches_every_phase(make_context, target, by_name):
    context = make_context(iterations=3, warmup=2, slowdown=1.0)
    measurement, _ = measure_training(
        context, target, make_step(Parts()), batch_size=None
    )
    values = by_name(measurement)
    assert values["step_time"] == pytest.approx((0.002,) * 3)
    assert values["phase:loss"] == pytest.approx((0.0004,) * 3)
    assert "throughput" not in values


def test_on_the_cpu_phases_are_wall_time_and_stretched(
    make_context, make_clock, target, by_name
):
    clock = make_clock(step=1)
    parts = Parts()
    parts.backward = lambda: setattr(clock, "now", clock.now + 10_000)
    for slowdown, expected in ((0.0, 10e-6), (0.5, 15e-6)):
        context = make_context(
            device=CpuDevice(clock=clock), iterations=2, warmup=1, slowdown=slowdown
        )
        measurement, _ = measure_training(
            context, target, make_step(parts), batch_size=None
        )
        values = by_name(measurement)
        assert values["phase:backward"] == pytest.approx((expected,) * 2, rel=0.01)
        assert values["phase:forward"][0] < 1e-7


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_loss_that_is_not_finite_is_an_error(make_context, target, value):
    with pytest.raises(BadSample, match=f"loss is {value} at the end"):
        measure_training(
            make_context(iterations=2, warmup=1),
            target,
            make_step(Parts(loss=value)),
            batch_size=None,
        )
    check_loss(1.0, where="x")


def test_a_loss_scale_that_moves_is_remarked(make_context, target, make_other_side):
    parts = Parts()
    step = make_step(parts, scaler=Scaler(parts, scales=[8.0, 4.0]))
    # turns of three steps
    context = make_context(iterations=40, warmup=1, pair=make_other_side())
    measurement, _ = measure_training(context, target, step, batch_size=None)
    assert measurement.remarks == ()  # it moved in the warm-up
    parts = Parts()
    step = make_step(parts, scaler=Scaler(parts, scales=[8.0] * 30 + [4.0]))
    measurement, _ = measure_training(context, target, step, batch_size=None)
    assert measurement.remarks == ("loss scale moved while measuring: [4.0, 8.0]",)


def test_the_warm_up_waits_for_the_loss_scale(make_context, target):
    parts = Parts()
    scales = [8.0, 8.0, 8.0, 4.0, 2.0]
    step = make_step(parts, scaler=Scaler(parts, scales=scales))
    measurement, _ = measure_training(
        make_context(iterations=5), target, step, batch_size=None
    )
    assert measurement.remarks == ()
    assert measurement.plan.warmup > 4 + 10


def test_a_block_whose_scale_moved_is_made_again(make_context, target, by_name):
    parts = Parts()
    step = make_step(parts, scaler=Scaler(parts, scales=[8.0] * 3 + [4.0]))
    measurement, _ = measure_training(
        make_context(iterations=20, warmup=1), target, step, batch_size=None
    )
    assert measurement.remarks == (
        "the loss scale moved, blocks made again: 1",
        "loss scale moved while measuring: [4.0, 8.0]",  # before and after
    )
    values = by_name(measurement)
    assert len(values["step_time"]) == len(values["phase:loss"]) == 20
    assert measurement.health.steady


def test_a_scale_that_never_rests_is_not_steady(make_context, target):
    parts = Parts()
    step = make_step(parts, scaler=Scaler(parts, scales=list(range(2000))))
    measurement, _ = measure_training(
        make_context(iterations=20, warmup=1), target, step, batch_size=None
    )
    assert not measurement.health.steady
    assert measurement.remarks[0] == "the loss scale moved, blocks made again: 3"


class Streams(CpuDevice):
    """A device whose last event happens before the step is over."""

    def __init__(self, clock, aside_ns=0, factor=1):
        super().__init__(clock=clock)
        self.name = "cuda:0"
        self.clock = clock
        self.aside_ns = aside_ns
        self.factor = factor
        self.order = []

    def mark(self):
        self.order.append("event")
        return super().mark()

    def synchronize(self):
        if self.order[-1:] == ["event"]:  # at the end of a step
            self.clock.now += self.aside_ns
        self.order.append("wait")

    def span_s(self, first, second):
        return super().span_s(first, second) * self.factor


def test_a_step_has_six_events_and_one_wait(make_clock):
    device = Streams(make_clock())
    steps = Steps(device=device, step=make_step(Parts()))
    assert len(steps(Request(count=3, measured=True))) == 3
    assert device.order == ["wait", *(["event"] * 6 + ["wait"]) * 3]
    assert {len(spans) for spans in steps.phases_s.values()} == {3}


@pytest.mark.parametrize(("factor", "told"), [(1.019, True), (1.021, False)])
def test_phases_that_are_more_than_the_step_are_left_out(
    make_context, make_clock, target, by_name, factor, told
):
    clock = make_clock(step=0)
    parts = Parts()
    parts.backward = lambda: setattr(clock, "now", clock.now + 10_000_000)
    measurement, _ = measure_training(
        make_context(device=Streams(clock, factor=factor), iterations=2, warmup=1),
        target,
        make_step(parts),
        batch_size=None,
    )
    assert ("phase:backward" in by_name(measurement)) is told
    if not told:
        assert measurement.remarks == (
            (
                "no phases: together they take 2% more than the step, by the device's "
                "own clock"
            ),
        )


def test_the_warm_up_has_three_steps_at_least(make_context, make_fake, target):
    device = make_fake(benchmarks={"*": {"seconds": 100.0}})
    measurement, _ = measure_training(
        make_context(device=device, iterations=1),
        target,
        make_step(Parts()),
        batch_size=None,
    )
    assert measurement.plan.warmup >= 3


def test_the_loss_is_read_once_and_when_all_is_timed(make_context, target):
    parts = Parts()

    class Loss:
        def __float__(self):
            parts.order.append("read")
            return 0.5

    parts.value = Loss()
    context = make_context(iterations=7, warmup=3)
    measure_training(context, target, make_step(parts), batch_size=None)
    assert parts.order.count("read") == 1
    assert parts.order.index("read") == 10 * 5  # parts of a step


def test_gradients_are_unscaled_before_they_are_clipped(monkeypatch):
    parts = Parts()
    parts.parameters = lambda: "parameters"

    def clip(parameters, norm):
        parts.order.append(f"clip {parameters} {norm}")

    utils = types.SimpleNamespace(clip_grad_norm_=clip)
    torch = types.SimpleNamespace(nn=types.SimpleNamespace(utils=utils))
    monkeypatch.setitem(sys.modules, "torch", torch)
    run_step(make_step(parts, scaler=Scaler(parts), clip=0.5), lambda _: None)
    assert parts.order[4:] == [
        "backward",
        "unscale",
        "clip parameters 0.5",
        "scaled step",
        "update",
    ]


def test_a_loss_scale_that_moves_on_loaded_batches_is_remarked(make_context, target):
    parts = Parts()
    scales = [8.0] * (2 + 8 + 5) + [4.0]
    measurement, _ = measure_training(
        make_context(iterations=8, warmup=2),
        target,
        make_step(parts, scaler=Scaler(parts, scales=scales)),
        batch_size=None,
        loader=Loader(given=[("x", "y")] * 20),
    )
    assert measurement.remarks == (
        (
            "loss scale moved on the loader's batches: 8.0 → 4.0; a step that was "
            "skipped is shorter"
        ),
    )


@pytest.mark.parametrize(
    ("aside_us", "told"), [(0, True), (190, True), (210, False), (5000, False)]
)
def test_phases_that_are_not_the_step_are_left_out(
    make_context, make_clock, target, by_name, aside_us, told
):
    clock = make_clock(step=0)
    parts = Parts()
    parts.backward = lambda: setattr(clock, "now", clock.now + 10_000_000)
    device = Streams(clock, aside_us * 1000)
    measurement, _ = measure_training(
        make_context(device=device, iterations=2, warmup=1),
        target,
        make_step(parts),
        batch_size=None,
    )
    values = by_name(measurement)
    assert values["step_time"] == pytest.approx((0.01 + aside_us / 1e6,) * 2)
    assert ("phase:backward" in values) is told
    if not told:
        share = aside_us / (10_000 + aside_us)
        assert measurement.remarks == (
            (
                f"no phases: they leave {share:.0%} of the step over; part of the work is "
                "on another stream"
            ),
        )


def test_torch_itself(make_context, target, by_name):
    torch = pytest.importorskip("torch")
    model = torch.nn.Linear(4, 2)
    before = model.weight.detach().clone()
    step = Step(
        model=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
        loss_fn=torch.nn.functional.mse_loss,
        batch=(torch.ones(3, 4), torch.zeros(3, 2)),
        autocast=torch.bfloat16,
        scaler=torch.amp.GradScaler("cpu"),
        clip=1e-3,
    )
    context = make_context(device=CpuDevice(), iterations=3, warmup=1)
    measurement, loss = measure_training(context, target, step, batch_size=3)
    assert set(by_name(measurement)) >= {f"phase:{phase}" for phase in PHASES}
    assert not loss.requires_grad
    moved = (model.weight.detach() - before).norm()
    assert 0 < moved <= 6 * 0.1 * 1e-3 * 1.01  # clipped in each of at most six steps


def test_a_model_without_parameters_computes_on_the_cpu():
    torch = pytest.importorskip("torch")
    parts = Parts()
    parts.parameters = lambda: iter(())
    step = make_step(parts, autocast=torch.bfloat16)
    assert step.device_type() == "cpu"


def test_a_flushed_cache_means_nothing_for_a_step(make_context, target):
    context = make_context(cache="flush")
    with pytest.raises(UsageError, match="cache='flush' means nothing for a training"):
        measure_training(context, target, make_step(Parts()), batch_size=None)


@pytest.mark.parametrize(
    ("aside_us", "busy_s", "share"),
    [
        (1_000, 0.001, 10 / 11),  # the GPU is soon done: the host decides
        (90_000, 0.001, 0.1),
        (1_000, 0.0, None),  # no trace, as on a CPU
    ],
)
def test_a_step_may_be_bound_by_the_host(
    make_context, make_clock, target, monkeypatch, aside_us, busy_s, share
):
    clock = make_clock(step=0)
    parts = Parts()
    parts.backward = lambda: setattr(clock, "now", clock.now + 10_000_000)
    monkeypatch.setattr(
        training, "counted", lambda *_, **__: Counted(kernels_busy_s=busy_s)
    )
    measurement, _ = measure_training(
        make_context(device=Streams(clock, aside_us * 1000), iterations=2, warmup=1),
        target,
        make_step(parts),
        batch_size=None,
    )
    assert measurement.enqueue_share == pytest.approx(share)
    bound = [one for one in measurement.remarks if one.startswith("host-bound: 91%")]
    assert len(bound) == (share is not None and share > 0.8)


def test_of_a_planted_slowdown_nobody_says_what_the_host_did(make_context, target):
    context = make_context(iterations=2, warmup=1, slowdown=0.5)
    measurement, _ = measure_training(
        context, target, make_step(Parts()), batch_size=None
    )
    assert measurement.enqueue_share is None
