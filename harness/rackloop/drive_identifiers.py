"""Identifiers of drives: one spelling for each, so that what a drive says can be compared with what is described.

The same World Wide Name is ``5000c500a0000001`` in a description, ``0x5000c500a0000001`` to ``lsblk`` and
``naa.5000c500a0000001`` in sysfs; ATA and SCSI pad models and serial numbers with spaces; an NVMe drive without an
NGUID or EUI-64 reports it as zeroes (NVM Express Base Specification, Identify Namespace).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

IDENTIFIERS = ("wwn", "eui64", "nguid", "by_path", "slot")
"""The keys of ``DriveIdentity.identifiers``."""

UNIQUE_IDENTIFIERS = ("serial", "wwn", "eui64", "nguid")
"""The identifiers that no two drives may share."""

PCI_ADDRESS = r"(?<![0-9a-f])[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]"
"""The pattern of a PCI function's address. Intel VMD gives what is behind it domains of more than four digits."""

_NVME_PATH = re.compile(r"c\d+(?=n\d+$)")
_PREFIXES = {"wwn": ("wwn-", "naa.", "eui.", "0x"), "eui64": ("nvme-", "eui.", "0x"), "nguid": ("nvme-", "eui.", "0x")}
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
    if not _HEX.fullmatch(digits) or len(digits) not in _LENGTHS[kind]:
        raise ValueError(f"{value!r} is no {kind}: expected {' or '.join(map(str, _LENGTHS[kind]))} hexadecimal digits")
    return digits


def is_on_path(name: str, path: str) -> bool:
    """Whether the by-path ``name`` begins with ``path`` as a whole: ``ata-1`` begins ``ata-1.0``, not ``ata-10``."""
    return name.startswith(path) and not (name[len(path) : len(path) + 1].isalnum() and path[-1:].isalnum())


def nvme_drive_of(name: str) -> str:
    """The kernel name of an NVMe drive, of which ``name`` may be a path: ``nvme0n1`` of ``nvme0c0n1``."""
    return _NVME_PATH.sub("", name)


def conflicts(expected: Mapping[str, str], reported: Mapping[str, str], who: str) -> Iterator[str]:
    """Differences between what is expected and what ``who`` reports; what is not expected at all is no conflict."""
    for name, value in reported.items():
        try:
            found = _normal(name, value)
            wanted = _normal(name, expected[name]) if name in expected else found
        except ValueError as error:
            yield f"the {name} cannot be compared: {error}"
            continue
        if found != wanted:
            yield f"the {name} is described as {expected[name]}, {who} reports {value}"
        elif name in expected and found is None:
            yield f"the {name} is described as {expected[name]}, which is no identifier"


def unique_of(serial: str, identifiers: Mapping[str, str]) -> set[tuple[str, str]]:
    """The identifiers that no two drives may share, in one spelling; what has none stays as it is."""
    found: set[tuple[str, str]] = set()
    for name, value in {"serial": serial, **identifiers}.items():
        if name in UNIQUE_IDENTIFIERS:
            try:
                normal = _normal(name, value)
            except ValueError:
                normal = value
            if normal is not None:
                found.add((name, normal))
    return found


def is_one_drive(one: Mapping[str, str], other: Mapping[str, str]) -> bool:
    """Whether both are told of one drive: namespaces of a controller share its serial, not what else both tell."""
    mine, its = (unique_of(told.get("serial", ""), told) for told in (one, other))
    both = {name for name, _ in mine} & {name for name, _ in its}
    alike = {name for name, value in mine & its if value}
    return bool(alike) and (alike != {"serial"} or both == alike)


def _normal(name: str, value: str) -> str | None:
    return normal_text(value) if name == "serial" else normal_identifier(name, value)
