"""What a GPU can do at most: dense peaks, each with its source.

Published tables mix dense numbers with those for sparse matrices, which are
twice as high, and those of one card with another's. So a GPU gets the peaks of
the table only if its whole name, its number of multiprocessors, its memory and
its memory's speed are those of the entry; a slice of a GPU (MIG) has none.

Tensor peaks are those with sums in 32 bits, which is what torch does unless told
otherwise; GeForce cards then reach half of what is printed on the box.
"""

import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pytest_perfgate.measure.flops import CONVOLUTION, MATMUL, Flops

_GB = 1e9
_TERA = 1e12
_MEMORY_LOW, _MEMORY_HIGH = 0.90, 1.08
"""What a driver reports of a card's memory, in units of what is printed on it:
GiB for GB, and some of it kept back."""
_BANDWIDTH_TOLERANCE = 0.05
_F = "from multiprocessors × clock × operations a clock"


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """One card of the table."""

    name: str
    """A regular expression for the whole name that the driver gives."""
    sms: int
    memory_gb: tuple[int, ...]
    bandwidths_gb_s: tuple[float, ...]
    """As published; more than one where sources differ, none where unconfirmed."""
    tflops: Mapping[str, float] = field(repr=False)
    source: str


def _peaks(fp32: float | None = None, **others: float) -> dict[str, float]:
    return others if fp32 is None else {"fp32": fp32, **others}


