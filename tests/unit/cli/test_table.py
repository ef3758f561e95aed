from pytest_perfgate.cli.table import table

ROWS = [("check", "happened"), ("one", "it went red at once"), ("another", "ok")]


def test_columns_are_aligned():
    assert list(table(ROWS, width=80)) == [
        "check    happened",
        "one      it went red at once",
        "another  ok",
    ]


def test_the_widest_cell_is_broken_where_it_does_not_fit():
    rows = [("a", "b"), ("x", "one two three four five six seven")]
    assert list(table(rows, width=25)) == [
        "a  b",
        "x  one two three four",
        "   five six seven",
    ]
