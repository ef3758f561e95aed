import json
import subprocess
import sys

import pytest

from pytest_perfgate.measure import environment, nvml
from pytest_perfgate.measure.cgroup import Cgroup
from pytest_perfgate.measure.cpu import CpuDevice
from pytest_perfgate.measure.environment import (
    cpu_key,
    cpu_model,
    fingerprint,
    gpu_key,
    hardware,
    memory_class_gib,
    slug,
    software,
)
from pytest_perfgate.measure.health import DeviceReading

GIB = 2**30


@pytest.mark.parametrize(
    ("model", "key"),
    [
        ("AMD EPYC", "amd-epyc-2c"),
        ("AMD EPYC 7B13 64-Core Processor", "amd-epyc-7b13-2c"),
        ("Intel(R) Xeon(R) CPU E5-2680 v4 @ 2.40GHz", "intel-xeon-e5-2680-v4-2c"),
        ("Apple M2 Pro", "apple-m2-pro-2c"),
        ("../../evil\\name", "evil-name-2c"),
    ],
)
def test_keys_of_cpus(model, key):
    assert cpu_key(model, 2) == key


@pytest.mark.parametrize("model", ["", "???", "CPU @ 2 GHz"])
def test_a_key_is_never_empty(model, monkeypatch):
    monkeypatch.setattr("platform.machine", lambda: "riscv64")
    assert cpu_key(model, 1) == "riscv64-1c"
    monkeypatch.setattr("platform.machine", lambda: "")
    assert cpu_key(model, 1) == "cpu-1c"


def test_keys_of_gpus():
    assert gpu_key("NVIDIA H200", count=1) == "nvidia-h200"
    assert gpu_key("NVIDIA H200", count=2) == "2x-nvidia-h200"
    assert gpu_key("/", count=1) == "gpu"
    assert slug("a  (B)/c.d") == "a-b-c-d"


@pytest.mark.parametrize(
    ("text", "model"),
    [
        (
            "cpu family: 25\nmodel\t: 17\nmodel name: AMD EPYC\nstepping: 1\n",
            "AMD EPYC family 25 model 17 stepping 1",
        ),
        ("model\t: 17\nmodel name\t: AMD EPYC 7B13\n", "AMD EPYC 7B13"),
        ("Hardware\t: x\nModel\t\t: Raspberry Pi 5\n", "Raspberry Pi 5"),
        ("processor\t: 0\n", "fallback"),
        (None, "fallback"),
    ],
)
def test_the_model_of_the_cpu(tmp_path, monkeypatch, text, model):
    monkeypatch.setattr("platform.processor", lambda: "fallback")
    if text is not None:
        (tmp_path / "cpuinfo").write_text(text)
    assert cpu_model(tmp_path / "cpuinfo") == model


@pytest.mark.parametrize(
    ("size", "expected"),
    [(None, None), (0, None), (15.4 * GIB, 16), (0.4 * GIB, 1), (33 * GIB, 32)],
)
def test_memory_is_classed_by_powers_of_two(size, expected):
    assert memory_class_gib(size) == expected


def test_a_container_s_limit_is_its_memory(tmp_path):
    (tmp_path / "memory.max").write_text("1073741824")
    group = Cgroup(v2=(tmp_path,), cpu_v1=(), memory_v1=())
    assert environment._memory_bytes(group) == GIB


def test_memory_on_a_system_without_page_counts(monkeypatch):
    def refuse(_):
        raise ValueError

    monkeypatch.setattr("os.sysconf", refuse)
    group = Cgroup(v2=(), cpu_v1=(), memory_v1=())
    assert environment._memory_bytes(group) is None


def test_the_hardware_of_this_cpu():
    key, fields = hardware("cpu")
    assert key
    assert key == slug(key)
    assert set(fields) == {"cpu_model", "cores", "machine", "memory_gib_class"}
    assert key.endswith(f"-{fields['cores']}c")


def test_the_hardware_of_a_gpu(monkeypatch):
    gpus = (
        nvml.Gpu(name="NVIDIA H200", uuid="GPU-1", memory_bytes=141 * GIB),
        nvml.Gpu(name="NVIDIA GB10", uuid="GPU-2", memory_bytes=None),
    )
    monkeypatch.setattr(nvml, "visible_gpus", lambda: gpus)
    key, fields = hardware("cuda:0")
    assert key == "nvidia-h200"
    assert fields["gpu_memory_gib"] == 141
    assert "memory_gib_class" not in fields
    key, fields = hardware("cuda:1")
    assert key == "nvidia-gb10"
    assert fields["gpu_memory_gib"] is None


