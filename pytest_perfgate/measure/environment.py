"""The fingerprint: which machine this is, and what runs on it."""

import contextlib
import os
import platform
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from importlib import metadata
from math import log2
from pathlib import Path

from pytest_perfgate.measure.cgroup import Cgroup, own_cgroup
from pytest_perfgate.measure.cpu_guard import usable_cores
from pytest_perfgate.measure.device import Device
from pytest_perfgate.measure.health import DeviceReading
from pytest_perfgate.model import Environment

Value = str | int | float | bool | None
Fields = dict[str, Value]

VARIABLES = (
    "CUBLAS_WORKSPACE_CONFIG",
    "CUDA_DEVICE_ORDER",
    "CUDA_LAUNCH_BLOCKING",
    "CUDA_MODULE_LOADING",
    "MKL_NUM_THREADS",
    "NVIDIA_TF32_OVERRIDE",
    "OMP_NUM_THREADS",
    "OMP_WAIT_POLICY",
    "OPENBLAS_NUM_THREADS",
    "PYTEST_XDIST_WORKER",
    "PYTORCH_ALLOC_CONF",
    "PYTORCH_CUDA_ALLOC_CONF",
)
"""What is set of these is part of the software; none holds a secret."""

_NOISE = re.compile(
    r"\((?:r|tm|c)\)|@.*|\b(?:cpu|processor)\b|\b\d+-core\b|\bwith radeon.*",
    re.IGNORECASE,
)
_GIB = 2**30
_GOVERNOR = Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")


def slug(text: str) -> str:
    """Make a name safe for a folder: lower case, digits, single hyphens."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def hardware(device: str, fake_script: Path | None = None) -> tuple[str, Fields]:
    """Name the hardware, cheaply and without torch.

    Parameters
    ----------
    device : `cpu` or `cuda:N`, as `resolve_device` answers
    fake_script : script of a fake device, which then answers

    Returns
    -------
    tuple
        The key that names the baselines' folder (`amd-epyc-7b13-2c`,
        `nvidia-h200`), and the fields that decide comparability.
    """
    if fake_script is not None:
        from pytest_perfgate.measure.fake_script import read_script

        script = read_script(fake_script)
        return slug(script.key) or "fake", dict(script.hardware)
    if device == "cpu":
        return _cpu_hardware()
    return _gpu_hardware(device)


def fingerprint(device: Device) -> Environment:
    """Describe the machine and software a worker measured with.

    torch, numpy and the like are looked at only where somebody imported them:
    what is not loaded has no part in the numbers.
    """
    if device.fake:
        return _fake_environment(device)
    key, fields = hardware(device.name)
    known = software(device.name)
    if device.telemetry is not None:
        known |= gpu_settings(device.telemetry.read())
    return Environment(key=key, hardware=fields, software=known)


def gpu_settings(told: DeviceReading) -> Fields:
    """Name how the GPU is set, as far as the driver tells."""
    fields: Fields = {
        "gpu_ecc": told.ecc,
        "gpu_mig": told.mig,
        "gpu_persistence": told.persistence,
        "gpu_power_limit_w": told.power_limit_w,
    }
    return {name: value for name, value in fields.items() if value is not None}


def _fake_environment(device: Device) -> Environment:
    from pytest_perfgate.measure.fake import FakeDevice

    if not isinstance(device, FakeDevice):
        raise TypeError(f"{device!r} says it is fake and has no script")
    return Environment(
        key=slug(device.script.key) or "fake",
        hardware=dict(device.script.hardware),
        software=dict(device.script.software),
        fake=True,
    )


# -- hardware


def _cpu_hardware() -> tuple[str, Fields]:
    model, cores, cgroup = cpu_model(), usable_cores(), own_cgroup()
    fields: Fields = {
        "cpu_model": model,
        "cores": cores,
        "machine": platform.machine(),
        "memory_gib_class": memory_class_gib(_memory_bytes(cgroup)),
    }
    return cpu_key(model, cores), fields


def cpu_key(model: str, cores: int) -> str:
    """Make a key of what is said of a CPU: `amd-epyc-7b13-2c`."""
    name = slug(_NOISE.sub(" ", model)) or slug(platform.machine()) or "cpu"
    return f"{name}-{cores}c"


def cpu_model(cpuinfo: Path = Path("/proc/cpuinfo")) -> str:
    """Name the CPU, as the kernel does or as the platform does.

    A virtual machine may say no more than `AMD EPYC`, which is many CPUs of
    very different speed: then family, model and stepping complete the name.
    """
    facts = _cpu_facts(cpuinfo)
    named = next((facts[name] for name in _MODEL_NAMES if facts.get(name)), "")
    if named and not any(letter.isdigit() for letter in named):
        named = " ".join((named, *_numbers(facts)))
    return named or platform.processor() or platform.machine()


_MODEL_NAMES = ("model name", "Model", "cpu model")


def _cpu_facts(cpuinfo: Path) -> dict[str, str]:
    """Return what the kernel says of the first CPU."""
    try:
        text = cpuinfo.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return {}
    facts: dict[str, str] = {}
    for line in text.splitlines():
        name, _, value = line.partition(":")
        facts.setdefault(name.strip(), value.strip())
    return facts


def _numbers(facts: Mapping[str, str]) -> Iterator[str]:
    for name in ("cpu family", "model", "stepping"):
        if facts.get(name):
            yield f"{name.removeprefix('cpu ')} {facts[name]}"


def memory_class_gib(memory_bytes: int | None) -> int | None:
    """Round to a power of two: machines of one kind differ by a few per cent."""
    if not memory_bytes:
        return None
    return int(2 ** max(round(log2(memory_bytes / _GIB)), 0))


def _memory_bytes(cgroup: Cgroup) -> int | None:
    try:
        total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):
        return cgroup.memory_limit_bytes()
    limit = cgroup.memory_limit_bytes()
    return min(total, limit) if limit else total


def _gpu_hardware(device: str) -> tuple[str, Fields]:
    from pytest_perfgate.measure.nvml import visible_gpus

    index = int(device.partition(":")[2] or 0)
    gpu = visible_gpus()[index]
    _, host = _cpu_hardware()
    fields: Fields = {
        "gpu": gpu.name,
        "gpus": 1,
        "gpu_memory_gib": round(gpu.memory_bytes / _GIB) if gpu.memory_bytes else None,
        "cpu_model": host["cpu_model"],
        "cores": host["cores"],
    }
    return gpu_key(gpu.name, count=1), fields


def gpu_key(name: str, *, count: int) -> str:
    """Make a key of a GPU's name: `nvidia-h200`, `2x-nvidia-h200`."""
    named = slug(name) or "gpu"
    return named if count == 1 else f"{count}x-{named}"


