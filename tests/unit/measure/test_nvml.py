import sys
import types
import warnings

import pytest

from pytest_perfgate.measure import nvml


class NVMLError(Exception):
    pass


def make_pynvml(names=("NVIDIA H200", b"Tesla T4"), *, fails=False, memory=True):
    state = {"open": 0}

    def init():
        if fails:
            raise NVMLError
        state["open"] += 1

    def memory_info(_):
        if not memory:
            raise NVMLError
        return types.SimpleNamespace(total=2**37)

    def shutdown():
        state["open"] -= 1

    return types.SimpleNamespace(
        NVMLError=NVMLError,
        nvmlInit=init,
        nvmlShutdown=shutdown,
        nvmlDeviceGetCount=lambda: len(names),
        nvmlDeviceGetHandleByIndex=lambda index: index,
        nvmlDeviceGetName=lambda index: names[index],
        nvmlDeviceGetUUID=lambda index: f"GPU-{index}a{index}b",
        nvmlDeviceGetMemoryInfo=memory_info,
        nvmlSystemGetDriverVersion=lambda: b"580.65",
        state=state,
    )


@pytest.fixture
def driver(monkeypatch):
    def make(*args, **kwargs):
        module = make_pynvml(*args, **kwargs)
        monkeypatch.setitem(sys.modules, "pynvml", module)
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
        return module

    return make


def test_the_driver_s_gpus(driver):
    module = driver()
    first, second = nvml.driver_gpus()
    assert (first.name, first.uuid, first.memory_bytes) == (
        "NVIDIA H200",
        "GPU-0a0b",
        2**37,
    )
    assert second.name == "Tesla T4"
    assert nvml.driver_version() == "580.65"
    assert module.state["open"] == 0


def test_no_driver(driver):
    driver(fails=True)
    assert nvml.driver_gpus() == ()
    assert nvml.device_names() == ()
    assert nvml.driver_version() is None


def test_memory_that_is_not_told(driver):
    driver(memory=False)
    assert nvml.driver_gpus()[0].memory_bytes is None


@pytest.mark.parametrize(
    ("visible", "names"),
    [
        (None, ("A", "B", "C")),
        ("", ()),
        ("2,0", ("C", "A")),
        ("0,9,1", ("A",)),  # the list ends where CUDA's does
        ("GPU-1a1b", ("B",)),
        ("GPU-1, 0", ("B", "A")),
        ("GPU-", ()),  # not unique
        ("MIG-77", ()),
    ],
)
def test_the_visible_ones(driver, monkeypatch, visible, names):
    driver(names=("A", "B", "C"))
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert nvml.device_names() == names


def test_a_binding_that_warns_at_import_does_no_harm(driver, monkeypatch, tmp_path):
    monkeypatch.delitem(sys.modules, "pynvml", raising=False)
    (tmp_path / "pynvml.py").write_text(
        "import warnings\n"
        "warnings.warn('deprecated', FutureWarning)\n"
        "class NVMLError(Exception): pass\n"
        "def nvmlInit(): raise NVMLError\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert nvml.driver_gpus() == ()
    monkeypatch.delitem(sys.modules, "pynvml")


def test_errors_of_the_driver_leave_it_closed(driver):
    module = driver()
    module.nvmlDeviceGetName = lambda _: 1 / 0
    with pytest.raises(ZeroDivisionError):
        nvml.driver_gpus()
    assert module.state["open"] == 0


@pytest.mark.parametrize(
    ("installed", "words"),
    [
        (None, None),
        ("12.0.0", None),  # helpers on top of the right one
        ("11.5.3", "the deprecated distribution pynvml 11.5.3 hides nvidia-ml-py"),
        ("13.0.1", "the deprecated distribution pynvml 13.0.1 makes torch warn"),
    ],
)
def test_a_distribution_in_the_way_is_told(monkeypatch, installed, words):
    def version(name):
        assert name == "pynvml"
        if installed is None:
            raise nvml.metadata.PackageNotFoundError(name)
        return installed

    monkeypatch.setattr(nvml.metadata, "version", version)
    hint = nvml.packaging_hint()
    if words is None:
        assert hint is None
    else:
        assert hint.startswith(words)
        assert "pip uninstall pynvml" in hint


def test_a_gpu_that_cannot_be_opened_keeps_its_place(driver):
    module = driver(names=("A", "B"))

    def open_gpu(index):
        if index == 0:
            raise NVMLError("GPU is lost")
        return index

    module.nvmlDeviceGetHandleByIndex = open_gpu
    lost, other = nvml.visible_gpus()
    assert lost.problem == "GPU is lost"
    assert "GPU is lost" in lost.name
    assert other.name == "B"
