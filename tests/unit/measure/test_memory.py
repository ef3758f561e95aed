import pytest

from pytest_perfgate.measure.cpu import CpuDevice
from pytest_perfgate.measure.memory import MemoryUse, host_peak


@pytest.fixture
def proc(tmp_path):
    (tmp_path / "clear_refs").write_text("")
    (tmp_path / "status").write_text("Name:\tpython\nVmHWM:\t  300 kB\nVmRSS:\t 1 kB\n")
    return tmp_path


def test_the_peak_is_reset_before_the_call_and_read_after(proc):
    seen = []

    def call():
        seen.append((proc / "clear_refs").read_text())
        (proc / "status").write_text("VmHWM:\t  500 kB\n")

    assert host_peak(call, proc=proc) == 500 * 1024
    assert seen == ["5"]


def test_a_peak_that_cannot_be_reset_is_no_peak(tmp_path):
    called = []
    assert host_peak(lambda: called.append(0), proc=tmp_path / "absent") is None
    assert not called


def test_a_status_without_a_peak(proc):
    (proc / "status").write_text("Name:\tpython\n")
    assert host_peak(lambda: None, proc=proc) is None
    assert host_peak((proc / "status").unlink, proc=proc) is None


def test_the_cpu_shows_it_under_its_own_name(monkeypatch):
    from pytest_perfgate.measure import cpu

    monkeypatch.setattr(cpu, "host_peak", lambda _: 4096)
    assert CpuDevice().peak_memory(lambda: None).values == {"host_peak_memory": 4096}
    monkeypatch.setattr(cpu, "host_peak", lambda _: None)
    assert CpuDevice().peak_memory(lambda: None) == MemoryUse()
