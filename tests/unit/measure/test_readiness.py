import pytest

from pytest_perfgate.measure.health import DeviceReading, GpuProcess
from pytest_perfgate.measure.readiness import wait_until_ready


class Telemetry:
    sees_itself = 1

    def __init__(self, *readings):
        self.readings = list(readings)

    def read(self, *, processes=False):
        assert processes
        return self.readings.pop(0) if len(self.readings) > 1 else self.readings[0]

    def is_ours(self, pid):
        return pid == 1


def make(**fields):
    return DeviceReading(time_s=0.0, **fields)


def wait(*readings, **needs):
    said, slept = [], []
    found = wait_until_ready(
        Telemetry(*readings), sleep=slept.append, say=said.append, **needs
    )
    assert found.waited_s == sum(slept)
    return found, said


OTHER = GpuProcess(pid=7, name="train.py")


def test_a_gpu_that_is_well():
    found, said = wait(
        make(
            processes=(GpuProcess(pid=1),), busy_share=0.05, reasons=0x4, margin_c=10.0
        )
    )
    # how busy it is was asked twice, a second apart
    assert (found.obstacle, found.notes, found.waited_s, said) == (None, (), 1.0, [])


def test_a_gpu_used_now_and_then_is_seen_to_be_on_a_second_look():
    idle, busy = make(busy_share=0.0), make(busy_share=0.4)
    found, said = wait(idle, busy, idle, idle)
    assert (found.obstacle, found.waited_s) == (None, 1.0 + 2.0 + 1.0)
    assert said == [
        "waiting up to 60 s: something that is not listed uses 40% of the GPU"
    ]
    found, _ = wait(idle, busy)
    assert found.obstacle.reason == "busy"


@pytest.mark.parametrize(
    ("fields", "reason", "words"),
    [
        ({"processes": (OTHER,)}, "busy", "process 7 (train.py) computes on the GPU"),
        ({"busy_share": 0.37}, "busy", "something that is not listed uses 37%"),
        ({"reasons": 0x24}, "throttled", "held down: software thermal slowdown"),
        ({"reasons": 0x80}, "throttled", "power brake"),
        ({"margin_c": 9.0}, "throttled", "9 °C below the limit"),
    ],
)
def test_what_is_waited_for(fields, reason, words):
    found, said = wait(make(**fields))
    assert found.waited_s == 60.0
    assert found.obstacle.reason == reason
    assert words in found.obstacle.text
    assert said == [f"waiting up to 60 s: {found.obstacle.text}"]
    assert found.processes == fields.get("processes", ())


def test_what_passes_is_no_obstacle():
    busy = make(processes=(OTHER,))
    found, said = wait(busy, busy, make(processes=()))
    assert (found.obstacle, found.waited_s) == (None, 4.0)
    assert len(said) == 1


@pytest.mark.parametrize(
    ("free", "needed", "full"),
    [
        (2 << 30, 3 << 30, True),
        (3 << 30, 3 << 30, False),
        (None, 3 << 30, False),  # not told is no evidence
        (0, 0.0, False),  # nobody knows what is needed
    ],
)
def test_memory_that_somebody_holds_is_waited_for(free, needed, full):
    found, said = wait(make(free_bytes=free), needed_bytes=needed)
    assert found.waited_s == 60.0 * full
    assert len(said) == full
    if full:
        assert found.obstacle.reason == "busy"
        assert found.obstacle.text == (
            "a benchmark took 3.00 GiB when it was recorded, and 2.00 GiB of the "
            "GPU's memory is free"
        )


def test_memory_that_comes_free_is_no_obstacle():
    found, _ = wait(make(free_bytes=1), make(free_bytes=2), needed_bytes=2)
    assert (found.obstacle, found.waited_s) == (None, 2.0)


def test_errors_reported_meanwhile_are_noted():
    busy = make(processes=(OTHER,), xids=(31, 31))
    found, _ = wait(busy, make(busy_share=0.0), make(busy_share=0.0, xids=(48,)))
    assert found.obstacle is None
    assert [note.partition(" (")[0] for note in found.notes] == [
        "before the first run the driver reported XID 31",
        "before the first run the driver reported XID 48",
    ]


def test_a_lost_gpu_is_not_waited_for():
    found, said = wait(make(lost="GPU is lost"))
    assert (found.obstacle.reason, found.waited_s, said) == ("device-lost", 0.0, [])


def test_what_is_only_noted():
    reading = make(
        blind="No driver", persistence=False, mig=True, remapping="a row failed"
    )
    found, _ = wait(reading)
    assert found.obstacle is None
    blind, persistence, rows, mig = found.notes
    assert rows == "the GPU's memory is failing: a row failed"
    assert blind == "nobody watches the GPU: No driver"
    assert "nvidia-smi -pm 1" in persistence
    assert mig == "MIG is on: neighbours on the same GPU are invisible"


def test_what_a_driver_does_not_tell_is_no_obstacle():
    assert wait(make())[0].obstacle is None
