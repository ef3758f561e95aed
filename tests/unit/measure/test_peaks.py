"""The table of peaks, and what public tables get wrong."""

import re
import sys
import types
from collections import Counter

import pytest

from pytest_perfgate.measure.flops import Flops
from pytest_perfgate.measure.peaks import (
    TABLE,
    Facts,
    Gpu,
    Precision,
    facts_of,
    find,
    precision_of,
    shortest_s,
    utilisation,
)

GIB = 2**30
H100 = Facts(
    name="NVIDIA H100 80GB HBM3",
    sms=132,
    memory_bytes=int(79.1 * GIB),
    memory_clock_khz=2_619_000,
    bus_bits=5120,
)
CARDS = {  # name: multiprocessors, GiB as reported, memory clock in kHz, bus in bits
    "Tesla V100-SXM2-32GB": (80, 31.7, 877_000, 4096),
    "Tesla T4": (40, 14.6, 5_001_000, 256),
    "NVIDIA A10": (72, 22.1, 6_251_000, 384),
    "NVIDIA A100-SXM4-40GB": (108, 39.4, 1_215_000, 5120),
    "NVIDIA A100-SXM4-80GB": (108, 79.3, 1_593_000, 5120),
    "NVIDIA A100 80GB PCIe": (108, 79.3, 1_512_000, 5120),
    "NVIDIA L4": (58, 22.0, 6_251_000, 192),
    "NVIDIA L40S": (142, 44.4, 9_001_000, 384),
    "NVIDIA H100 80GB HBM3": (132, 79.1, 2_619_000, 5120),
    "NVIDIA H200": (132, 139.8, 3_201_000, 6144),
    "NVIDIA GeForce RTX 3090": (82, 23.7, 9_751_000, 384),
    "NVIDIA GeForce RTX 4090": (128, 23.6, 10_501_000, 384),
    "NVIDIA GeForce RTX 5090": (170, 31.4, 14_001_000, 512),
}


def facts(name):
    sms, gib, clock, bus = CARDS[name]
    return Facts(
        name=name,
        sms=sms,
        memory_bytes=int(gib * GIB),
        memory_clock_khz=clock,
        bus_bits=bus,
    )


def changed(**changes):
    fields = ("name", "sms", "memory_bytes", "memory_clock_khz", "bus_bits")
    return Facts(**{name: getattr(H100, name) for name in fields} | changes)


@pytest.mark.parametrize("name", CARDS)
def test_a_card_as_its_driver_describes_it(name):
    found = find(facts(name))
    assert isinstance(found, Gpu), found
    assert re.fullmatch(found.name, name)


def test_no_two_entries_claim_one_card():
    for name in CARDS:
        assert sum(bool(re.fullmatch(gpu.name, name)) for gpu in TABLE) == 1


def test_every_entry_has_a_source_and_sane_numbers():
    for gpu in TABLE:
        assert gpu.source
        half = gpu.tflops["fp16"]
        assert gpu.tflops.get("bf16", half) == half
        assert gpu.tflops.get("tf32", half / 2) == pytest.approx(half / 2, rel=0.02)
        assert gpu.tflops.get("fp8", 2 * half) == pytest.approx(2 * half, rel=0.02)


@pytest.mark.parametrize(
    ("name", "numbers", "tflops"),
    [
        ("NVIDIA H100 80GB HBM3", "bf16", 989.4),  # not 1513, the sparse PCIe card's
        ("NVIDIA H100 80GB HBM3", "fp32", 67),  # not halved
        ("NVIDIA L4", "bf16", 121),  # not the sparse 242
        ("NVIDIA GeForce RTX 4090", "bf16", 165.2),  # sums in 32 bits, not 330 or 661
        ("NVIDIA GeForce RTX 3090", "fp16", 71.2),
        ("NVIDIA A100-SXM4-80GB", "bf16", 312),
        ("NVIDIA L40S", "bf16", 362),  # its own, not an A100's
    ],
)
def test_what_public_tables_get_wrong(name, numbers, tflops):
    assert find(facts(name)).tflops[numbers] == tflops


def test_the_bandwidth_of_an_l4_is_not_that_of_an_h100():
    assert find(facts("NVIDIA L4")).bandwidths_gb_s == (300,)


