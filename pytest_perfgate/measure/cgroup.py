"""What a container is allowed of the machine: CPU quota and memory limit.

Both generations of control groups are read; where there is none, there is no
limit and nothing was throttled.
"""

from dataclasses import dataclass
from pathlib import Path

MOUNT = Path("/sys/fs/cgroup")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cgroup:
    """The files of the groups this process is in; they may not exist."""

    v2: tuple[Path, ...]
    cpu_v1: tuple[Path, ...]
    memory_v1: tuple[Path, ...]

    def quota_cores(self) -> float | None:
        """Cores' worth of CPU time allowed, or None without a quota."""
        quotas = [_quota_v2(folder / "cpu.max") for folder in self.v2]
        quotas += [_quota_v1(folder) for folder in self.cpu_v1]
        return min((quota for quota in quotas if quota), default=None)

    def memory_limit_bytes(self) -> int | None:
        files = [folder / "memory.max" for folder in self.v2]
        files += [folder / "memory.limit_in_bytes" for folder in self.memory_v1]
        limits = [_integer(file) for file in files]
        return min((limit for limit in limits if limit), default=None)

    def throttled_ns(self) -> int:
        """Nanoseconds for which the quota stopped this group, so far."""
        total = sum(_field(folder / "cpu.stat", "throttled_usec") for folder in self.v2)
        older = (
            _field(folder / "cpu.stat", "throttled_time") for folder in self.cpu_v1
        )
        return total * 1000 + sum(older)


def own_cgroup(
    listing: Path = Path("/proc/self/cgroup"), mount: Path = MOUNT
) -> Cgroup:
    """Find the folders of our own group, and what a container shows as its root."""
    found: dict[str, list[Path]] = {"": [], "cpu": [], "memory": []}
    for line in _lines(listing):
        _, controllers, path = line.split(":", 2)
        for name in controllers.split(","):
            if name in found:
                found[name] += _folders(mount / name, path)
    return Cgroup(
        v2=tuple(found[""]),
        cpu_v1=tuple(found["cpu"]),
        memory_v1=tuple(found["memory"]),
    )


def _folders(root: Path, path: str) -> list[Path]:
    """List the group's own folder and the root: a container has only the latter."""
    own = root / path.strip("/")
    return [folder for folder in dict.fromkeys((own, root)) if folder.is_dir()]


def _lines(file: Path) -> list[str]:
    try:
        return [line for line in file.read_text().splitlines() if line.count(":") >= 2]
    except OSError:
        return []


def _words(file: Path) -> list[str]:
    try:
        return file.read_text().split()
    except OSError:
        return []


def _integer(file: Path) -> int | None:
    words = _words(file)
    return int(words[0]) if words and words[0].isdigit() else None


def _quota_v2(file: Path) -> float | None:
    words = _words(file)
    if len(words) != 2 or not words[0].isdigit():
        return None
    return int(words[0]) / int(words[1])


def _quota_v1(folder: Path) -> float | None:
    quota = _integer(folder / "cpu.cfs_quota_us")  # -1: none
    period = _integer(folder / "cpu.cfs_period_us")
    return quota / period if quota and period else None


def _field(file: Path, name: str) -> int:
    words = _words(file)
    return int(words[words.index(name) + 1]) if name in words else 0
