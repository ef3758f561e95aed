"""The door to NVML: what the driver says of the GPUs, without a CUDA context."""

import contextlib
import os
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """One GPU as the driver lists it."""

    name: str
    uuid: str
    memory_bytes: int | None
    slices: tuple["Gpu", ...] = ()
    """The instances that MIG has cut it into."""
    problem: str = ""
    """What the driver says where it would not open it."""


def driver_gpus() -> tuple[Gpu, ...]:
    """List the driver's GPUs in PCI order; empty where there is no driver."""
    with _session() as nvml:
        if nvml is None:
            return ()
        count = nvml.nvmlDeviceGetCount()
        return tuple(_gpu(nvml, index) for index in range(count))


def visible_gpus() -> tuple[Gpu, ...]:
    """List the GPUs that `CUDA_VISIBLE_DEVICES` leaves to this process.

    Notes
    -----
    An integer in the variable counts in CUDA's own order, which is by speed
    unless `CUDA_DEVICE_ORDER=PCI_BUS_ID`. It is read as PCI order here, which
    differs only on machines with unlike GPUs.
    """
    gpus = driver_gpus()
    wanted = os.environ.get("CUDA_VISIBLE_DEVICES")
    if wanted is None:
        return tuple(map(_usable, gpus))
    chosen = []
    for entry in wanted.split(","):
        gpu = _find(gpus, entry.strip())
        if gpu is None:
            break  # CUDA, too, ends the list at the first entry it cannot find
        chosen.append(gpu)
    return tuple(chosen)


def _usable(gpu: Gpu) -> Gpu:
    """Of a GPU cut into instances CUDA takes the first."""
    return gpu.slices[0] if gpu.slices else gpu


def device_names() -> tuple[str, ...]:
    """Name the visible GPUs."""
    return tuple(gpu.name for gpu in visible_gpus())


def driver_version() -> str | None:
    """Ask the driver for its version; None without a driver."""
    with _session() as nvml:
        return None if nvml is None else text_of(nvml.nvmlSystemGetDriverVersion())


def _find(gpus: tuple[Gpu, ...], entry: str) -> Gpu | None:
    if entry.isdigit():
        return _usable(gpus[int(entry)]) if int(entry) < len(gpus) else None
    slices = [slice_ for gpu in gpus for slice_ in gpu.slices]
    matches = [gpu for gpu in (*gpus, *slices) if entry and gpu.uuid.startswith(entry)]
    return _usable(matches[0]) if len(matches) == 1 else None


def _gpu(nvml: Any, index: int) -> Gpu:  # noqa: ANN401 (an untyped module)
    try:
        handle = nvml.nvmlDeviceGetHandleByIndex(index)
        return _described(nvml, handle, slices=tuple(_slices(nvml, handle)))
    except nvml.NVMLError as error:  # it keeps its place among the others
        return Gpu(
            name=f"unusable GPU ({error})",
            uuid="",
            memory_bytes=None,
            problem=str(error),
        )


def _slices(nvml: Any, handle: object) -> Iterator[Gpu]:  # noqa: ANN401 (as above)
    """Yield the instances of a GPU that MIG has cut up."""
    try:
        if not nvml.nvmlDeviceGetMigMode(handle)[0]:
            return
        places = range(nvml.nvmlDeviceGetMaxMigDeviceCount(handle))
    except (AttributeError, nvml.NVMLError):
        return  # before Ampere, or not on this board
    for place in places:
        try:
            instance = nvml.nvmlDeviceGetMigDeviceHandleByIndex(handle, place)
        except nvml.NVMLError:
            continue  # places may be empty
        yield _described(nvml, instance)


def _described(nvml: Any, handle: object, *, slices: tuple[Gpu, ...] = ()) -> Gpu:  # noqa: ANN401 (as above)
    try:
        memory = int(nvml.nvmlDeviceGetMemoryInfo(handle).total)
    except nvml.NVMLError:
        memory = None  # shared with the host on some boards
    return Gpu(
        name=text_of(nvml.nvmlDeviceGetName(handle)),
        uuid=text_of(nvml.nvmlDeviceGetUUID(handle)),
        memory_bytes=memory,
        slices=slices,
    )


def import_binding() -> Any:  # noqa: ANN401 (an untyped module)
    """Import the module pynvml, whatever it has to say about itself."""
    with warnings.catch_warnings():
        # one distribution of this module warns at import; under -W error that
        # would take the session down for a matter of packaging
        warnings.simplefilter("ignore")
        import pynvml
    return pynvml


def packaging_hint() -> str | None:
    """Say what is wrong where an old distribution provides the module pynvml.

    `pynvml` up to 11.5 lays a package of that name over the module of
    nvidia-ml-py, which we need; from 13 on it makes every import warn, and
    under `-W error` even that of torch fail.
    """
    try:
        version = metadata.version("pynvml")
    except metadata.PackageNotFoundError:
        return None
    major = version.partition(".")[0]
    if major.isdigit() and int(major) == 12:
        return None  # no more than some helpers on top of nvidia-ml-py
    does = "hides" if major.isdigit() and int(major) < 12 else "makes torch warn of"
    return (
        f"the deprecated distribution pynvml {version} {does} nvidia-ml-py: "
        "pip uninstall pynvml, then pip install --force-reinstall nvidia-ml-py"
    )


@contextlib.contextmanager
def _session() -> Iterator[Any]:
    """Initialise NVML and shut it down; gives None where it cannot be had."""
    pynvml = import_binding()
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        yield None
        return
    try:
        yield pynvml
    finally:
        pynvml.nvmlShutdown()


def text_of(value: str | bytes) -> str:
    """Decode what some bindings give as bytes."""
    return value.decode() if isinstance(value, bytes) else value
