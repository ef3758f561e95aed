"""What travels between the manager and its workers, versioned.

A worker appends records to a file: one line each, with checksum and length,
one write each. A file keeps what was written when the writer is killed, never
blocks the writer, and never wakes the reader in the middle of a measurement.
The manager learns of the end from the process itself, never from the file.
"""

import json
import os
import zlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from pytest_perfgate.errors import ProtocolError
from pytest_perfgate.measured import Plan
from pytest_perfgate.store import decode_plan, encode_plan
from pytest_perfgate.store.atomic import write_atomically

VERSION = 1
TASK_VARIABLE = "_PERFGATE_TASK"
"""Names the task file to a worker; its presence makes a pytest a worker."""
FAKE_VARIABLE = "_PERFGATE_FAKE"
"""Names the script of the fake device, in our own end-to-end tests."""
CHOSEN_VARIABLE = "_PERFGATE_CHOSEN"
"""Names a file with a list of node ids to a session that a command of ours started."""
NAN_VARIABLE = "_PERFGATE_NAN"
"""Names, by node id, a benchmark that hands a NaN over and that such a session adds."""
CHECKOUT_VARIABLE = "_PERFGATE_CHECKOUT"
"""Names the manifest of a checkout that such a session is to import from, in place
of the user's own."""
FOREIGN_VARIABLE = "_PERFGATE_FOREIGN"
"""Names the file to which it adds what came from the user's checkout all the same."""
SURVEY_VARIABLE = "_PERFGATE_SURVEY"
"""Names the file into which such a session writes what it collected."""

Record = dict[str, Any]
"""A decoded record: `kind` and whatever that kind carries."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What one worker is asked to do."""

    run: int
    wanted: tuple[str, ...]
    """Node ids, in the order in which they are to run."""
    records: str
    device: str
    manager: int = 0
    """Its process id, or 0 where something stands between it and the worker."""
    alone: bool = False
    plans: Mapping[str, Plan] = field(default_factory=dict)
    """By benchmark id: the stored plan that governs."""
    iterations: Mapping[str, int] = field(default_factory=dict)
    """By benchmark id: what the first run calibrated, where no plan governs."""
    inner_loops: Mapping[str, int] = field(default_factory=dict)
    """Likewise the inner loop that goes with it."""
    turns: int | None = None
    """Its end of the socket for turns, where another worker measures beside it."""
    protocol: int = VERSION

    def write(self, path: Path) -> None:
        """Write it where a worker will read it.

        Raises
        ------
        StoreUnreachable
            Where the disk refuses.
        """
        fields = asdict(self)
        fields["plans"] = {name: encode_plan(p) for name, p in self.plans.items()}
        write_atomically(path, json.dumps(fields).encode())

    @classmethod
    def read(cls, path: Path) -> "Task":
        fields = json.loads(path.read_text(encoding="utf-8"))
        if fields.get("protocol") != VERSION:
            raise ProtocolError(
                f"{path}: the manager speaks protocol {fields.get('protocol')!r}, this "
                f"worker {VERSION}: install one version of pytest-perfgate for both"
            )
        plans = {
            name: decode_plan(plan, f"plans[{name!r}]")
            for name, plan in fields.pop("plans").items()
        }
        wanted = tuple(fields.pop("wanted"))
        return cls(plans=plans, wanted=wanted, **fields)


class RecordWriter:
    """Append records; a process forked from the writer writes nothing."""

    def __init__(self, path: Path) -> None:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        self._descriptor = os.open(path, flags, 0o600)
        self._pid = os.getpid()

    @property
    def owned(self) -> bool:
        """False in a forked child, which must not speak for its parent."""
        return os.getpid() == self._pid

    def write(self, kind: str, **fields: object) -> None:
        if not self.owned:
            return
        line = frame({"kind": kind, **fields})
        while line:
            line = line[os.write(self._descriptor, line) :]

    def close(self) -> None:
        if self.owned:
            os.close(self._descriptor)


def frame(record: Record) -> bytes:
    """Encode one record as a line: CRC-32, length, JSON."""
    # what users put into user_properties may be anything: show it as text
    payload = json.dumps(record, default=repr).encode()
    return b"%08x %d %s\n" % (zlib.crc32(payload), len(payload), payload)


class RecordReader:
    """Read what has been appended since the last look."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0

    def read(self) -> list[Record]:
        """Return the complete new records.

        A torn last line is left for later: a killed writer never completes it.

        Raises
        ------
        ProtocolError
            If a complete line is not a record.
        """
        try:
            with self._path.open("rb") as file:
                file.seek(self._offset)
                data = file.read()
        except FileNotFoundError:
            return []
        complete = data[: data.rfind(b"\n") + 1]
        self._offset += len(complete)
        return [self._unframe(line) for line in complete.splitlines()]

    def _unframe(self, line: bytes) -> Record:
        checksum, _, rest = line.partition(b" ")
        length, _, payload = rest.partition(b" ")
        sound = (
            length.isdigit()
            and int(length) == len(payload)
            and checksum == b"%08x" % zlib.crc32(payload)
        )
        if not sound:
            raise ProtocolError(
                f"{self._path}: a record is damaged ({line[:60]!r}…); "
                "did the disk fill up, or did a benchmark write into the run folder?"
            )
        record: Record = json.loads(payload)
        return record
