"""The text form of measurements, intervals and limits, the same in every report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rackloop.measurement import Cause
from rackloop.units import format_quantity

_PROVISIONING = "provisioning"
#: The entry that says of a run that was killed between two tests that it was.
KILLED_RUN = "run"


def is_provisioning(entry: str) -> bool:
    """Whether an entry of a run is its provisioning, which each worker may have of its own."""
    return entry == _PROVISIONING or entry.startswith(f"{_PROVISIONING}-")


def is_test(entry: str) -> bool:
    """Whether an entry of a run is a test: provisioning is none, nor is the entry of a run that was killed."""
    return entry != KILLED_RUN and not is_provisioning(entry)


def labels_text(labels: Mapping[str, str]) -> str:
    """``stack=comreset, bs=4096``."""
    return ", ".join(f"{key}={value}" for key, value in sorted(labels.items()))


def measure_text(name: str, labels: Mapping[str, str]) -> str:
    """``remap.latency (stack=comreset)``."""
    return f"{name} ({labels_text(labels)})" if labels else name


def value_text(value: float | None, unit: str) -> str:
    """A value with its unit, or ``not claimed`` where there are too few samples for it."""
    return "not claimed" if value is None else format_quantity(value, unit)


def interval_text(ci95: Sequence[float | None] | None, unit: str) -> str:
    """``1.02 ms to 1.11 ms``; open at an end that the samples cannot bound, and empty for what has no interval."""
    if ci95 is None:
        return ""
    low, high = ci95
    if low is None and high is None:
        return "too few samples"
    if low is None or high is None:
        return f"at most {format_quantity(high, unit)}" if high is not None else f"at least {value_text(low, unit)}"
    return f"{format_quantity(low, unit)} to {format_quantity(high, unit)}"


def cause_text(cause: Cause, *, is_simulated: bool) -> str:
    """The cause in words: the product of a mock lab is a simulated one."""
    return f"simulated {cause}" if cause is Cause.PRODUCT and is_simulated else str(cause)


def limit_text(limits: Mapping[str, Any] | None, unit: str) -> str:
    """``max 2 ms``, ``min 100 MB/s``; empty without a limit."""
    if not limits:
        return ""
    bounds = [(word, limits.get(word)) for word in ("min", "max")]
    return ", ".join(f"{word} {format_quantity(float(bound), unit)}" for word, bound in bounds if bound is not None)
