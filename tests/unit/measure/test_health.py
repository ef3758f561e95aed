"""What readings of a GPU mean, from made-up ones."""

import pytest

from pytest_perfgate.measure.health import (
    DeviceHealth,
    DeviceReading,
    GpuProcess,
    Watch,
    foreign_processes,
    judge_device,
    reason_words,
)
from pytest_perfgate.measured import Health


def make(time_s, **fields):
    return DeviceReading(time_s=time_s, **fields)


def judge(first, *others, **fields):
    return judge_device(first, others[:-1], others[-1], **fields)


@pytest.mark.parametrize(
    ("counter", "words"),
    [
        ("hw_thermal", "hardware thermal slowdown"),
        ("sw_thermal", "software thermal slowdown"),
        ("power_brake", "power brake"),
        ("reliability", "reliability limit"),
    ],
)
def test_what_throttles_for_more_than_half_a_per_cent(counter, words):
    found = judge(
        make(10.0, throttled_s={counter: 3.0}), make(12.0, throttled_s={counter: 3.02})
    )
    assert found.unfit == "throttled"
    assert found.evidence == (f"{words} for 1.0% of the run",)
    assert found.device[f"{counter}_share"] == pytest.approx(0.01)


@pytest.mark.parametrize(
    ("first", "last"),
    [
        ({"hw_thermal": 3.0}, {"hw_thermal": 3.009}),  # less than half a per cent
        ({"hw_thermal": 3.0}, {"hw_thermal": 0.0}),  # the driver was loaded anew
        ({"hw_thermal": 3.0}, {}),  # not told any more
        ({}, {"hw_thermal": 3.0}),
        ({"sw_power_cap": 0.0}, {"sw_power_cap": 2.0}),  # usual under full load
    ],
)
def test_what_is_no_throttling(first, last):
    found = judge(make(10.0, throttled_s=first), make(12.0, throttled_s=last))
    assert found.unfit is None
    assert found.evidence == ()


def test_a_share_of_power_cap_is_kept_for_the_gate():
    found = judge(
        make(0.0, throttled_s={"sw_power_cap": 0.0}),
        make(2.0, throttled_s={"sw_power_cap": 3.0}),  # more than there was time
    )
    assert found.device["sw_power_cap_share"] == 1.0


def test_without_counters_two_boundaries_in_a_row_count():
    once = [make(0.0, reasons=0x40), make(1.0, reasons=0), make(2.0, reasons=0x40)]
    assert judge(*once).unfit is None
    twice = [make(0.0), make(1.0, reasons=0x44), make(2.0, reasons=0x40)]
    found = judge(*twice)
    assert found.unfit == "throttled"
    assert found.evidence == (
        "hardware thermal slowdown at two boundaries of blocks in a row",
    )


def test_a_counter_outweighs_the_bit():
    counted = {"throttled_s": {"hw_thermal": 1.0}, "reasons": 0x40}
    assert judge(make(0.0, **counted), make(1.0, **counted)).unfit is None


def test_a_gpu_that_is_idle_between_blocks_is_well():
    idle = [make(float(at), reasons=0x1, performance_state=8) for at in range(3)]
    assert judge(*idle) == DeviceHealth(device={"performance_state": 8.0})


def test_hardware_slowdown_may_blink():
    assert judge(make(0.0, reasons=0x8), make(1.0)).unfit is None
    found = judge(make(0.0, reasons=0x8), make(1.0, reasons=0x8))
    assert found.unfit == "throttled"


def test_a_lost_gpu_outweighs_all():
    found = judge(
        make(0.0, throttled_s={"hw_thermal": 0.0}),
        make(1.0, throttled_s={"hw_thermal": 1.0}),
        make(2.0, lost="GPU is lost"),
    )
    assert found.unfit == "device-lost"
    assert found.evidence[0] == "the driver lost the GPU (GPU is lost)"
    assert "thermal" in found.evidence[1]


@pytest.mark.parametrize("place", [0, 1, 2])
def test_an_error_of_the_gpu_makes_a_run_worthless(place):
    readings = [make(float(at), xids=()) for at in range(3)]
    readings[place] = make(float(place), xids=(48, 79, 48))
    found = judge(*readings)
    assert found.unfit == "device-lost"
    first, second = found.evidence
    assert first == (
        "the driver reported XID 48 (memory error of two bits, which cannot be "
        "corrected), 2 times"
    )
    assert second == "the driver reported XID 79 (it has fallen off the bus)"


def test_no_error_and_no_word_of_errors_are_both_well():
    assert judge(make(0.0, xids=()), make(1.0, xids=None)).unfit is None


def test_an_error_is_told_though_the_gpu_is_lost_or_silent_then():
    found = judge(make(0.0), make(1.0, xids=(79,), lost="GPU is lost"))
    assert found.evidence == (
        "the driver lost the GPU (GPU is lost)",
        "the driver reported XID 79 (it has fallen off the bus)",
    )
    found = judge(make(0.0), make(1.0, xids=(79,), blind="Unknown Error"))
    assert found.unfit == "device-lost"


@pytest.mark.parametrize(
    ("first", "last", "disturbed"),
    [("", "a row", True), ("a row", "a row", False), (None, None, False)],
)
def test_memory_that_begins_to_fail_disturbs(first, last, disturbed):
    found = judge(make(0.0, remapping=first), make(1.0, remapping=last))
    assert found.disturbed is disturbed
    assert found.evidence == (("the GPU began to fail: a row",) * disturbed)


def test_others_on_the_gpu():
    found = judge(make(0.0), make(1.0), foreign=(GpuProcess(pid=7, name="train"),))
    assert found.unfit == "busy"
    assert found.evidence == ("process 7 (train) computed on the GPU",)
    assert str(GpuProcess(pid=7)) == "process 7"