@pytest.mark.parametrize(
    "name",
    [
        "NVIDIA A100-SXM4-40GB MIG 1g.5gb",
        "NVIDIA A10G",
        "NVIDIA H100",
        "NVIDIA GH200 480GB",
        "nvidia l4",
        "NVIDIA GeForce RTX 4090 D",
        "Tesla V100-PCIE-16GB",
    ],
)
def test_an_unknown_card_borrows_no_other_ones_peak(name):
    assert find(changed(name=name)) == f"{name} is not in the table of peaks"


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"sms": 16}, "has 16 multiprocessors here, not 132"),
        ({"memory_bytes": 10 * GIB}, "has 10 GiB here, not 80"),
        ({"memory_clock_khz": 1_593_000}, "makes 2,039 GB/s here, not 3,350"),
    ],
)
def test_a_card_that_is_not_what_its_name_says(change, why):
    assert why in find(changed(**change))


@pytest.mark.parametrize("change", [{"memory_clock_khz": None}, {"bus_bits": None}])
def test_a_driver_that_does_not_tell_the_memorys_speed(change):
    assert isinstance(find(changed(**change)), Gpu)


def flops(**numbers):
    return Flops(
        by_kind=Counter({("matmul", name): count for name, count in numbers.items()})
    )


def test_each_type_of_number_has_its_own_peak():
    gpu = find(H100)
    mixed = flops(bfloat16=989_400_000_000, float32=67_000_000_000)
    assert shortest_s(mixed, gpu, Precision()) == pytest.approx(0.001 + 0.001)


@pytest.mark.parametrize(
    ("kind", "allowed", "peak"),
    [("matmul", True, 494.7), ("matmul", False, 67), ("convolution", True, 67)],
)
def test_tf32_by_kind_of_work(kind, allowed, peak):
    work = Flops(by_kind=Counter({(kind, "float32"): 10**12}))
    precision = Precision(tf32={"matmul": allowed, "convolution": False})
    assert shortest_s(work, find(H100), precision) == pytest.approx(1 / peak)


def test_eight_bits():
    work = flops(float8_e4m3fn=1979 * 10**12)
    assert shortest_s(work, find(H100), Precision()) == pytest.approx(1.0)


def test_numbers_without_a_peak():
    assert "for float64" in shortest_s(flops(float64=9), find(H100), Precision())
    v100 = find(facts("Tesla V100-SXM2-32GB"))
    assert "for bfloat16" in shortest_s(flops(bfloat16=9), v100, Precision())


def test_sums_in_16_bits_are_another_peak():
    assert "16 bits" in shortest_s(
        flops(float16=9), find(H100), Precision(short_sums=True)
    )


@pytest.fixture
def torch(monkeypatch):
    """A torch whose only GPU is an H100."""
    properties = types.SimpleNamespace(
        name=H100.name,
        multi_processor_count=H100.sms,
        total_memory=H100.memory_bytes,
        memory_clock_rate=H100.memory_clock_khz,
        memory_bus_width=H100.bus_bits,
    )
    matmul = types.SimpleNamespace(allow_tf32=False)
    module = types.SimpleNamespace(
        cuda=types.SimpleNamespace(get_device_properties=lambda index: properties),
        backends=types.SimpleNamespace(
            cuda=types.SimpleNamespace(matmul=matmul),
            cudnn=types.SimpleNamespace(allow_tf32=True),
        ),
        properties=properties,
    )
    monkeypatch.setitem(sys.modules, "torch", module)
    return module


def test_facts_and_switches_are_read_from_torch(torch):
    assert facts_of(torch.properties) == H100
    del torch.properties.memory_clock_rate
    assert facts_of(torch.properties).bandwidth_gb_s is None
    assert precision_of(torch) == Precision(
        tf32={"matmul": False, "convolution": True}, short_sums=False
    )


@pytest.mark.usefixtures("torch")
def test_utilisation():
    half = flops(bfloat16=989_400_000_000 // 2)
    assert utilisation(half, "cuda:0", 0.001) == pytest.approx(0.5)


@pytest.mark.usefixtures("torch")
def test_above_one_something_is_wrong():
    found = utilisation(flops(bfloat16=989_400_000_000), "cuda:0", 0.0005)
    assert "it would be 2, above what NVIDIA H100" in found


def test_a_utilisation_that_cannot_be_given_says_why(torch):
    assert "float64" in utilisation(flops(float64=9), "cuda:0", 1.0)
    torch.properties.name = "NVIDIA Z1"
    assert utilisation(flops(bfloat16=9), "cuda", 1.0).startswith("NVIDIA Z1 is not")
