import pytest

from pytest_perfgate.errors import UsageError
from pytest_perfgate.units import (
    format_bytes,
    format_change,
    format_duration,
    format_fraction,
    format_value,
    nearest_unit,
    parse_bytes,
    parse_duration,
    parse_fraction,
    parse_quantity,
    parse_runs,
)


@pytest.mark.parametrize(
    ("text", "fraction"),
    [("5%", 0.05), ("0.05", 0.05), (0.05, 0.05), (" 12.5 % ", 0.125), ("1", 1.0)],
)
def test_fraction(text, fraction):
    assert parse_fraction(text) == pytest.approx(fraction)


def test_a_fraction_error_shows_place_value_and_way_out():
    with pytest.raises(UsageError) as raised:
        parse_fraction("5 percent", name="--perfgate-budget")
    assert str(raised.value) == (
        "--perfgate-budget='5 percent' is neither a fraction nor a percentage;"
        " write 5% or 0.05"
    )


@pytest.mark.parametrize("text", ["nan", "inf", "", "%", "1e999", "5ms", "-"])
def test_what_is_no_fraction_is_refused(text):
    with pytest.raises(UsageError, match="neither a fraction nor a percentage"):
        parse_fraction(text)


def test_a_bare_number_above_one_is_refused_since_a_percentage_was_meant():
    with pytest.raises(UsageError, match=r"'5' would mean 500 %; write 5% or 500%"):
        parse_fraction("5")


def test_a_negative_fraction_is_refused():
    with pytest.raises(UsageError, match="negative"):
        parse_fraction("-5%")


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("150ms", 0.15),
        ("3", 3.0),
        (2.5, 2.5),
        ("812 µs", 812e-6),
        ("812 μs", 812e-6),
        ("10us", 1e-5),
        ("7ns", 7e-9),
        ("2min", 120.0),
        ("1h", 3600.0),
    ],
)
def test_duration(text, seconds):
    assert parse_duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["soon", "3 weeks", "inf"])
def test_what_is_no_duration_is_refused(text):
    with pytest.raises(UsageError, match=f"x='{text}' is not a duration; write 150ms"):
        parse_duration(text, name="x")


def test_a_negative_duration_is_refused():
    with pytest.raises(UsageError, match="negative"):
        parse_duration("-1s")


@pytest.mark.parametrize(
    ("text", "size"),
    [("2GiB", 2**31), ("512MB", 512_000_000), ("17", 17), (4096, 4096), ("1kB", 1000)],
)
def test_bytes(text, size):
    assert parse_bytes(text) == size


@pytest.mark.parametrize("text", ["much", "3 floppies"])
def test_what_is_no_size_is_refused(text):
    with pytest.raises(UsageError, match="is not a size; write 2GiB"):
        parse_bytes(text)


def test_a_negative_size_is_refused():
    with pytest.raises(UsageError, match="negative"):
        parse_bytes("-1MB")


@pytest.mark.parametrize(
    ("text", "quantity"),
    [
        ("150ms", (0.15, "s")),
        ("2GiB", (2**31, "B")),
        ("5%", (0.05, "1")),
        ("500/s", (500.0, "1/s")),
        ("90 tokens/s", (90.0, "tokens/s")),
        ("3", (3.0, "")),
    ],
)
def test_quantity(text, quantity):
    assert parse_quantity(text) == pytest.approx(quantity)


def test_what_is_no_quantity_is_refused():
    with pytest.raises(UsageError, match="is not a quantity; write 150ms"):
        parse_quantity("fast")


@pytest.mark.parametrize(
    ("text", "runs"),
    [("3:12", (3, 12)), ("3", (3, 12)), ("5:5", (5, 5)), ("4", (4, 16))],
)
def test_runs(text, runs):
    assert parse_runs(text) == runs


@pytest.mark.parametrize(
    ("text", "way_out"),
    [
        ("2", "starts below 3 runs.*write 3:8"),
        ("0:1", "starts below 3 runs.*write 3:3"),
        ("5:4", "ends before it starts; write 5:20"),
        ("three", "is not MIN or MIN:MAX; write 3:12"),
        ("3:12:20", "is not MIN or MIN:MAX"),
    ],
)
def test_runs_that_cannot_be_are_refused(text, way_out):
    with pytest.raises(UsageError, match=way_out):
        parse_runs(text)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (812e-6, "812 µs"),
        (1.15e-3, "1.15 ms"),
        (81.24e-3, "81.2 ms"),
        (999.6e-6, "1.00 ms"),
        (2.0, "2.00 s"),
        (12345.0, "12345 s"),
        (3e-9, "3.00 ns"),
        (2.5e-10, "0.25 ns"),
        (0.0, "0 ns"),
        (-0.0015, "-1.50 ms"),
    ],
)
def test_a_duration_has_three_digits_and_the_unit_that_suits_it(seconds, text):
    assert format_duration(seconds) == text


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (17, "17 B"),
        (1024, "1.00 KiB"),
        (1.5 * 2**30, "1.50 GiB"),
        (3 * 2**40, "3.00 TiB"),
    ],
)
def test_a_size_is_written_in_binary_units(size, text):
    assert format_bytes(size) == text


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0.15, "s", "150 ms"),
        (2048.0, "B", "2.00 KiB"),
        (12.0, "1", "12"),
        (0.25, "", "0.25"),
        (500.0, "1/s", "500/s"),
        (91.5, "tokens/s", "91.5 tokens/s"),
    ],
)
def test_a_value_is_written_in_its_unit(value, unit, text):
    assert format_value(value, unit) == text


@pytest.mark.parametrize(
    ("ratio", "text"),
    [
        (1.123, "+12.3 %"),
        (0.9, "-10.0 %"),
        (1.0, "+0.0 %"),
        (0.99999, "+0.0 %"),
        (2.3, "+130 % (2.30×)"),
        (2.0, "+100 % (2.00×)"),
        (0.4, "-60.0 % (0.40×)"),
    ],
)
def test_a_change_from_twofold_on_is_also_a_factor(ratio, text):
    assert format_change(ratio) == text


@pytest.mark.parametrize(
    ("fraction", "text"),
    [(0.05, "5 %"), (0.125, "12.5 %"), (2.0, "200 %"), (30.0, "3000 %")],
)
def test_a_fraction_is_written_as_a_percentage(fraction, text):
    assert format_fraction(fraction) == text


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        *(("xs", "s"), ("msec", "ms"), ("MS", "ms"), ("gib", "GiB"), ("sek", None)),
        *(("points", None), ("jobs", None), ("s", None), ("KB", None), ("", None)),
        *(("1/s", None), ("tokens/s", None), ("1", None)),
    ],
)
def test_a_slip_of_a_unit_is_told_from_a_unit_of_ones_own(written, meant):
    assert nearest_unit(written) == meant
