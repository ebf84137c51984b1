"""Quantities: read strictly, written for people."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rackloop.units import counted, format_quantity, parse_quantity, parse_size, quantile_of


@pytest.mark.parametrize(
    ("text", "unit", "value"),
    [
        ("2 ms", "s", 0.002),
        ("50 us", "s", 50e-6),
        ("50 µs", "s", 50e-6),
        ("5 s", "s", 5.0),
        ("10 min", "s", 600.0),
        ("1.5 h", "s", 5400.0),
        ("8 GiB", "B", 8 << 30),
        ("8GiB", "B", 8 << 30),
        ("1.92 TB", "B", 1.92e12),
        ("280 MB/s", "B/s", 280e6),
        ("2.5 MiB/s", "B/s", 2.5 * (1 << 20)),
        ("10 %", "1", 0.1),
        ("0.95", "1", 0.95),
        ("0", "1", 0.0),
        ("20 kIOPS", "IOPS", 20_000.0),
        ("20 1/s", "1/s", 20.0),
        ("20 k1/s", "1/s", 20_000.0),
        ("20 k/s", "1/s", 20_000.0),
        ("21/s", "1/s", 21.0),
        ("20 Pa", "Pa", 20.0),
        ("20 kPa", "Pa", 20_000.0),
        ("20.5 K", "K", 20.5),
        ("20 count", "count", 20.0),
    ],
)
def test_a_quantity_is_read_in_base_units(text: str, unit: str, value: float) -> None:
    assert parse_quantity(text, unit) == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize(
    ("text", "unit", "words"),
    [
        ("2", "s", "no unit"),
        ("2 MB", "s", "such as 2 ms"),
        ("2 m", "s", "no unit"),
        ("2 s", "1", "0.95 or 95 %"),
        ("2 Gb", "B", "such as 8 GiB"),
        ("-3 s", "s", "not negative"),
        ("inf s", "s", "finite"),
        ("nan s", "s", "finite"),
        ("1e400 s", "s", "finite"),
        ("fast", "s", "found 'fast'"),
        ("1,5 ms", "s", "found '1,5 ms'"),
        ("1,5 min", "s", "found '1,5 min'"),
        ("1,92 TB", "B", "found '1,92 TB'"),
        ("1,000 B", "B", "found '1,000 B'"),
        ("0,95", "1", "found '0,95'"),
        ("1_5 s", "s", "found '1_5 s'"),
        ("x = 5 s", "s", "found 'x = 5 s'"),
        ("5 s -- so", "s", "found '5 s -- so'"),
        ("", "B", "found ''"),
        ("-3 Pa", "Pa", "not negative"),
        ("20K", "K", "no unit"),
        ("5 Hz", "1/s", "such as 5 k/s"),
        ("5 1/h", "1/s", "such as 5 k/s"),
        ("1,5 /s", "1/s", "found '1,5 /s'"),
        ("9" * 1000, "B", "1000 characters"),
    ],
)
def test_what_is_no_such_quantity_is_refused(text: str, unit: str, words: str) -> None:
    with pytest.raises(ValueError, match=r"^expected a quantity in") as caught:
        parse_quantity(text, unit)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("text", "quantile"),
    [("p50", 0.5), ("p99.9", 0.999), ("p0.7", 0.007), ("p0", None), ("p0.0", None), ("p100", None), ("99", None)],
)
def test_a_quantile_is_read_to_the_last_digit(text: str, quantile: float | None) -> None:
    assert quantile_of(text) == quantile


def test_a_size_is_a_whole_number_of_bytes() -> None:
    assert parse_size("4 KiB") == 4096
    with pytest.raises(ValueError, match="whole number of bytes"):
        parse_size("0.3 B")


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0.00123, "s", "1.23 ms"),
        (0, "s", "0 s"),
        (8 << 30, "B", "8 GiB"),
        (4096, "B", "4 KiB"),
        (280e6, "B/s", "280 MB/s"),
        (20_000, "1/s", "20 k/s"),
        (0.951, "1", "0.951"),
        (12, "1", "12"),
        (2090, "1", "2,090"),
        (2090.4, "1", "2.09e+03"),
    ],
)
def test_a_quantity_is_written_in_three_digits(value: float, unit: str, text: str) -> None:
    assert format_quantity(value, unit) == text


@given(st.floats(1e-9, 1e9), st.sampled_from(["s", "B/s", "1/s"]))
def test_what_is_written_can_be_read(value: float, unit: str) -> None:
    assert parse_quantity(format_quantity(value, unit), unit) == pytest.approx(value, rel=5.1e-3)


@given(st.text(), st.sampled_from(["s", "B", "B/s", "1"]))
def test_no_text_raises_anything_but_value_error(text: str, unit: str) -> None:
    try:
        value = parse_quantity(text, unit)
    except ValueError as error:
        value = 0.0 if str(error).startswith("expected a quantity in") else -1.0
    assert value >= 0


def test_one_of_a_thing_is_not_several() -> None:
    assert [counted(number, "test") for number in (0, 1, 2)] == ["0 tests", "1 test", "2 tests"]
