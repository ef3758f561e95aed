"""Records survive what can happen to a file and its writer."""

import json
import os

import pytest

from pytest_perfgate import protocol
from pytest_perfgate.errors import ProtocolError
from pytest_perfgate.measured import Plan
from pytest_perfgate.protocol import RecordReader, RecordWriter, Task, frame


def test_records_come_back_in_order_and_once(tmp_path):
    writer, reader = RecordWriter(tmp_path / "r"), RecordReader(tmp_path / "r")
    writer.write("open", nodeid="a.py::b[é\n|]")
    assert [record["nodeid"] for record in reader.read()] == ["a.py::b[é\n|]"]
    writer.write("close", nodeid="x")
    writer.write("finish", status=0)
    assert [record["kind"] for record in reader.read()] == ["close", "finish"]
    assert reader.read() == []


def test_no_file_yet_means_no_records_yet(tmp_path):
    assert RecordReader(tmp_path / "absent").read() == []


def test_a_torn_last_line_waits_for_its_end(tmp_path):
    path = tmp_path / "r"
    line = frame({"kind": "measured", "value": 1.5})
    path.write_bytes(frame({"kind": "open"}) + line[:-7])
    reader = RecordReader(path)
    assert [record["kind"] for record in reader.read()] == ["open"]
    path.write_bytes(frame({"kind": "open"}) + line)
    assert reader.read() == [{"kind": "measured", "value": 1.5}]


@pytest.mark.parametrize(
    "damage",
    [
        lambda line: line.replace(b"1.5", b"9.5"),
        lambda line: line[:9] + b"9" + line[10:],
        lambda line: b"no record at all\n",
        lambda line: b"\n",
    ],
    ids=["payload", "length", "foreign text", "empty line"],
)
def test_a_damaged_line_is_refused_with_its_file(tmp_path, damage):
    path = tmp_path / "r"
    path.write_bytes(damage(frame({"kind": "measured", "value": 1.5})))
    with pytest.raises(ProtocolError, match=r"r: a record is damaged .* disk"):
        RecordReader(path).read()


def test_a_forked_child_does_not_speak_for_its_parent(tmp_path):
    writer = RecordWriter(tmp_path / "r")
    child = os.fork()
    if child == 0:
        writer.write("finish", status=0)
        os._exit(0 if not writer.owned else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    writer.write("open", nodeid="mine")
    writer.close()
    assert [record["kind"] for record in RecordReader(tmp_path / "r").read()] == [
        "open"
    ]


def test_what_users_put_into_properties_is_shown_not_refused(tmp_path):
    writer = RecordWriter(tmp_path / "r")
    writer.write("report", properties=[("where", tmp_path)])
    (record,) = RecordReader(tmp_path / "r").read()
    assert str(tmp_path) in record["properties"][0][1]


def test_a_task_comes_back_equal(tmp_path):
    task = Task(
        run=3,
        wanted=("a.py::x", "a.py::y[1]"),
        records="somewhere",
        device="cpu",
        alone=True,
        plans={"a.py::x": Plan(iterations=40, warmup=3, workload="abc")},
        iterations={"a.py::y[1]": 7},
    )
    task.write(tmp_path / "task")
    assert Task.read(tmp_path / "task") == task


def test_another_protocol_is_named(tmp_path):
    path = tmp_path / "task"
    Task(run=1, wanted=(), records="", device="cpu").write(path)
    path.write_text(json.dumps(json.loads(path.read_text()) | {"protocol": 99}))
    with pytest.raises(ProtocolError, match=f"99, this worker {protocol.VERSION}"):
        Task.read(path)
