"""What both sides of a pair need of a GPU, and who goes first."""

from types import SimpleNamespace

import pytest

from pytest_perfgate.campaign import pair_launch
from pytest_perfgate.campaign.doors import Order
from pytest_perfgate.campaign.hub import Side
from pytest_perfgate.campaign.pair_launch import PairLauncher
from pytest_perfgate.measured import Measurement, Metric, Plan, Samples
from pytest_perfgate.store import encode_measurement

GIB = 2**30
RESERVED = Metric(name="reserved_memory", unit="B")


def measured(reserved, benchmark="a.py::a"):
    return {
        "kind": "measured",
        "measurement": encode_measurement(
            Measurement(
                benchmark=benchmark,
                nodeid=benchmark,
                run=1,
                plan=Plan(iterations=7, warmup=3),
                samples=(Samples(metric=RESERVED, values=(float(reserved),)),),
            )
        ),
    }


def environment(gib):
    hardware = {"gpu_memory_gib": gib}
    return {"kind": "environment", "environment": {"hardware": hardware}}


class Launcher:
    """Prepares nothing but what it was asked."""

    def __init__(self, *, on_gpu):
        self.on_gpu = on_gpu
        self.timeouts = {}

    def next_part(self, run):
        del run
        return 1

    def prepare(self, order, *, part, half):
        del part
        return SimpleNamespace(order=order, half=half)


@pytest.fixture
def pairs(monkeypatch):
    """Run pairs whose workers say what the test says they say."""

    class Pairs:
        def __init__(self):
            self.made, self.notes = [], []
            self.says = []

        def launcher(self, *, on_gpu=False, in_turns=True):
            return PairLauncher(
                Launcher(on_gpu=on_gpu),
                SimpleNamespace(),
                in_turns=in_turns,
                note=self.notes.append,
            )

        def whole(self, launch, *, timeouts, on_record, until):
            del timeouts, until
            self.made.append((str(launch.half.side), launch.order.plans))
            for record in self.says:
                on_record(record)
            return "ended"

        def together(self, launches, *, hub, timeouts, on_record, until):
            del timeouts, on_record, until
            hub.close()
            self.made.append(("turns", [str(side) for side in launches]))
            return dict.fromkeys(launches, "ended")

    found = Pairs()
    monkeypatch.setattr(pair_launch, "run_worker", found.whole)
    monkeypatch.setattr(pair_launch, "run_pair", found.together)
    return found


def order(run=1):
    return Order(
        run=run, wanted=("a.py::a",), seed=0, alone=False, plans={}, iterations={}
    )


def start(launcher, run=1):
    return launcher(order(run), on_record=lambda side, record: None, until=None)


def test_who_goes_first_changes_from_run_to_run(pairs):
    launcher = pairs.launcher()
    ends = [start(launcher, run) for run in (1, 2)]
    assert pairs.made == [
        ("turns", ["candidate", "base"]),
        ("turns", ["base", "candidate"]),
    ]
    assert ends == [dict.fromkeys(Side, "ended")] * 2


def test_of_whole_runs_the_second_measures_as_the_first_did(pairs):
    pairs.says = [measured(0)]
    launcher = pairs.launcher(in_turns=False)
    start(launcher)
    plan = {"a.py::a": Plan(iterations=7, warmup=3)}
    assert pairs.made == [("candidate", {}), ("base", plan)]


def test_on_a_gpu_the_first_pair_finds_out_whether_both_fit(pairs):
    pairs.says = [measured(20 * GIB), environment(80)]
    launcher = pairs.launcher(on_gpu=True)
    start(launcher, 1)
    start(launcher, 2)
    assert [what for what, _ in pairs.made] == ["candidate", "base", "turns"]
    assert pairs.notes == []


def test_two_models_that_do_not_fit_together_never_meet(pairs):
    pairs.says = [measured(20 * GIB), measured(50 * GIB, "a.py::b"), environment(80)]
    launcher = pairs.launcher(on_gpu=True)
    start(launcher, 1)
    start(launcher, 2)
    assert "turns" not in [what for what, _ in pairs.made]
    (note,) = pairs.notes
    assert "102 GiB of the GPU's 80.0 GiB" in note
    assert "--perfgate-interleave run" in note


def test_where_nothing_is_known_of_its_memory_turns_are_taken(pairs):
    pairs.says = [measured(50 * GIB)]
    launcher = pairs.launcher(on_gpu=True)
    start(launcher, 1)
    assert launcher.in_turns
    assert pairs.notes == []