def test_a_script_says_which_hardware_it_is(tmp_path, make_fake):
    script = tmp_path / "s.json"
    raw = {"key": "Box 1", "hardware": {"device": "x"}, "software": {"torch": "9"}}
    script.write_text(json.dumps(raw))
    assert hardware("cpu", fake_script=script) == ("box-1", {"device": "x"})
    found = fingerprint(make_fake(**raw))
    assert (found.key, found.fake) == ("box-1", True)
    assert (found.hardware, found.software) == ({"device": "x"}, {"torch": "9"})


def test_what_claims_to_be_fake_must_have_a_script():
    device = CpuDevice()
    device.fake = True
    with pytest.raises(TypeError, match="has no script"):
        fingerprint(device)


def test_the_fingerprint_of_this_process(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    found = fingerprint(CpuDevice())
    assert not found.fake
    assert found.software["OMP_NUM_THREADS"] == "3"
    assert found.software["python"].count(".") == 2
    assert "torch" not in found.software
    assert "driver" not in found.software


def test_only_listed_variables_are_kept():
    found = software("cpu", {"SECRET": "x", "CUDA_LAUNCH_BLOCKING": "0"})
    assert found["CUDA_LAUNCH_BLOCKING"] == "0"
    assert "SECRET" not in found


def test_a_gpu_s_driver_is_software(monkeypatch):
    monkeypatch.setattr(nvml, "driver_version", lambda: "580.65")
    assert software("cuda:0", {})["driver"] == "580.65"


def test_the_governor_where_the_kernel_tells(monkeypatch, tmp_path):
    file = tmp_path / "governor"
    monkeypatch.setattr(environment, "_GOVERNOR", file)
    assert "cpu_governor" not in software("cpu", {})
    file.write_text("performance\n")
    assert software("cpu", {})["cpu_governor"] == "performance"


def test_torch_is_described_where_it_is_loaded():
    torch = pytest.importorskip("torch")
    found = software("cpu", {})
    assert found["torch"] == torch.__version__
    assert found["torch_threads"] == torch.get_num_threads()
    assert found["float32_matmul_precision"] == "highest"
    assert found["cudnn_benchmark"] is torch.backends.cudnn.benchmark
    assert found["cudnn_deterministic"] is torch.backends.cudnn.deterministic
    assert found["deterministic_algorithms"] is False
    assert {"flash_sdp", "mem_efficient_sdp", "math_sdp"} <= found.keys()


@pytest.mark.parametrize(
    ("setting", "matmul", "convolution"),
    [
        ("cuda.matmul.fp32_precision = 'tf32'", "tf32", "tf32"),
        ("cuda.matmul.fp32_precision = 'ieee'", "ieee", "tf32"),
        ("fp32_precision = 'ieee'", "ieee", "ieee"),
        ("cuda.matmul.allow_tf32 = True", "tf32", "tf32"),
        ("cudnn.allow_tf32 = False", "none", "none"),
    ],
)
def test_a_precision_set_by_either_name_is_read(setting, matmul, convolution):
    """Of the two names that torch has for it, one raises once the other was used."""
    torch = pytest.importorskip("torch")
    if not hasattr(torch.backends, "fp32_precision"):
        pytest.skip("this torch has the older names alone")
    program = (
        f"import torch; torch.backends.{setting}\n"
        "from pytest_perfgate.measure.environment import software\n"
        "from pytest_perfgate.measure.peaks import precision_of\n"
        "import json; print(json.dumps([software('cpu'),"
        " dict(precision_of(torch).tf32)]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    found, tf32 = json.loads(done.stdout)
    assert found["matmul_fp32_precision"] == matmul
    assert found["conv_fp32_precision"] == convolution
    assert "torch_threads" in found
    assert tf32 == {"matmul": matmul == "tf32", "convolution": convolution == "tf32"}


def test_the_manager_names_its_hardware_without_heavy_imports():
    program = (
        "import sys; from pytest_perfgate.measure.environment import hardware;"
        "from pytest_perfgate.measure.device import resolve_device;"
        "hardware(resolve_device('cpu'));"
        "print([m for m in ('numpy','scipy','torch','pynvml') if m in sys.modules])"
    )
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "[]"


def test_how_a_gpu_is_set_may_explain_a_change():
    told = DeviceReading(time_s=0.0, ecc=True, persistence=False, power_limit_w=700.0)
    assert environment.gpu_settings(told) == {
        "gpu_ecc": True,
        "gpu_persistence": False,
        "gpu_power_limit_w": 700.0,
    }
