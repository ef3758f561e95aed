"""Counts torch code in a process of its own; prints measurements as JSON."""

import json
import sys

import torch  # noqa: TID253 (what this process is for)

from pytest_perfgate.measure.context import MeasureContext
from pytest_perfgate.measure.cpu import CpuDevice
from pytest_perfgate.measure.profiling import trace_of
from pytest_perfgate.store import encode_measurement
from pytest_perfgate.workloads.call import measure_call
from pytest_perfgate.workloads.generation import measure_generation
from pytest_perfgate.workloads.inference import Work, measure_inference
from pytest_perfgate.workloads.rounds import Rounds
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


def loop(name, function, *args):
    """Measure a call as the body of a loop, in a stage."""
    CONTEXT.breaks.open()
    target = Target(nodeid="a.py::b", benchmark="a.py::b")
    rounds = Rounds(CONTEXT, target, done=lambda found: keep(name, (found, None)))
    for _ in rounds:
        with rounds.stage("all"):
            function(*args)


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


def training(name, loss_fn=lambda y: y.square().mean(), **changes):
    model = torch.nn.Linear(16, 4)
    optimizer = torch.optim.Adam(model.parameters())
    step = Step(
        model=model,
        optimizer=optimizer,
        loss_fn=loss_fn,
        batch={"input": X},
        **changes,
    )
    target = Target(nodeid="a.py::b", benchmark="a.py::b")
    keep(name, measure_training(CONTEXT, target, step, batch_size=8))


def loss_read(y):
    loss = y.square().mean()
    loss.item()
    return loss


def flops():
    """By case: what our formulas and torch's own say."""
    from torch.utils.flop_counter import FlopCounterMode

    from pytest_perfgate.measure.operators import dispatched

    layers = torch.nn.Sequential(
        torch.nn.Linear(64, 37), torch.nn.ReLU(), torch.nn.Linear(37, 5)
    )
    conv = torch.nn.Conv2d(4, 8, 3)
    grouped = torch.nn.Conv2d(4, 8, 3, groups=2)
    transposed = torch.nn.ConvTranspose1d(4, 6, 3, groups=2)
    batch, image = torch.ones(8, 64), torch.ones(2, 4, 10, 9)
    row = torch.ones(2, 4, 10)
    cases = {
        "layers": lambda: layers(batch),
        "layers trained": lambda: layers(batch).sum().backward(),
        "batched": lambda: torch.ones(3, 4, 5) @ torch.ones(3, 5, 6),
        "added": lambda: torch.baddbmm(
            torch.ones(3, 4, 6), torch.ones(3, 4, 5), torch.ones(3, 5, 6)
        ),
        "convolution": lambda: conv(image),
        "convolution trained": lambda: conv(image).sum().backward(),
        "grouped": lambda: grouped(image),
        "transposed": lambda: transposed(row),
    }
    found = {}
    for name, case in cases.items():
        ours = dispatched(case).flops.total
        with FlopCounterMode(display=False) as theirs:
            case()
        found[name] = ours, theirs.get_total_flops()
    return found


def hidden():
    """By case: which operators have no formula, then uncompiled and unfused."""
    from pytest_perfgate.measure.operators import dispatched, uncompiled

    layer = torch.nn.TransformerEncoderLayer(16, 2, batch_first=True).eval()
    lstm = torch.nn.LSTM(16, 16)
    query = torch.ones(2, 4, 16, 8)

    def attention():
        return torch.nn.functional.scaled_dot_product_attention(query, query, query)

    found = {}
    with torch.inference_mode():
        for name, case in {
            "attention": attention,
            "transformer": lambda: layer(torch.ones(2, 5, 16)),
            "lstm": lambda: lstm(torch.ones(3, 2, 16)),
        }.items():
            fused = dispatched(case).flops
            with uncompiled():
                plain = dispatched(case).flops
            found[name] = {
                "fused": sorted(fused.unknown),
                "plain": sorted(plain.unknown),
                "flops": plain.total,
            }
    return found | {"restored": torch.backends.mha.get_fastpath_enabled()}


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
    loop("loop", smooth, X)
    loop("loop python", sum, range(9))
    free_of_compiler = not before and "torch._dynamo" not in sys.modules
    training("training")
    training("training again")
    training("training, scaled", scaler=torch.amp.GradScaler("cpu"))
    training("training, loss read", loss_read)
    call("steady", doubling(shape_at=0))
    call("recompiled", doubling(shape_at=9))
    once = compiled(smooth)
    call("whole", once, X)
    loop("loop compiled", once, X)
    region = trace_of(lambda: once(X), on_gpu=False).compiled
    call("whole again", once, X)
    call("broken", compiled(broken), X)
    call("broken first", compiled(broken_first), X)
    lstm = torch.nn.LSTM(16, 16)
    call("lstm", lambda: lstm(X))
    layer = torch.nn.Linear(16, 4)

    def autocast():
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return layer(X)

    call("autocast inside", autocast)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        call("autocast outside", lambda: layer(X))
    call("random", Random())
    loop("loop random", Random())
    call("moody", moody)
    call("python beside a compiler", sum, range(9))
    sys.stdout.write(
        json.dumps(
            {
                "measurements": FOUND,
                "still compiled": sorted(region),
                "free of the compiler": free_of_compiler,
                "hidden": hidden(),
                "flops": flops(),
            }
        )
    )


if __name__ == "__main__":
    main()
