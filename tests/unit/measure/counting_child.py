"""Counts torch code in a process of its own; prints measurements as JSON."""

import json
import sys

import torch  # noqa: TID253 (what this process is for)

from pytest_perfgate.measure.context import MeasureContext
from pytest_perfgate.measure.counters import trace_of
from pytest_perfgate.measure.cpu import CpuDevice
from pytest_perfgate.store import encode_measurement
from pytest_perfgate.workloads.call import measure_call
from pytest_perfgate.workloads.generation import measure_generation
from pytest_perfgate.workloads.inference import Work, measure_inference
from pytest_perfgate.workloads.target import Target
from pytest_perfgate.workloads.training import Step, measure_training

X = torch.ones(8, 16)
CONTEXT = MeasureContext(
    device=CpuDevice(),
    run=1,
    seed=0,
    max_time_s=0.05,
    iterations=8,
    warmup=4,
    inner_loop=1,
    plans={},
    slowdown=0.0,
    emit=print,
    note=print,
    alone=False,
    wants_p99=False,
    between_blocks=None,
)
FOUND = {}


def keep(name, measured):
    measurement, result = measured
    FOUND[name] = encode_measurement(measurement)
    return result


def call(name, function, *args):
    CONTEXT.breaks.open()
    target = Target(nodeid="a.py::b", benchmark="a.py::b")
    return keep(name, measure_call(CONTEXT, target, function, args, {}))


def compiled(body):
    return torch.compile(body, backend="eager", dynamic=False)


def doubling(shape_at):
    """Recompile when the so many-th call brings another shape."""
    double = compiled(lambda x: x * 2)
    calls = []

    def step():
        calls.append(1)
        return double(X[:4] if len(calls) == shape_at else X)

    return step


def smooth(x):
    return x.relu().neg()


def broken(x):
    y = x.relu()
    torch._dynamo.graph_break()
    return y + 1


def broken_first(x):
    torch._dynamo.graph_break()
    return x.relu() + 1


class Random:
    """Does other work at each call."""

    calls = 0

    def __call__(self):
        self.calls += 1
        return [X + 1 for _ in range(self.calls)]


def moody():
    """Work while it is timed, and fail when it is counted."""
    moody.calls += 1
    if moody.calls > 12:
        raise OSError("no more")
    return X + 1


moody.calls = 0


def training(name):
    model = torch.nn.Linear(16, 4)
    optimizer = torch.optim.Adam(model.parameters())
    step = Step(
        model=model,
        optimizer=optimizer,
        loss_fn=lambda y: y.square().mean(),
        batch={"input": X},
    )
    target = Target(nodeid="a.py::b", benchmark="a.py::b")
    keep(name, measure_training(CONTEXT, target, step, batch_size=8))


def main():
    target = Target(nodeid="a.py::b", benchmark="a.py::b")
    call("python", sum, range(9))
    before = "torch._dynamo" in sys.modules
    call("plain", smooth, X)
    keep("inference", measure_inference(CONTEXT, target, smooth, (X,), Work()))
    keep(
        "generation",
        measure_generation(
            CONTEXT, target, lambda n: [X.argmax() + i for i in range(n)], [3]
        ),
    )
    free_of_compiler = not before and "torch._dynamo" not in sys.modules
    training("training")
    training("training again")
    call("steady", doubling(shape_at=0))
    call("recompiled", doubling(shape_at=9))
    once = compiled(smooth)
    call("whole", once, X)
    region = trace_of(lambda: once(X), on_gpu=False).compiled
    call("whole again", once, X)
    call("broken", compiled(broken), X)
    call("broken first", compiled(broken_first), X)
    call("random", Random())
    call("moody", moody)
    call("python beside a compiler", sum, range(9))
    sys.stdout.write(
        json.dumps(
            {
                "measurements": FOUND,
                "still compiled": sorted(region),
                "free of the compiler": free_of_compiler,
            }
        )
    )


if __name__ == "__main__":
    main()
