"""Quantities as people write them, ``2 ms`` or ``8 GiB``, and as the code holds them: SI base units.

Units in use are ``s``, ``B``, ``B/s``, ``1/s`` and ``1``, a count or ratio; prefixes those of SI and IEC 80000-13.
"""

from __future__ import annotations

import math
import re
from functools import lru_cache

INTEGER = re.compile(r"[+-]?[0-9]{1,18}")
"""A whole number that fits in 64 bits."""
NUMBER = re.compile(r"[+-]?(?:[0-9]{1,18}(?:\.[0-9]{0,18})?|\.[0-9]{1,18})(?:[eE][+-]?[0-9]{1,3})?")
"""A whole number, or one with a fraction or an exponent."""

_EXAMPLES = {"s": "2 ms", "B": "8 GiB", "B/s": "280 MB/s", "1/s": "5 k/s", "1": "0.95 or 95 %"}
_LONG_TIMES = {"min": 60, "h": 3600}  # Quantity reads min as milli-inches.
_LONG_TIME = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,15})?)\s*(min|h)")
# Quantity leaves commas out, by which 1,5 s would be 15 s, and reads names and remarks: x = 5 s -- y.
_NOT_READ = re.compile("[,_=]|--")
_LONGEST_TEXT = 64
# In place of a unit that Quantity does not read: 5 1/s, 5 k/s, and 5 Pa, which to it are five peta of something.
_STAND_IN = "Hz"
_QUANTILE = re.compile(r"p([0-9]{1,2}(?:\.[0-9]{1,6})?)")


@lru_cache(maxsize=4096)
def parse_quantity(text: str, unit: str) -> float:
    """The value of ``text`` in ``unit``, an SI base unit: ``parse_quantity("2 ms", "s") == 0.002``.

    Times may be in ``min`` and ``h`` too, ratios in ``%``. Raises ValueError with what was expected and found instead.
    """
    from quantiphy import QuantiPhyError, Quantity

    stripped = text.strip()
    expected = f"expected a quantity in {unit} such as {_EXAMPLES.get(unit, f'1 {unit}')}"
    if len(stripped) > _LONGEST_TEXT:
        raise ValueError(f"{expected}, found a text of {len(stripped)} characters")
    if unit == "s" and (long_time := _LONG_TIME.fullmatch(stripped)):
        return float(long_time[1]) * _LONG_TIMES[long_time[2]]
    plain = re.fullmatch(rf"({NUMBER.pattern})\s+{re.escape(unit)}", stripped)
    is_rate = unit.startswith("1/") and stripped.endswith(unit[1:])
    if plain or is_rate:
        stripped = (plain[1] if plain else re.sub(r"(?<=[^0-9.])1$", "", stripped.removesuffix(unit[1:]))) + _STAND_IN
    try:
        quantity = Quantity(_NOT_READ.sub("?", stripped), binary=True)
    except QuantiPhyError:
        raise ValueError(f"{expected}, found {text!r}") from None
    value, found_unit = float(quantity), quantity.units
    if unit == "1":
        value, found_unit = (value / 100, "1") if found_unit == "%" else (value, found_unit or "1")
    if found_unit != (_STAND_IN if plain or is_rate else unit):
        raise ValueError(f"{expected}, found {text!r}" + ("" if found_unit else ", which has no unit"))
    if not math.isfinite(value) or value < 0:
        raise ValueError(f"{expected}, finite and not negative, found {text!r}")
    return value


def parse_size(text: str) -> int:
    """The whole number of bytes that ``text`` says: ``parse_size("4 KiB") == 4096``; raises ``ValueError`` as above."""
    size = parse_quantity(text, "B")
    if not size.is_integer():
        raise ValueError(f"expected a whole number of bytes such as 8 GiB, found {text!r}")
    return int(size)


def quantile_of(text: str) -> float | None:
    """The quantile that ``text`` names, ``quantile_of("p99.9") == 0.999`` to the last digit; None where it is none."""
    found = _QUANTILE.fullmatch(text)
    return (float(f"{found[1]}e-2") or None) if found else None


def format_quantity(value: float, unit: str) -> str:
    """``value`` in SI base units for people: ``1.23 ms``, ``8 GiB``, ``5 k/s``, ``0.95``; counts in full."""
    from quantiphy import Quantity

    if unit == "1":
        return f"{value:,.0f}" if float(value).is_integer() else f"{value:.3g}"
    quantity = Quantity(value, unit[unit.startswith("1/") :])
    return quantity.binary(prec=2) if unit == "B" else quantity.render(prec=2)


def format_duration(seconds: float) -> str:
    """A time for people, in two units at most: ``0.4 s``, ``8 s``, ``2 min 5 s``, ``6 h 40 min``."""
    if 0.05 <= seconds < 0.95:
        return f"{seconds:.1f} s"
    if round(seconds) < 60:
        return f"{round(seconds)} s"
    is_long = round(seconds / 60) >= 60
    big, small = divmod(round(seconds / 60) if is_long else round(seconds), 60)
    units = ("h", "min") if is_long else ("min", "s")
    return f"{big} {units[0]} {small} {units[1]}" if small else f"{big} {units[0]}"


def counted(number: int, noun: str) -> str:
    """A number of things in words: ``1 test``, ``0 tests``, ``2 tests``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