def test_a_gpu_that_warms_is_disturbed():
    assert not judge(
        make(0.0, temperature_c=40.0), make(1.0, temperature_c=55.0)
    ).disturbed
    found = judge(make(0.0, temperature_c=40.0), make(1.0, temperature_c=56.0))
    assert (found.unfit, found.disturbed) == (None, True)
    assert found.evidence == ("the GPU warmed from 40 to 56 °C",)


def test_memory_errors_disturb():
    found = judge(make(0.0, memory_errors=2), make(1.0, memory_errors=5))
    assert found.disturbed
    assert found.evidence == ("3 uncorrected memory errors of the GPU",)


def test_what_a_driver_does_not_tell_is_no_evidence():
    assert judge(make(0.0), make(1.0)) == DeviceHealth()
    assert judge(make(1.0), make(1.0)) == DeviceHealth()


def test_a_silent_driver_is_remarked():
    always = judge(make(0.0, blind="No driver"), make(0.0, blind="No driver"))
    assert always.unfit is None
    assert always.remarks == ("nobody watched the GPU: No driver",)
    later = judge(make(0.0, sm_mhz=1000.0), make(1.0, blind="Unknown Error"))
    assert later.unfit is None
    assert later.remarks[0].startswith("the driver could not be asked any more (Unkn")
    assert later.device == {"sm_clock_mhz": 1000.0}


def test_mig_and_unknown_bits_are_remarked():
    found = judge(make(0.0, mig=True), make(1.0, mig=True, reasons=0x3004))
    assert found.remarks == (
        "MIG is on: neighbours on the same GPU are invisible",
        "the driver names reasons for its clocks that are not known: 0x1000, 0x2000",
    )
    assert reason_words(0x1004) == ("software power cap", "0x1000")


def test_what_is_kept_of_a_run():
    found = judge(
        make(0.0, sm_mhz=300.0, memory_mhz=5.0, temperature_c=40.0, pcie_width=1),
        make(1.0, sm_mhz=1900.0, power_w=300.0, pcie_width=16, pcie_generation=4),
        make(2.0, sm_mhz=1980.0, power_w=310.0, temperature_c=50.0, pcie_width=8),
        make(
            3.0,
            sm_mhz=1950.0,
            memory_mhz=2600.0,
            memory_temperature_c=80.0,
            performance_state=2,
        ),
    )
    assert found.device == {
        "sm_clock_mhz": 1950.0,
        "sm_clock_first_mhz": 1900.0,
        "sm_clock_last_mhz": 1950.0,
        "memory_clock_mhz": 2600.0,
        "temperature_c": 50.0,
        "memory_temperature_c": 80.0,
        "performance_state": 2.0,
        "power_w": 310.0,
        "pcie_generation": 4.0,
        "pcie_width": 16.0,
    }


def test_the_processor_s_evidence_stays():
    health = Health(blocks=4, disturbed=True, evidence=("cpu",))
    found = DeviceHealth(evidence=("gpu",), device={"sm_clock_mhz": 1.0})
    both = found.added_to(health)
    assert both.disturbed
    assert both.blocks == 4
    assert both.evidence == ("cpu", "gpu")
    assert both.device == {"sm_clock_mhz": 1.0}


OURS, OTHER, LATER = (GpuProcess(pid=pid) for pid in (1, 2, 3))


@pytest.mark.parametrize(
    ("earlier", "listed", "foreign"),
    [
        ([OURS], [OURS, OTHER], [OTHER]),
        ([OURS, OTHER], [OURS, OTHER], [OTHER]),  # it was there all along
        ([], [OURS], []),
        # our own ids are not these: who was there at the start may be ourselves
        ([OTHER], [OTHER], []),
        ([OTHER], [OTHER, LATER], [LATER]),
    ],
)
def test_who_is_foreign(earlier, listed, foreign):
    found = foreign_processes(
        listed, earlier=earlier, itself=1, is_ours=lambda pid: pid == 1
    )
    assert list(found) == foreign


class Telemetry:
    """Gives readings in turn, and remembers what it was asked."""

    sees_itself = 1

    def __init__(self, *readings):
        self.readings = list(readings)
        self.asked = []

    def read(self, *, processes=False):
        self.asked.append(processes)
        return self.readings.pop(0)

    def is_ours(self, pid):
        return pid == 1


def test_a_watch_lists_processes_at_both_ends_only():
    telemetry = Telemetry(
        make(0.0, processes=(OURS,)),
        make(1.0, sm_mhz=5.0),
        make(2.0, processes=(OURS, OTHER)),
    )
    watch = Watch(telemetry)
    watch.look()
    found = watch.close()
    assert telemetry.asked == [True, False, True]
    assert found.unfit == "busy"
    assert found.device == {"sm_clock_mhz": 5.0}


def test_processes_that_are_not_told_are_none_of_ours():
    watch = Watch(Telemetry(make(0.0), make(1.0)))
    assert watch.close() == DeviceHealth()


def test_without_a_gpu_there_is_nothing_to_watch():
    watch = Watch(None)
    watch.look()
    assert watch.close() == DeviceHealth()


def test_a_clock_that_holds_within_two_per_cent_is_one_number():
    found = judge(*(make(float(t), sm_mhz=mhz) for t, mhz in enumerate((9, 100, 98))))
    assert found.device == {"sm_clock_mhz": 99.0}
    found = judge(*(make(float(t), sm_mhz=mhz) for t, mhz in enumerate((9, 100, 97))))
    assert found.device == {
        "sm_clock_mhz": 98.5,
        "sm_clock_first_mhz": 100.0,
        "sm_clock_last_mhz": 97.0,
    }
