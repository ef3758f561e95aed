import sys

import pytest

from pytest_perfgate.measure.cpu import CpuDevice
from pytest_perfgate.measure.memory import MemoryUse
from pytest_perfgate.workloads.inference import (
    Work,
    inference_mode,
    measure_inference,
)


def test_any_callable_is_a_model(make_context, make_fake, target, by_name):
    law = {"seconds": 0.002, "device": 0.5, "peak_memory": 4096}
    context = make_context(
        device=make_fake(benchmarks={"*": law}), iterations=5, warmup=2
    )
    measurement, output = measure_inference(
        context, target, sum, ([1, 2],), Work(batch_size=8)
    )
    values = by_name(measurement)
    assert values["latency"] == (0.002,) * 5
    assert values["device_time"] == (0.001,) * 5
    assert values["throughput"] == pytest.approx((4000.0,))
    assert values["peak_memory"] == (4096.0,)
    assert measurement.plan.batch_size == 8
    assert output == 3


@pytest.mark.parametrize(
    ("work", "unit", "value"),
    [
        (Work(batch_size=2), "items/s", 2000.0),
        (Work(tokens=30), "tokens/s", 30_000.0),
        (Work(batch_size=2, tokens=30), "tokens/s", 30_000.0),
    ],
)
def test_throughput_counts_what_is_known(make_context, target, work, unit, value):
    context = make_context(iterations=5, warmup=2)
    measurement, _ = measure_inference(context, target, sum, ([1],), work)
    (found,) = [s for s in measurement.samples if s.metric.name == "throughput"]
    assert found.metric.unit == unit
    assert found.values == pytest.approx((value,))


def test_without_known_work_there_is_no_throughput(make_context, target, by_name):
    context = make_context(iterations=5, warmup=2)
    measurement, _ = measure_inference(context, target, sum, ([1],), Work())
    assert "throughput" not in by_name(measurement)


def test_without_torch_there_is_no_mode_to_enter(monkeypatch):
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    with inference_mode():
        assert "torch" not in sys.modules


def test_a_torch_model_runs_in_inference_mode(make_context, target, by_name):
    torch = pytest.importorskip("torch")
    model = torch.nn.Linear(4, 2)
    context = make_context(device=CpuDevice(), iterations=3, warmup=1)
    measurement, output = measure_inference(
        context, target, model, (torch.ones(3, 4),), Work(batch_size=3)
    )
    assert output.is_inference()
    assert output.shape == (3, 2)
    assert not torch.is_inference_mode_enabled()
    assert set(by_name(measurement)) >= {"latency", "cpu_time", "throughput"}
    assert measurement.plan.threads == torch.get_num_threads()


def test_memory_is_taken_with_no_earlier_output_alive(make_context, target):
    class Output:
        alive = 0

        def __init__(self):
            Output.alive += 1

        def __del__(self):
            Output.alive -= 1

    seen = []

    class Device(CpuDevice):
        def peak_memory(self, call):
            def watched():
                call()
                seen.append(Output.alive)

            watched()
            watched()
            return MemoryUse(values={"host_peak_memory": 1}, remarks=("odd",))

    context = make_context(device=Device(), iterations=3, warmup=1)
    measurement, _ = measure_inference(context, target, Output, (), Work())
    assert seen == [1, 1]
    assert measurement.remarks[-1:] == ("odd",)
