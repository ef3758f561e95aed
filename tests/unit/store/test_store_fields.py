import pytest

from pytest_perfgate.errors import BaselineCorrupt
from pytest_perfgate.model import Better, Outcome, Reason
from pytest_perfgate.store.fields import Node, parse


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "the file is empty"),
        (b" \n", "the file is empty"),
        (b'{"a": 1, "b": [', "truncated at line 1 column 16"),
        (b'{"a": 1,, "b": 2}', "not JSON at line 1 column 9"),
        (b'{"a": "tex', "truncated at line 1 column 7"),
        (b'{"a": 1}\n{}', "not JSON at line 2 column 1 (Extra data)"),
        (b'{\n<<<<<<< HEAD\n"a": 1\n', "unresolved merge (<<<<<<<)"),
        (b"<<<<<<< HEAD\n{}", "unresolved merge (<<<<<<<)"),
        (b'{"a": "\xff"}', "not UTF-8 text at byte 7"),
        (b'{"a": NaN}', "NaN is not a number"),
        (b'{"a": [-Infinity]}', "-Infinity is not a number"),
        (b'{"x": {"a": 1, "a": 1}}', "the key 'a' appears twice"),
        (b"[" + b"9" * 5000 + b"]", "not readable as JSON"),
        (b"[" * 200_000, "nested too deep"),
    ],
)
def test_parse_refuses(data, message):
    with pytest.raises(BaselineCorrupt) as caught:
        parse(data)
    assert message in str(caught.value)


def test_parse_takes_text_and_bytes():
    assert parse('{"a": [1, 2.5, null]}') == parse(b'{"a": [1, 2.5, null]}')


READERS = {
    "string": Node.string,
    "strings": Node.strings,
    "boolean": Node.boolean,
    "integer": Node.integer,
    "at least 2": lambda node: node.integer(minimum=2),
    "number": Node.number,
    "above 0": lambda node: node.number(above=0),
    "from 0": lambda node: node.number(minimum=0),
    "numbers": Node.numbers,
    "scalar": Node.scalar,
    "direction": lambda node: node.choice(Better),
    "reason": lambda node: node.choice(Reason),
    "outcome": lambda node: node.choice(Outcome),
    "items": Node.items,
    "members": Node.members,
}


@pytest.mark.parametrize(
    ("reader", "value", "message"),
    [
        ("string", None, "a.b: expected a string, got None"),
        ("string", 3, "a.b: expected a string, got 3"),
        ("strings", ["x", 1], "a.b[1]: expected a string, got 1"),
        ("boolean", 1, "a.b: expected true or false, got 1"),
        ("integer", True, "a.b: expected an integer, got True"),
        ("integer", 2.0, "a.b: expected an integer, got 2.0"),
        ("at least 2", 1, "a.b: expected an integer of at least 2, got 1"),
        ("number", "12", "a.b: expected a number, got '12'"),
        ("number", False, "a.b: expected a number, got False"),
        ("number", float("inf"), "a.b: expected a finite number, got inf"),
        ("number", 10**400, "a.b: expected a finite number, got 1000"),
        ("above 0", 0, "a.b: expected a number greater than 0, got 0"),
        ("above 0", -1.5, "a.b: expected a number greater than 0, got -1.5"),
        ("from 0", -0.1, "a.b: expected a number of at least 0, got -0.1"),
        ("numbers", [1, None], "a.b[1]: expected a number, got None"),
        ("scalar", [], "a.b: expected a string, a number, true, false or null, got []"),
        ("scalar", float("-inf"), "a.b: expected a finite number, got -inf"),
        ("direction", "up", "a.b: expected 'lower' or 'higher', got 'up'"),
        ("outcome", "fine", "a.b: expected 'unchanged' or 'improved' or"),
        ("reason", "mood", "a.b: expected a reason that is known, got 'mood'"),
        ("items", {}, "a.b: expected an array, got {}"),
        ("members", "x" * 100, "a.b: expected an object, got 'xxx"),
    ],
)
def test_readers_name_path_expectation_and_value(reader, value, message):
    with pytest.raises(BaselineCorrupt) as caught:
        READERS[reader](Node(value, key="a.b"))
    assert str(caught.value).startswith(message)
    assert len(str(caught.value)) < 220


@pytest.mark.parametrize(
    ("reader", "value", "result"),
    [
        ("integer", -3, -3),
        ("number", 3, 3.0),
        ("above 0", 1e-300, 1e-300),
        ("from 0", 0, 0.0),
        ("numbers", [1, 2.5], (1.0, 2.5)),
        ("scalar", None, None),
        ("scalar", 1.5, 1.5),
        ("scalar", True, True),
        ("scalar", "x", "x"),
        ("strings", ["x"], ("x",)),
        ("boolean", False, False),
        ("direction", "higher", Better.HIGHER),
    ],
)
def test_readers_return_the_value_in_its_type(reader, value, result):
    read = READERS[reader](Node(value))
    assert read == result
    assert type(read) is type(result)


def test_fixed_keys_must_all_be_there_and_no_others():
    node = Node({"a": 1, "z": 2})
    with pytest.raises(BaselineCorrupt, match=r"^top level: the key 'b' is missing$"):
        node.fields("a", "b")
    unknown = r"^top level: unknown key 'z' \(known here: a, b\)$"
    with pytest.raises(BaselineCorrupt, match=unknown):
        node.fields("a", optional=("b",))
    assert node.fields("a", optional=("z",))["z"].integer() == 2


def test_paths_quote_keys_that_are_no_names():
    node = Node(None)
    path = node.at("benchmarks", {}).at('b/a.py::x["1"]', {}).at("runs", []).at(2, 0)
    assert path.path == r'benchmarks["b/a.py::x[\"1\"]"].runs[2]'