# -- software


def software(device: str, environ: Mapping[str, str] = os.environ) -> Fields:
    """List versions and settings that may explain a change."""
    fields: Fields = {
        "python": platform.python_version(),
        "implementation": platform.python_implementation(),
        "platform": platform.platform(),
        "pytest_perfgate": metadata.version("pytest-perfgate"),
    }
    fields |= _governor()
    fields |= {name: environ[name] for name in VARIABLES if name in environ}
    fields |= _loaded_versions()
    if "torch" in sys.modules:
        fields |= _torch_settings()
    if device != "cpu":
        from pytest_perfgate.measure.nvml import driver_version

        fields["driver"] = driver_version()
    return fields


def _governor() -> Fields:
    named = cpu_governor()
    return {} if named is None else {"cpu_governor": named}


def cpu_governor() -> str | None:
    """Name who decides the CPU's clock, where the kernel says."""
    try:
        return _GOVERNOR.read_text().strip()
    except OSError:
        return None


def _loaded_versions() -> Fields:
    """Versions of the numerical libraries that are loaded, and only of those."""
    names = ("numpy", "scipy", "torch", "triton", "transformers", "jax")
    loaded = {name: sys.modules[name] for name in names if name in sys.modules}
    return {
        name: str(getattr(module, "__version__", "unknown"))
        for name, module in loaded.items()
    }


def _torch_settings() -> Fields:
    torch = sys.modules["torch"]
    backends = torch.backends
    asked: dict[str, Callable[[], Value]] = {
        "torch_threads": torch.get_num_threads,
        "torch_interop_threads": torch.get_num_interop_threads,
        "float32_matmul_precision": torch.get_float32_matmul_precision,
        "deterministic_algorithms": torch.are_deterministic_algorithms_enabled,
        "cuda": lambda: torch.version.cuda,
        "cudnn": backends.cudnn.version,
        "cudnn_benchmark": lambda: backends.cudnn.benchmark,
        "cudnn_deterministic": lambda: backends.cudnn.deterministic,
        "cudnn_allow_tf32": lambda: backends.cudnn.allow_tf32,
        "matmul_allow_tf32": lambda: backends.cuda.matmul.allow_tf32,
        "matmul_fp32_precision": lambda: backends.cuda.matmul.fp32_precision,
        "conv_fp32_precision": lambda: backends.cudnn.conv.fp32_precision,
        "flash_sdp": backends.cuda.flash_sdp_enabled,
        "mem_efficient_sdp": backends.cuda.mem_efficient_sdp_enabled,
        "math_sdp": backends.cuda.math_sdp_enabled,
    }
    return dict(_answered(asked))


def _answered(asked: Mapping[str, Callable[[], Value]]) -> Iterator[tuple[str, Value]]:
    """Ask one after another; leave out what this torch does not answer.

    Whoever has set a precision by the newer names (`fp32_precision`) can no longer
    read it by the older ones: torch raises.
    """
    for name, ask in asked.items():
        with contextlib.suppress(AttributeError, RuntimeError):
            yield name, ask()
