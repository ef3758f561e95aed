"""The adaptive loop, driven by workers that are played."""

import pytest

from pytest_perfgate.campaign.doors import Doors
from pytest_perfgate.campaign.ledger import ENDED_SESSION, Ledger
from pytest_perfgate.campaign.manager import Campaign
from pytest_perfgate.campaign.worker_process import WorkerEnd
from pytest_perfgate.errors import MeasurementError
from pytest_perfgate.measured import METRICS, Health, Measurement, Plan, Samples
from pytest_perfgate.model import Reason
from pytest_perfgate.settings import ItemSettings
from pytest_perfgate.store import encode_measurement


def own(nodeid, *, isolate=False):
    return ItemSettings(
        nodeid=nodeid,
        budget=None,
        limit=None,
        metrics=None,
        gate=True,
        isolate=isolate,
        counts=None,
        iterations=None,
        max_time_s=1.0,
        warmup=None,
        timeout_s=10.0,
        seed=0,
        inner_loop=1,
    )


def measured(nodeid, run, *, disturbed=False, unfit=None, iterations=10):
    measurement = Measurement(
        benchmark=nodeid,
        nodeid=nodeid,
        run=run,
        plan=Plan(iterations=iterations, warmup=1),
        samples=(Samples(metric=METRICS["latency"], values=(1.0,) * iterations),),
        health=Health(
            disturbed=disturbed, unfit=unfit, evidence=("busy",) if disturbed else ()
        ),
    )
    return {"kind": "measured", "measurement": encode_measurement(measurement)}


def report(nodeid, when, outcome="passed", longrepr=None):
    data = {"when": when, "outcome": outcome, "longrepr": longrepr}
    return {"kind": "report", "nodeid": nodeid, "report": data}


class Workers:
    """Plays workers: `script[nodeid]` says what happens in its n-th run."""

    def __init__(self, **script):
        self.script = script
        self.orders = []
        self.slept = []
        self.time = 0.0

    def __call__(self, order, *, on_record, until):
        self.orders.append(order)
        for nodeid in order.wanted:
            on_record({"kind": "open", "nodeid": nodeid})
            deed = self.script.get(nodeid, {}).get(order.run, "measure")
            self.time += 1.0
            if until is not None and self.time > until:
                return self.end(open_item=nodeid, out_of_time=True)
            if deed in {"crash", "hang"}:
                return self.end(open_item=nodeid, timed_out=deed == "hang")
            self.play(deed, nodeid, order.run, on_record)
            on_record({"kind": "close", "nodeid": nodeid})
            if deed == "then die":
                return self.end()
            if deed == "quit":
                return self.end(finished=True)
        return self.end(finished=True)

    def sleep(self, seconds):
        self.slept.append(seconds)
        self.time += seconds

    def play(self, deed, nodeid, run, on_record):
        on_record(report(nodeid, "setup"))
        if deed == "quit":
            return
        if deed == "skip":
            on_record(report(nodeid, "call", "skipped", ["a.py", 1, "Skipped"]))
        elif deed == "raise":
            on_record(measured(nodeid, run))
            on_record(report(nodeid, "call", "failed", "boom"))
        else:
            unfit = Reason.THROTTLED if deed == "throttle" else None
            on_record(measured(nodeid, run, disturbed=deed == "disturb", unfit=unfit))
            on_record(report(nodeid, "call"))
        on_record(report(nodeid, "teardown"))

    @staticmethod
    def end(*, open_item=None, finished=False, timed_out=False, out_of_time=False):
        return WorkerEnd(
            returncode=0 if finished else -11,
            finished=finished,
            timed_out=timed_out,
            out_of_time=out_of_time,
            open_item=open_item,
            tail="Fatal Python error: Segmentation fault",
        )


class Judge:
    """Decides a benchmark when it has so many runs."""

    def __init__(self, needs=(), flags=()):
        self.needs = dict(needs)
        self.flags = set(flags)
        self.looks = []

    def decided(self, entry, *, target, last):
        self.looks.append((entry.nodeid, target, last))
        return entry.finished or len(entry.runs) >= self.needs.get(entry.nodeid, 3)

    def flagged(self, entry):
        return entry.nodeid in self.flags

    def confirmed(self, entry):
        self.looks.append((entry.nodeid, "confirmed", len(entry.runs)))

    def plans(self, nodeid):
        return {}


class Silent:
    def run_begins(self, run, of, *, benchmarks, undecided, left_s):
        pass

    def benchmark_begins(self, nodeid):
        pass

    def done(self):
        pass


