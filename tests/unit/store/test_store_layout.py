import json

import pytest

from pytest_perfgate.store.layout import lines_of, tidy


@pytest.mark.parametrize(
    ("value", "result"),
    [
        (0.00123456789, 0.00123457),
        (123.4567891, 123.457),
        (1234567.0, 1234567),
        (1234567.8, 1234570),
        (85899345920.0, 85899345920),
        (1e22 + 1e10, 1e22),
        (-0.0, 0),
        (5e-324, 5e-324),
        (True, True),
        ("0.123456789", "0.123456789"),
        ({"a": [[1 / 3]]}, {"a": [[0.333333]]}),
    ],
)
def test_fractions_get_six_digits_and_whole_numbers_stay(value, result):
    assert tidy(value) == result
    assert json.dumps(tidy(value)) == json.dumps(result)
    assert json.dumps(tidy(tidy(value))) == json.dumps(result)


def test_rows_of_numbers_stay_on_one_line_and_all_else_is_broken():
    tree = {
        "b": {"median": [[0.5, 0.25], [], [1, 0]], "steady": [True, False]},
        "a": ["one", "two"],
        "empty": [{}, []],
        "none": None,
    }
    assert lines_of(tree) == (
        "{\n"
        '  "a": [\n'
        '    "one",\n'
        '    "two"\n'
        "  ],\n"
        '  "b": {\n'
        '    "median": [[0.5, 0.25], [], [1, 0]],\n'
        '    "steady": [true, false]\n'
        "  },\n"
        '  "empty": [\n'
        "    {},\n"
        "    []\n"
        "  ],\n"
        '  "none": null\n'
        "}\n"
    )
    assert json.loads(lines_of(tree)) == tree


def test_text_that_could_deceive_a_reviewer_is_escaped():
    line = lines_of({"a\n\u202e": "\ud800"})
    assert line.isascii()
    assert json.loads(line) == {"a\n\u202e": "\ud800"}


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_what_json_does_not_have_is_not_written(value):
    with pytest.raises(ValueError, match="JSON"):
        lines_of({"a": [1.0, value]})
