"""Identifiers of drives: one spelling for each, so that what a drive says can be compared with what is described.

The same World Wide Name is ``5000c500a0000001`` in a description, ``0x5000c500a0000001`` to ``lsblk`` and
``naa.5000c500a0000001`` in sysfs; ATA and SCSI pad models and serial numbers with spaces; an NVMe drive without an
NGUID or EUI-64 reports it as zeroes (NVM Express Base Specification, Identify Namespace).
"""

from __future__ import annotations

import re

IDENTIFIERS = ("wwn", "eui64", "nguid", "by_path", "slot")
"""The keys of ``DriveIdentity.identifiers``."""

_PREFIXES = {
    "wwn": ("wwn-", "naa.", "eui.", "0x"),
    "eui64": ("nvme-", "eui.", "0x"),
    "nguid": ("nvme-", "eui.", "0x"),
}
_LENGTHS = {"wwn": (16, 32), "eui64": (16,), "nguid": (32,)}
_SEPARATORS = str.maketrans("", "", ":- ")
_HEX = re.compile(r"[0-9a-f]+")


def normal_text(value: str) -> str:
    """A model or a serial number without padding: no space at its ends, one where there were several."""
    return " ".join(value.split())


def normal_identifier(kind: str, value: str) -> str | None:
    """The identifier of this kind in its one spelling; None where the value says that there is none.

    Raises ValueError where it cannot be an identifier of this kind.
    """
    if kind not in IDENTIFIERS:
        raise ValueError(f"{kind!r} is no kind of identifier; known: {', '.join(IDENTIFIERS)}")
    text = normal_text(value)
    if kind == "by_path":
        return text.removeprefix("/dev/disk/by-path/") or None
    if kind == "slot":
        return str(int(text)) if text.isascii() and text.isdigit() else text or None
    digits = text.lower()
    for prefix in _PREFIXES[kind]:
        digits = digits.removeprefix(prefix)
    digits = digits.translate(_SEPARATORS)
    if not digits.strip("0"):
        return None
    lengths = _LENGTHS[kind]
    if not _HEX.fullmatch(digits) or len(digits) not in lengths:
        raise ValueError(f"{value!r} is no {kind}: expected {' or '.join(map(str, lengths))} hexadecimal digits")
    return digits