def campaign(workers, judge, nodeids, *, max_total_s=None, isolated=()):
    ledger = Ledger([own(nodeid, isolate=nodeid in isolated) for nodeid in nodeids])
    return Campaign(
        ledger,
        Doors(
            launcher=workers,
            judge=judge,
            progress=Silent(),
            clock=lambda: workers.time,
            sleep=workers.sleep,
        ),
        seed=0,
        max_total_s=max_total_s,
    )


LOOKS = (3, 6, 12)


def test_what_is_decided_gets_no_more_runs():
    workers = Workers()
    gate = campaign(workers, Judge(needs={"b": 6}), ["a", "b"])
    gate.measure(LOOKS)
    assert [len(order.wanted) for order in workers.orders] == [2, 2, 2, 1, 1, 1]
    assert [order.alone for order in workers.orders] == [False] * 3 + [True] * 3
    assert gate.cost.runs == 6


def test_every_look_is_taken_and_the_last_one_is_called_so():
    judge = Judge(needs={"a": 99})
    campaign(Workers(), judge, ["a"]).measure(LOOKS)
    assert judge.looks == [("a", 3, False), ("a", 6, False), ("a", 12, True)]


def test_runs_after_the_first_take_over_its_iterations():
    workers = Workers()
    campaign(workers, Judge(), ["a"]).measure(LOOKS)
    assert [dict(o.iterations) for o in workers.orders] == [{}, {"a": 10}, {"a": 10}]


def test_the_order_is_another_in_every_run():
    nodeids = [f"m{n}.py::t" for n in range(6)]
    workers = Workers()
    campaign(workers, Judge(), nodeids).measure(LOOKS)
    assert len({order.wanted for order in workers.orders}) == 3


def test_a_crash_costs_only_its_benchmark():
    workers = Workers(b={1: "crash"})
    gate = campaign(workers, Judge(), ["a", "b", "c"])
    gate.measure(LOOKS)
    runs = {n: sorted(e.runs) for n, e in gate.ledger.entries.items()}
    assert runs["a"] == runs["c"] == [1, 2, 3]
    assert runs["b"] == [2, 3, 4]
    (loss,) = gate.ledger.entries["b"].losses
    assert (loss.run, loss.how, "Segmentation" in loss.tail) == (1, "SIGSEGV", True)


@pytest.mark.parametrize("deed", ["crash", "hang"])
def test_the_same_loss_twice_ends_a_benchmark(deed):
    workers = Workers(a={1: deed, 2: deed})
    gate = campaign(workers, Judge(), ["a", "b"])
    gate.measure(LOOKS)
    assert gate.ledger.entries["a"].lost_for_good
    assert len(gate.ledger.entries["a"].losses) == 2
    assert len(gate.ledger.entries["b"].runs) == 3


def test_a_worker_that_dies_between_benchmarks_costs_none():
    workers = Workers(a={1: "then die"}, b={1: "then die"}, c={1: "then die"})
    gate = campaign(workers, Judge(), ["a", "b", "c"])
    gate.measure(LOOKS)
    assert all(sorted(e.runs) == [1, 2, 3] for e in gate.ledger.entries.values())


def test_a_benchmark_that_ends_the_session_costs_only_itself():
    workers = Workers(b=dict.fromkeys(range(1, 9), "quit"))
    gate = campaign(workers, Judge(), ["a", "b", "c"])
    gate.measure(LOOKS)
    assert [len(gate.ledger.entries[name].runs) for name in "abc"] == [3, 0, 3]
    assert {loss.how for loss in gate.ledger.entries["b"].losses} == {ENDED_SESSION}


def test_disturbed_runs_are_made_again_within_bounds():
    workers = Workers(a={1: "disturb", 3: "disturb"})
    gate = campaign(workers, Judge(), ["a"])
    gate.measure(LOOKS)
    entry = gate.ledger.entries["a"]
    assert entry.sound_runs == [2, 4, 5]
    assert entry.usable(3) == [2, 4, 5]


def test_where_repeating_does_not_help_disturbed_runs_are_used():
    workers = Workers(a=dict.fromkeys(range(1, 99), "disturb"))
    gate = campaign(workers, Judge(), ["a"])
    gate.measure((3,))
    entry = gate.ledger.entries["a"]
    assert len(workers.orders) == 6
    assert entry.usable(3) == [1, 2, 3]


def test_a_body_that_raised_leaves_no_timings():
    gate = campaign(Workers(a={2: "raise"}), Judge(), ["a"])
    gate.measure(LOOKS)
    entry = gate.ledger.entries["a"]
    assert sorted(entry.runs) == [1]
    assert [(f.run, f.text) for f in entry.failures] == [(2, "boom")]


