from dataclasses import replace

import pytest

from pytest_perfgate.gate.comparability import (
    compare_environments,
    compare_metrics,
    compare_plans,
    difference_text,
)
from pytest_perfgate.measured import METRICS, Plan
from pytest_perfgate.model import Better, Environment

MACHINE = Environment(
    key="nvidia-h200",
    hardware={"gpu": "NVIDIA H200", "gpus": 1, "cpu_mhz": 3000.1, "sm_clock": 1980},
    software={"torch": "2.8.0", "driver": "570"},
)


def test_a_machine_is_itself():
    assert compare_environments(MACHINE, MACHINE) == ()


def test_clock_figures_change_by_the_second():
    hardware = {**MACHINE.hardware, "cpu_mhz": 3003.2, "sm_clock": 1410}
    assert compare_environments(MACHINE, replace(MACHINE, hardware=hardware)) == ()


def test_other_hardware_forbids_and_other_software_does_not():
    other = replace(
        MACHINE,
        hardware={**MACHINE.hardware, "gpu": "NVIDIA H100"},
        software={"torch": "2.9.0"},
    )
    found = compare_environments(MACHINE, other)
    assert [(one.field, one.forbids) for one in found] == [
        ("gpu", True),
        ("driver", False),
        ("torch", False),
    ]
    assert difference_text(found[:1]) == "gpu was NVIDIA H200, is NVIDIA H100"
    assert found[1].candidate == "not recorded"


def test_what_an_older_version_did_not_record_forbids_nothing():
    newer = replace(MACHINE, hardware={**MACHINE.hardware, "nvlink": True})
    assert [one.forbids for one in compare_environments(MACHINE, newer)] == [False]


def test_what_could_not_be_read_is_a_difference():
    blind = replace(MACHINE, hardware={**MACHINE.hardware, "gpus": None})
    assert [one.forbids for one in compare_environments(MACHINE, blind)] == [True]


def test_another_key_and_a_fake_device_forbid():
    other = replace(MACHINE, key="cpu", fake=True)
    found = compare_environments(MACHINE, other)
    assert [(one.field, one.forbids) for one in found] == [
        ("key", True),
        ("fake", True),
    ]


@pytest.mark.parametrize(
    "change",
    [
        {"iterations": 60},
        {"warmup": 1},
        {"inner_loop": 2},
        {"seed": 1},
        {"batch_size": 8},
        {"threads": 4},
        {"device": "cuda"},
        {"workload": "abc"},
        {"cache": "flush"},
    ],
)
def test_every_part_of_a_plan_forbids(change):
    plan = Plan(iterations=50, warmup=5, threads=2)
    found = compare_plans(plan, replace(plan, **change))
    assert [one.field for one in found] == list(change)
    assert found[0].forbids
    assert compare_plans(plan, plan) == ()


def test_threads_that_nobody_knew_of_are_no_difference():
    plan = Plan(iterations=50, warmup=5, threads=2)
    unknown = replace(plan, threads=None)
    assert compare_plans(plan, unknown) == compare_plans(unknown, plan) == ()


@pytest.mark.parametrize(
    "change",
    [
        {"unit": "ms"},
        {"definition": "other/2"},
        {"better": Better.HIGHER},
        {"exact": True},
    ],
)
def test_every_part_of_a_definition_forbids(change):
    metric = METRICS["latency"]
    found = compare_metrics(metric, replace(metric, **change))
    assert [one.field for one in found] == [f"latency.{next(iter(change))}"]
