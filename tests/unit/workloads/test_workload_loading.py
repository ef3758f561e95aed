"""What loading data costs: the loader alone, and steps on what it brings."""

import random
import types

import pytest

from pytest_perfgate.errors import BadSample, UsageError
from pytest_perfgate.measure.cpu import CpuDevice
from pytest_perfgate.workloads.loading import (
    FIRST,
    Job,
    Loader,
    measure_loading,
    shapes,
)
from pytest_perfgate.workloads.training import Step, measure_training
from tests.parts import Parts


class Net(Parts):
    """Keeps what it was trained on."""

    def __init__(self, log=None, loss=1.0):
        self.log = [] if log is None else log
        self.loss = loss

    def __call__(self, batch):
        self.log.append(batch)
        return self

    def detach(self):
        return self.loss(self.log[-1]) if callable(self.loss) else self.loss


LAW = {"seconds": 0.010, "parts": {"loader": 0.5}}


@pytest.fixture
def train(make_context, make_fake, target):
    """Measure a training step whose batches come from a loader."""

    def train(
        loader, *, net=None, law=LAW, batch=("x", "y"), batch_size=None, **changes
    ):
        net = net or Net()
        step = Step(model=net, optimizer=net, loss_fn=lambda *_: net, batch=batch)
        fields = {
            "iterations": 8,
            "warmup": 2,
            "device": make_fake(benchmarks={"*": law}),
        }
        return measure_training(
            make_context(**(fields | changes)),
            target,
            step,
            batch_size=batch_size,
            loader=None if loader is None else Loader(given=loader),
        )[0]

    return train


BATCHES = [(f"x{index}", "y") for index in range(30)]


# -- the numbers


def test_the_share_of_loading_is_what_steps_take_longer(train, by_name):
    found = by_name(train(BATCHES, batch_size=26))
    assert found["step_time"] == pytest.approx((0.010,) * 8)  # as without a loader
    assert found["loader_wait"] == pytest.approx((0.005,) * 8)
    assert found["data_share"] == pytest.approx((1 / 3,))
    assert found["loader_rate"] == pytest.approx((26 / 0.005,))


def test_without_the_number_of_items_batches_are_counted(train):
    units = {s.metric.name: s.metric.unit for s in train(BATCHES).samples}
    assert units["loader_rate"] == "batches/s"
    units = {s.metric.name: s.metric.unit for s in train(BATCHES, batch_size=1).samples}
    assert units["loader_rate"] == "items/s"


def test_without_a_loader_there_is_nothing_of_it(train, by_name):
    measurement = train(None)
    assert not {"loader_wait", "loader_rate", "data_share"} & set(by_name(measurement))
    assert measurement.remarks == ()


def test_a_planted_slowdown_reaches_the_loader_too(train, by_name):
    found = by_name(train(BATCHES, slowdown=0.5))
    assert found["loader_wait"] == pytest.approx((0.0075,) * 8)
    assert found["data_share"] == pytest.approx((1 / 3,))


def test_a_loader_that_is_never_waited_for_has_no_share(make_context):
    job = Job(batch=0, batch_size=4, train=lambda _: 5, step_s=1.0, most=9)
    context = make_context(device=CpuDevice(clock=lambda: 0))  # too coarse to see it
    found = measure_loading(context, "b", Loader(given=list(range(20))), job)
    values = {series.metric.name: series.values for series in found.series}
    assert values == {"data_share": (0.0,), "loader_wait": (0.0,) * 9}  # no rate
    job = Job(batch=0, batch_size=4, train=lambda _: 0, step_s=1.0, most=2)
    found = measure_loading(context, "b", Loader(given=list(range(20))), job)
    assert found.series[0].values == (0.0,)


def test_the_wait_of_a_run_on_the_cpu_is_wall_time(make_context, make_clock):
    clock = make_clock(step=0)

    def batches():
        for _ in range(20):
            clock.now += 3_000
            yield 0

    def step(_):
        clock.now += 1_000
        return 1_000

    job = Job(batch=0, batch_size=None, train=step, step_s=1e-6, most=5)
    context = make_context(device=CpuDevice(clock=clock))
    found = measure_loading(context, "b", Loader(given=batches), job)
    values = {series.metric.name: series.values for series in found.series}
    assert values["loader_wait"] == pytest.approx((3e-6,) * 5)
    assert values["data_share"] == pytest.approx((0.75,))
    assert values["loader_rate"] == pytest.approx((1 / 3e-6,))


def test_copies_that_the_loader_left_to_the_device_are_in_its_rate(
    make_context, make_clock
):
    clock = make_clock(step=0)

    class Device(CpuDevice):
        behind_ns = 0

        def synchronize(self):
            clock.now += self.behind_ns
            self.behind_ns = 0

    device = Device(clock=clock)

    def batches():
        for _ in range(4):
            clock.now += 1_000
            device.behind_ns += 9_000
            yield 0

    job = Job(batch=0, batch_size=None, train=lambda _: 1, step_s=1e-6, most=2)
    found = measure_loading(
        make_context(device=device), "b", Loader(given=batches), job
    )
    (rate,) = (s.values for s in found.series if s.metric.name == "loader_rate")
    assert rate == pytest.approx((2 / (2 * 1e-6 + 4 * 9e-6),))