def test_a_skip_needs_one_run():
    workers = Workers(a={1: "skip"})
    gate = campaign(workers, Judge(), ["a", "b"])
    gate.measure(LOOKS)
    assert [len(order.wanted) for order in workers.orders] == [2, 1, 1]
    assert gate.ledger.entries["a"].skipped_runs == [1]


def test_isolated_benchmarks_have_a_process_of_their_own():
    workers = Workers()
    campaign(workers, Judge(), ["a", "b", "c"], isolated={"b"}).measure((3,))
    first_run = [set(order.wanted) for order in workers.orders if order.run == 1]
    assert first_run == [{"a", "c"}, {"b"}]


def test_when_time_is_up_what_was_measured_stays():
    workers = Workers()
    judge = Judge()
    gate = campaign(workers, judge, ["a", "b"], max_total_s=3.5)
    gate.measure(LOOKS)
    assert gate.out_of_time
    assert sorted(len(e.runs) for e in gate.ledger.entries.values()) == [1, 2]
    assert all(last for _, _, last in judge.looks)


def test_flags_are_confirmed_by_fresh_runs_after_all_screening():
    workers = Workers()
    gate = campaign(workers, Judge(flags={"a"}), ["a", "b"])
    gate.measure(LOOKS)
    gate.confirm()
    entry = gate.ledger.entries["a"]
    assert sorted(entry.screened) == [1, 2, 3]
    assert sorted(entry.runs) == [4, 5, 6, 7, 8]
    assert gate.ledger.entries["b"].screened is None


def test_a_session_of_baselines_is_ten_runs():
    workers = Workers()
    campaign(workers, Judge(), ["a"]).record()
    assert len(workers.orders) == 10


def test_workers_that_come_to_nothing_are_shown_in_their_own_words():
    def broken(order, *, on_record, until):
        on_record({"kind": "collect-error", "nodeid": "a.py", "text": "ImportError: x"})
        return Workers.end()

    workers = Workers()
    gate = campaign(workers, Judge(), ["a"])
    gate._launcher = broken
    with pytest.raises(MeasurementError, match=r"SIGSEGV(?s:.*)ImportError: x"):
        gate.measure(LOOKS)


def test_a_benchmark_no_worker_collects_is_lost_not_dropped():
    class Forgetful(Workers):
        def __call__(self, order, *, on_record, until):
            kept = tuple(n for n in order.wanted if n != "b")
            fields = {f: getattr(order, f) for f in order.__dataclass_fields__}
            return super().__call__(
                type(order)(**fields | {"wanted": kept}),
                on_record=on_record,
                until=until,
            )

    gate = campaign(Forgetful(), Judge(), ["a", "b"])
    gate.measure(LOOKS)
    assert gate.ledger.entries["b"].lost_for_good
    assert len(gate.ledger.entries["a"].runs) == 3


def test_an_interrupted_session_has_its_cost_too():
    class Interrupted(Workers):
        def __call__(self, order, *, on_record, until):
            self.time += 4.0
            raise KeyboardInterrupt

    gate = campaign(Interrupted(), Judge(), ["a"])
    with pytest.raises(KeyboardInterrupt):
        gate.measure(LOOKS)
    assert gate.cost.seconds == 4.0


def test_a_device_that_throttles_is_given_time():
    workers = Workers(a={2: "throttle", 3: "throttle", 5: "throttle"})
    gate = campaign(workers, Judge(), ["a"])
    gate.measure(LOOKS)
    # twice as long for the second in a row, and from the start after a sound run
    assert workers.slept == [5.0, 10.0, 5.0]
    assert gate.cost.waited_s == 20.0
    assert len(gate.ledger.entries["a"].runs) == 3


def test_a_device_that_never_recovers_is_given_up():
    workers = Workers(a=dict.fromkeys(range(1, 99), "throttle"))
    gate = campaign(workers, Judge(), ["a", "b"])
    gate.measure(LOOKS)
    assert workers.slept == [5.0, 10.0, 20.0]
    assert len([o for o in workers.orders if "a" in o.wanted]) == 4
    assert len(gate.ledger.entries["b"].runs) == 3


def test_recovering_takes_no_longer_than_the_session_may():
    workers = Workers(a=dict.fromkeys(range(1, 99), "throttle"))
    gate = campaign(workers, Judge(), ["a"], max_total_s=4.0)
    gate.measure(LOOKS)
    assert workers.slept == [3.0]
    assert gate.out_of_time
