import pytest

from pytest_perfgate.measure.cgroup import own_cgroup


@pytest.fixture
def make_cgroup(tmp_path):
    def make(listing, files):
        for name, text in files.items():
            file = tmp_path / "mount" / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        (tmp_path / "listing").write_text(listing)
        return own_cgroup(tmp_path / "listing", tmp_path / "mount")

    return make


def test_the_unified_hierarchy(make_cgroup):
    group = make_cgroup(
        "0::/box\n",
        {
            "box/cpu.max": "150000 100000\n",
            "box/memory.max": "1024\n",
            "box/cpu.stat": "usage_usec 5\nthrottled_usec 7\n",
            "cpu.max": "max 100000\n",
        },
    )
    assert group.quota_cores() == 1.5
    assert group.memory_limit_bytes() == 1024
    assert group.throttled_ns() == 7000


def test_the_older_hierarchies(make_cgroup):
    group = make_cgroup(
        "4:memory:/box\n2:cpu,cpuacct:/box\n",
        {
            "cpu/box/cpu.cfs_quota_us": "50000\n",
            "cpu/box/cpu.cfs_period_us": "100000\n",
            "cpu/box/cpu.stat": "nr_periods 3\nthrottled_time 12\n",
            "memory/box/memory.limit_in_bytes": "2048\n",
        },
    )
    assert group.quota_cores() == 0.5
    assert group.memory_limit_bytes() == 2048
    assert group.throttled_ns() == 12


def test_inside_a_container_the_root_is_our_own_group(make_cgroup):
    group = make_cgroup("0::/elsewhere\n", {"cpu.max": "200000 100000\n"})
    assert group.quota_cores() == 2.0


def test_the_tightest_limit_counts(make_cgroup):
    group = make_cgroup(
        "0::/box\n", {"box/memory.max": "4096\n", "memory.max": "1024\n"}
    )
    assert group.memory_limit_bytes() == 1024


@pytest.mark.parametrize("quota", ["max 100000", "-1", ""])
def test_no_quota(make_cgroup, quota):
    group = make_cgroup("0::/box\n1:cpu:/\n", {"box/cpu.max": quota, "cpu/x": "1"})
    assert group.quota_cores() is None


def test_an_unlimited_older_group(make_cgroup):
    files = {"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}
    assert make_cgroup("1:cpu:/\n", files).quota_cores() is None


def test_a_system_without_groups(tmp_path):
    group = own_cgroup(tmp_path / "absent", tmp_path)
    assert group.quota_cores() is None
    assert group.memory_limit_bytes() is None
    assert group.throttled_ns() == 0