# -- how much is drawn


def drawn_from(batches, log):
    def source():
        log.append("begin")
        for batch in batches:
            log.append(batch)
            yield batch

    return source


def test_it_is_gone_through_alone_and_then_with_training(train):
    log, net = [], Net()
    train(drawn_from(BATCHES, log), net=net)
    each = FIRST + 8
    assert log == ["begin", *BATCHES[:each]] * 2
    fixed, loaded = ["x"] * (len(net.log) - each), [x for x, _ in BATCHES[:each]]
    assert net.log == [*fixed, *loaded]  # all timing and all counting is over


def test_it_takes_no_longer_than_what_was_timed(train, by_name):
    # 2 + n batches of 15 ms, where half of 0.3 s is allowed; alone they take 5 ms
    log = []
    found = by_name(train(drawn_from(BATCHES * 9, log), iterations=99, max_time_s=0.3))
    assert len(found["loader_wait"]) == 10
    assert log.count("begin") == 2
    assert len(log) == 2 + (2 + 30) + (2 + 10)


def test_a_slow_loader_brings_four_batches(train, by_name):
    law = {"seconds": 0.010, "parts": {"loader": 1e4}}
    assert by_name(train(BATCHES, law=law))["loader_wait"] == (100.0, 100.0)


@pytest.mark.parametrize("count", [0, 1, 3])
def test_fewer_than_four_say_nothing(train, by_name, count):
    measurement = train(BATCHES[:count])
    assert not {"loader_wait", "loader_rate", "data_share"} & set(by_name(measurement))
    assert measurement.remarks == (
        (
            f"no figures of the loader: it has {count} batches, and fewer than 4 say "
            "nothing, since the first 2 start it"
        ),
    )


def test_a_short_loader_is_begun_again_which_is_said(train, by_name):
    log = []
    measurement = train(drawn_from(BATCHES[:4], log))
    assert len(by_name(measurement)["loader_wait"]) == 8
    assert log.count("begin") == 2 * 3
    assert measurement.remarks == (
        "the loader ended and was begun again, which is in its figures",
    )


def test_what_beginning_again_takes_is_a_wait(make_context, make_clock):
    clock = make_clock(step=0)

    def batches():
        clock.now += 50_000
        yield from range(5)

    job = Job(batch=0, batch_size=None, train=lambda _: 1, step_s=1e-9, most=6)
    context = make_context(device=CpuDevice(clock=clock))
    found = measure_loading(context, "b", Loader(given=batches), job)
    (waits,) = (s.values for s in found.series if s.metric.name == "loader_wait")
    assert waits == pytest.approx((0, 0, 0, 50e-6, 0, 0))


def test_a_loader_that_is_empty_the_second_time_is_refused(train):
    once = iter(BATCHES)
    with pytest.raises(UsageError, match="brought batches once and then none"):
        train(lambda: once, iterations=len(BATCHES))


# -- what a loader may be


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (iter(BATCHES), r"loader=<list_iterator.*once, and it is twice; pass the func"),
        ((batch for batch in BATCHES), r"loader=<generator.*not loader=batches\(\)"),
        (5, r"loader=5 brings no batches; pass a DataLoader, a list"),
    ],
)
def test_what_cannot_be_gone_through_again_is_refused(given, told):
    with pytest.raises(UsageError, match=told):
        Loader(given=given)


def test_a_function_that_gives_no_batches_is_refused():
    with pytest.raises(UsageError, match=r"loader\(\) gave 5, which brings no batches"):
        Loader(given=lambda: 5).fresh()


class Indexed:
    """Batches by number, as the oldest protocol has it."""

    def __getitem__(self, index):
        return BATCHES[index]


@pytest.mark.parametrize(
    "given", [BATCHES, lambda: BATCHES, lambda: iter(BATCHES), Indexed()]
)
def test_what_can_be_is_begun_from_the_start(given):
    loader = Loader(given=given)
    assert [next(loader.fresh()) for _ in range(2)] == BATCHES[:1] * 2


def test_a_pass_that_is_left_is_closed(train):
    closed = []

    def batches():
        try:
            yield from BATCHES
        finally:
            closed.append(1)

    train(batches)
    assert closed == [1, 1]


# -- what goes wrong


def test_an_error_of_the_loader_is_the_benchmark_s_and_says_where(train):
    def batches():
        yield from BATCHES[:5]
        raise OSError("no such shard")

    with pytest.raises(OSError, match="no such shard") as caught:
        train(batches)
    assert caught.value.__notes__ == [
        (
            "perfgate: drawing batch 5 of the loader, alone, after the step itself was "
            "timed"
        )
    ]