TABLE = (
    Gpu(
        name="Tesla V100-SXM2-(16|32)GB",
        sms=80,
        memory_gb=(16, 32),
        bandwidths_gb_s=(900,),
        tflops=_peaks(fp32=15.7, fp16=125),
        source=f"V100 datasheet; {_F}",
    ),
    Gpu(
        name="Tesla T4|NVIDIA T4",
        sms=40,
        memory_gb=(16,),
        bandwidths_gb_s=(320,),
        tflops=_peaks(fp32=8.1, fp16=65),
        source=f"T4 datasheet; {_F}",
    ),
    Gpu(
        name="NVIDIA A10",  # not the A10G, which is another card
        sms=72,
        memory_gb=(24,),
        bandwidths_gb_s=(600,),
        tflops=_peaks(fp32=31.2, tf32=62.5, bf16=125, fp16=125),
        source=f"A10 datasheet; {_F}",
    ),
    Gpu(
        name="NVIDIA A100-(SXM4|PCIE)-40GB",
        sms=108,
        memory_gb=(40,),
        bandwidths_gb_s=(1555,),
        tflops=_peaks(fp32=19.5, tf32=156, bf16=312, fp16=312),
        source=f"A100 datasheet; {_F}",
    ),
    Gpu(
        name="NVIDIA A100-SXM4-80GB",
        sms=108,
        memory_gb=(80,),
        bandwidths_gb_s=(2039,),
        tflops=_peaks(fp32=19.5, tf32=156, bf16=312, fp16=312),
        source="A100 datasheet",
    ),
    Gpu(
        name="NVIDIA A100 80GB PCIe",
        sms=108,
        memory_gb=(80,),
        bandwidths_gb_s=(1935,),
        tflops=_peaks(fp32=19.5, tf32=156, bf16=312, fp16=312),
        source="A100 datasheet",
    ),
    Gpu(
        name="NVIDIA L4",
        sms=58,
        memory_gb=(24,),
        bandwidths_gb_s=(300,),
        tflops=_peaks(fp32=30.3, tf32=60, bf16=121, fp16=121, fp8=242.5),
        source=f"L4 datasheet, halved: it prints sparse numbers; {_F}",
    ),
    Gpu(
        name="NVIDIA L40S",
        sms=142,
        memory_gb=(48,),
        bandwidths_gb_s=(864,),
        tflops=_peaks(fp32=91.6, tf32=183, bf16=362, fp16=362, fp8=733),
        source="L40S datasheet, dense column",
    ),
    Gpu(
        name="NVIDIA H100 PCIe",
        sms=114,
        memory_gb=(80,),
        bandwidths_gb_s=(2000,),
        tflops=_peaks(fp32=51.2, tf32=378, bf16=756, fp16=756, fp8=1513),
        source="H100 datasheet, halved: it prints sparse numbers",
    ),
    Gpu(
        name="NVIDIA H100 NVL",
        sms=132,
        memory_gb=(94,),
        bandwidths_gb_s=(),
        tflops=_peaks(bf16=835, fp16=835),
        source="torchtitan; the rest is not confirmed",
    ),
    Gpu(
        name="NVIDIA H100 80GB HBM3",
        sms=132,
        memory_gb=(80,),
        bandwidths_gb_s=(3350,),
        tflops=_peaks(fp32=67, tf32=494.7, bf16=989.4, fp16=989.4, fp8=1979),
        source=f"H100 datasheet, halved: it prints sparse numbers; {_F}",
    ),
    Gpu(
        name="NVIDIA H200",
        sms=132,
        memory_gb=(141,),
        bandwidths_gb_s=(4800,),
        tflops=_peaks(fp32=67, tf32=494.7, bf16=989, fp16=989, fp8=1979),
        source="H200 page; the die of the H100",
    ),
    Gpu(
        name="NVIDIA H200 NVL",
        sms=132,
        memory_gb=(141,),
        bandwidths_gb_s=(4800,),
        tflops=_peaks(bf16=835, fp16=835),
        source="H200 page",
    ),
    Gpu(
        name="NVIDIA B200",
        sms=148,
        memory_gb=(180, 192),
        bandwidths_gb_s=(8000, 7700),
        tflops=_peaks(bf16=2250, fp16=2250, fp8=4500),
        source="Blackwell brief and HGX table, which differ in fp32, tf32, bandwidth",
    ),
    Gpu(
        name="NVIDIA GeForce RTX 3090",
        sms=82,
        memory_gb=(24,),
        bandwidths_gb_s=(936,),
        tflops=_peaks(fp32=35.6, tf32=35.6, bf16=71.2, fp16=71.2),
        source=f"GA102 white paper; {_F}",
    ),
    Gpu(
        name="NVIDIA GeForce RTX 4090",
        sms=128,
        memory_gb=(24,),
        bandwidths_gb_s=(1008,),
        tflops=_peaks(fp32=82.6, tf32=82.6, bf16=165.2, fp16=165.2, fp8=330.3),
        source=f"Ada white paper; {_F}",
    ),
    Gpu(
        name="NVIDIA GeForce RTX 5090",
        sms=170,
        memory_gb=(32,),
        bandwidths_gb_s=(1792,),
        tflops=_peaks(fp32=104.8, tf32=104.8, bf16=209.5, fp16=209.5, fp8=419),
        source=_F,
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What the driver says of a GPU."""

    name: str
    sms: int
    memory_bytes: int
    memory_clock_khz: int | None = None
    bus_bits: int | None = None

    @property
    def bandwidth_gb_s(self) -> float | None:
        """Two transfers a clock over the whole bus."""
        if not self.memory_clock_khz or not self.bus_bits:
            return None
        return self.memory_clock_khz * 1e3 * self.bus_bits * 2 / 8 / _GB


def facts_of(properties: Any) -> Facts:  # noqa: ANN401 (torch's)
    """Read what `torch.cuda.get_device_properties` answers; old ones know less."""
    return Facts(
        name=properties.name,
        sms=properties.multi_processor_count,
        memory_bytes=properties.total_memory,
        memory_clock_khz=getattr(properties, "memory_clock_rate", None),
        bus_bits=getattr(properties, "memory_bus_width", None),
    )


def find(facts: Facts) -> Gpu | str:
    """Find a GPU in the table, or say why it has no peak."""
    named = [gpu for gpu in TABLE if re.fullmatch(gpu.name, facts.name)]
    if not named:
        return f"{facts.name} is not in the table of peaks"
    gpu = named[0]
    if facts.sms != gpu.sms:
        return f"{facts.name} has {facts.sms} multiprocessors here, not {gpu.sms}"
    gib = facts.memory_bytes / 2**30
    if not any(_MEMORY_LOW * gb <= gib <= _MEMORY_HIGH * gb for gb in gpu.memory_gb):
        return f"{facts.name} has {gib:.0f} GiB here, not {_listed(gpu.memory_gb)}"
    return _at_speed(gpu, facts)


def _at_speed(gpu: Gpu, facts: Facts) -> Gpu | str:
    found = facts.bandwidth_gb_s
    if found is None or not gpu.bandwidths_gb_s:
        return gpu
    if any(abs(found / one - 1) <= _BANDWIDTH_TOLERANCE for one in gpu.bandwidths_gb_s):
        return gpu
    return (
        f"the memory of {facts.name} makes {found:,.0f} GB/s here, "
        f"not {_listed(gpu.bandwidths_gb_s)}"
    )


def _listed(numbers: Iterable[float]) -> str:
    return " or ".join(f"{number:,}" for number in numbers)


@dataclass(frozen=True, slots=True, kw_only=True)
class Precision:
    """Switches of torch that decide which units of a GPU do the work."""

    tf32: Mapping[str, bool] = field(default_factory=dict)
    """By kind of work, `matmul` and `convolution`: may 32 bits go as TF32."""
    short_sums: bool = False
    """Whether 16 bits may be summed up in 16 bits."""


def precision_of(torch: Any) -> Precision:  # noqa: ANN401 (a module)
    """Read the switches as they are."""
    matmul, cudnn = torch.backends.cuda.matmul, torch.backends.cudnn
    return Precision(
        tf32={
            MATMUL: _is_tf32(matmul, matmul),
            CONVOLUTION: _is_tf32(getattr(cudnn, "conv", None), cudnn),
        },
        short_sums=bool(getattr(matmul, "allow_fp16_accumulation", False)),
    )


def _is_tf32(named: Any, older: Any) -> bool:  # noqa: ANN401 (torch's)
    """Read a switch by its newer name, which knows what was set by the older one.

    The older name raises where the newer one was set.
    """
    precision = getattr(named, "fp32_precision", None)
    return bool(older.allow_tf32) if precision is None else precision == "tf32"


def shortest_s(flops: Flops, gpu: Gpu, precision: Precision) -> float | str:
    """Give the seconds that a GPU at its peak would take, or say why not."""
    if precision.short_sums:
        return "fp16 sums in 16 bits are allowed, and the table is for 32"
    seconds = 0.0
    for (kind, numbers), count in flops.by_kind.items():
        peak = gpu.tflops.get(_column(kind, numbers, precision))
        if peak is None:
            return f"no peak of {gpu.name} for {numbers}"
        seconds += count / (peak * _TERA)
    return seconds


def _column(kind: str, numbers: str, precision: Precision) -> str:
    if numbers == "float32":
        return "tf32" if precision.tf32.get(kind) else "fp32"
    if numbers.startswith("float8_"):
        return "fp8"
    return {"bfloat16": "bf16", "float16": "fp16"}.get(numbers, numbers)


def utilisation(flops: Flops, device: str, per_call_s: float) -> float | str:
    """Give the share of a GPU's peak that a call reaches, or say why not.

    Parameters
    ----------
    device : `cuda:N`
    per_call_s : seconds that a call takes, many of them together
    """
    torch = sys.modules["torch"]
    index = int(device.partition(":")[2] or 0)
    gpu = find(facts_of(torch.cuda.get_device_properties(index)))
    if isinstance(gpu, str):
        return gpu
    shortest = shortest_s(flops, gpu, precision_of(torch))
    if isinstance(shortest, str):
        return shortest
    if shortest > per_call_s:
        return (
            f"it would be {shortest / per_call_s:.3g}, above what {gpu.name} can do:"
            " the peak or the operations are wrong"
        )
    return shortest / per_call_s
