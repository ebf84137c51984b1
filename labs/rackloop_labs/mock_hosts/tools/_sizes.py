"""Sizes with the suffixes that nvme-cli gives them."""

from __future__ import annotations

_SI = {10**15: "P", 10**12: "T", 10**9: "G", 10**6: "M", 10**3: "k"}
_BINARY = {2**50: "Pi", 2**40: "Ti", 2**30: "Gi", 2**20: "Mi", 2**10: "Ki"}


def si_size(size_bytes: int) -> tuple[float, str]:
    """A size in the largest decimal unit it has at least one of, and that unit's prefix."""
    for magnitude, suffix in _SI.items():
        if size_bytes >= magnitude:
            return size_bytes / magnitude, suffix
    return float(size_bytes), ""


def binary_size(size_bytes: int) -> tuple[int, str]:
    """A size in the largest binary unit it has at least one of, rounded, and that unit's prefix."""
    for magnitude, suffix in _BINARY.items():
        if size_bytes >= magnitude:
            return (size_bytes + magnitude // 2) // magnitude, suffix
    return size_bytes, ""