def test_an_error_of_the_step_on_a_batch_says_so(train):
    class Picky(Net):
        def __call__(self, batch):
            if batch == "x3":
                raise ValueError("on another device")
            return self

    with pytest.raises(ValueError, match="another device") as caught:
        train(BATCHES, net=Picky())
    assert caught.value.__notes__ == [
        (
            "perfgate: training on batch 4 of the loader, with training, after the step "
            "itself was timed"
        )
    ]


def test_a_batch_of_three_parts_is_the_loader_s(train):
    with pytest.raises(
        UsageError, match=r"loader brings what is no batch.*has 3 parts"
    ):
        train([(1, 2, 3)] * 9)


def test_a_loss_that_is_not_finite_on_loaded_batches_is_an_error(train):
    net = Net(loss=lambda batch: 1.0 if batch == "x" else float("nan"))
    with pytest.raises(BadSample, match="on the loader's batches: the loss is nan"):
        train(BATCHES, net=net)


# -- steps on other shapes are other work


def tensor(*shape):
    return types.SimpleNamespace(shape=shape, dtype="float32")


def test_shapes_do_not_ask_what_holds_them():
    pair = (tensor(2, 3), tensor(2))
    assert shapes(pair) == shapes(list(pair)) == shapes({"x": pair[0], "y": pair[1]})
    assert shapes([pair, [pair]]) == shapes(pair) * 2
    assert shapes(tensor(2, 3)) == ("SimpleNamespace[2, 3]:float32",)


def test_a_batch_of_another_shape_is_no_part_of_the_share(train, by_name):
    full, short = (tensor(8), "y"), (tensor(2), "y")
    measurement = train([full, full, full, short], batch=full)
    assert by_name(measurement)["data_share"] == pytest.approx((1 / 3,))
    assert measurement.remarks[0] == (
        "data_share leaves some batches out: the loader brings "
        "SimpleNamespace[2]:float32, str, batch= has SimpleNamespace[8]:float32, str"
    )


def test_if_no_batch_is_like_the_timed_one_there_is_no_share(train, by_name):
    measurement = train([(tensor(8), "y")] * 30, batch=(tensor(2), "y"))
    values = by_name(measurement)
    assert "data_share" not in values
    assert set(values) >= {"loader_wait", "loader_rate"}
    (remark,) = measurement.remarks
    assert remark.startswith("no data_share: the loader brings SimpleNamespace[8]")


# -- beside what is timed


def test_both_runs_have_the_benchmark_s_random_numbers(train):
    seen = []

    def batches():
        seen.append(random.random())  # noqa: S311 (no secret)
        return BATCHES

    random.seed(5)
    before = random.getstate()
    train(batches)
    assert seen[0] == seen[1]
    assert random.getstate() == before


def test_in_a_pair_it_comes_after_the_last_turn(train, make_other_side):
    side, turns = make_other_side(), []

    def batches():
        turns.append(side.turns)
        return BATCHES

    train(batches, pair=side, iterations=40)
    assert set(turns) == {side.turns}
    assert side.turns > 2


# -- torch's own


@pytest.fixture
def make_loader():
    torch = pytest.importorskip("torch")
    data = torch.utils.data

    def make(count=80, **options):
        dataset = data.TensorDataset(torch.randn(count, 4), torch.zeros(count, 2))
        return data.DataLoader(dataset, batch_size=8, shuffle=True, **options)

    return make


def test_torch_s_own_loader(make_context, target, by_name, make_loader):
    torch = pytest.importorskip("torch")
    model = torch.nn.Linear(4, 2)
    step = Step(
        model=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.01),
        loss_fn=torch.nn.functional.mse_loss,
        batch=(torch.ones(8, 4), torch.zeros(8, 2)),
    )
    measurement, _ = measure_training(
        make_context(device=CpuDevice(), iterations=20, warmup=3),
        target,
        step,
        batch_size=8,
        loader=Loader(given=make_loader()),
    )
    values = by_name(measurement)
    assert 0 <= values["data_share"][0] < 1
    assert min(values["loader_wait"]) > 0
    assert measurement.remarks == (
        "loader: num_workers=0, persistent_workers=False, pin_memory=False",
        "the loader ended and was begun again, which is in its figures",
    )


@pytest.mark.parametrize(
    ("options", "settings", "advised"),
    [
        ({"num_workers": 2}, "num_workers=2, persistent_workers=False", True),
        (
            {"num_workers": 2, "persistent_workers": True},
            "num_workers=2, persistent_workers=True",
            False,
        ),
        ({}, "num_workers=0, persistent_workers=False", False),
    ],
)
def test_workers_that_start_anew_are_advised_on(
    make_context, make_loader, monkeypatch, options, settings, advised
):
    loader = make_loader(**options)
    # no processes here: what matters is what it says of itself
    monkeypatch.setattr(type(loader), "__iter__", lambda _: iter(range(5)))
    job = Job(batch=0, batch_size=None, train=lambda _: 1, step_s=1e-9, most=9)
    found = measure_loading(
        make_context(device=CpuDevice()), "b", Loader(given=loader), job
    )
    told, again = found.remarks
    assert told == f"loader: {settings}, pin_memory=False"
    assert again.endswith("persistent_workers=True keeps them") is advised
