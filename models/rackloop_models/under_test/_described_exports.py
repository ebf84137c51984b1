"""A box of any vendor as one that tenants share: a file says which exports it has and what is behind each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated
from urllib.parse import unquote, urlsplit

from pydantic import Field, ValidationInfo

from rackloop.abilities import BlockDevice
from rackloop.drive_identifiers import is_one_drive
from rackloop.errors import BadInput
from rackloop.lab import Lab
from rackloop.lab.yaml import (
    Description,
    Eui64,
    Name,
    Nguid,
    Scalar,
    Size,
    Text,
    Wwn,
    compose_file,
    examine,
    find_description,
    matching,
    text_of,
    wrong,
)
from rackloop.names import guess, kind_of
from rackloop.safety import TenantRegion
from rackloop.units import counted, parse_size
from rackloop_oracles.fairness import TenantExport

_IDENTIFIERS = ("wwn", "eui64", "nguid")
_NBD = ("nbd:", "nbd+unix:")
_NBD_PORT = 10809

Reach = Callable[[str, str], BlockDevice]
"""The device of a server, which is given first, by its node there or its NBD URI."""


def _offset(value: object, _info: ValidationInfo) -> int:
    expected = "an offset such as 8 GiB, or 0 B"
    text = text_of(value, expected)
    try:
        return parse_size(text)
    except ValueError:
        raise wrong(f"expected {expected}, found {kind_of(text)}") from None


class WrittenExport(Description):
    """One export of a box."""

    drive: Name
    """The drive of the lab whose bytes it is, such as d01; it must be scratch, and permitted by the guard."""
    server: Name
    """The server of the lab on which the tenant's I/O is made, such as srv1."""
    device: Annotated[
        str,
        matching(
            r"(?:/dev/|nbd://|nbd\+unix:///)\S{1,500}", "a node such as /dev/disk/by-id/wwn-0x5..., or an NBD URI"
        ),
    ]
    """The export as that server reaches it: a node below /dev, or an NBD URI such as nbd+unix:///t1?socket=/run/nbd."""
    size: Size
    """Its size, such as 100 GiB; one that reports another is not written."""
    offset: Annotated[int, Scalar(_offset, {"type": "string", "examples": ["8 GiB"]})] | None = None
    """Its beginning on the drive; behind the export before it of the same drive by default."""
    serial: Text | None = None
    """The serial number that the export itself reports; of a node it must be given, NBD carries none."""
    wwn: Wwn | None = None
    """The WWN that the export itself reports."""
    eui64: Eui64 | None = None
    """The EUI-64 that the export itself reports."""
    nguid: Nguid | None = None
    """The NGUID that the export itself reports."""

    @property
    def is_nbd(self) -> bool:
        """Whether it is reached by NBD."""
        return self.device.startswith(_NBD)

    @property
    def identifiers(self) -> Mapping[str, str]:
        """The identifiers that it must report."""
        given = {"serial": self.serial, **{name: getattr(self, name) for name in _IDENTIFIERS}}
        return {name: value for name, value in given.items() if value is not None}


class WrittenBox(Description):
    """A whole file."""

    box: Name
    """The name of the box, which results carry."""
    exports: Annotated[tuple[WrittenExport, ...], Field(min_length=2)]
    """Its exports, one for each tenant in their order."""


@dataclass(frozen=True)
class BoxFile:
    """The box that a file describes, on a lab. Its exports have no device yet: nothing of the lab was touched."""

    box: WrittenBox

    @classmethod
    def load(cls, path: str | Path, lab: Lab) -> BoxFile:
        """The box in a file. Raises BadInput where there is none, DescriptionError with every problem it has.

        What it says is held against the lab: drives that are not scratch, servers and drives that are not there. No
        two exports may be one, which two tenants would write: offsets are what the file says, and prove nothing.
        """
        examined = examine(compose_file(find_description(path, "description of a box", ())), WrittenBox)
        exports = examined.value.exports if examined.value else ()
        for number, export in enumerate(exports):
            for key, problem in {**_problems(export, lab), **_twice(export, exports[:number])}.items():
                examined.report(("exports", number, *([key] if key else [])), problem)
        return cls(examined.finish())

    @property
    def drives(self) -> list[str]:
        """The drives behind its exports, each once."""
        return list(dict.fromkeys(export.drive for export in self.box.exports))

    @property
    def sizes_bytes(self) -> list[int]:
        """The sizes of its exports."""
        return [export.size for export in self.box.exports]


class DescribedExports:
    """The exports of the box in a file, for ``tenants`` in their order; ``reach`` gives the device of each.

    It starts nothing and ends nothing: the box is its vendor's. Raises BadInput where the tenants are more than the
    exports.
    """

    def __init__(self, file: BoxFile, tenants: Sequence[str], reach: Reach) -> None:
        self.name = file.box.box
        exports = file.box.exports
        if len(tenants) > len(exports):
            raise BadInput(
                f"box {self.name} has {counted(len(exports), 'export')} for {counted(len(tenants), 'tenant')}: "
                "describe one for each"
            )
        ends: dict[str, int] = {}
        found = []
        for tenant, export in zip(tenants, exports, strict=False):
            offset = ends.get(export.drive, 0) if export.offset is None else export.offset
            ends[export.drive] = offset + export.size
            device = reach(export.server, export.device)
            region = TenantRegion(tenant, device, offset, export.size, export.identifiers)
            found.append(TenantExport(export.server, export.drive, region))
        self.exports = tuple(found)

    def require_serving(self) -> None:
        """Nothing: whether the box serves is seen by its I/O."""

    def close(self) -> None:
        """Nothing: the box goes on."""


def _problems(export: WrittenExport, lab: Lab) -> dict[str, str]:
    """The problems of an export with the lab, by the key."""
    problems = {}
    if export.drive not in lab.drives:
        problems["drive"] = f"lab {lab.name} has no drive {export.drive!r}; {guess(export.drive, lab.drives)}"
    elif not lab.drives[export.drive].scratch:
        problems["drive"] = f"drive {export.drive} is not marked scratch: true, so that nothing on it is overwritten"
    if export.server not in lab.servers:
        problems["server"] = f"lab {lab.name} has no server {export.server!r}; {guess(export.server, lab.servers)}"
    if export.is_nbd and export.identifiers:
        given = next(iter(export.identifiers))
        problems[given] = (
            f"NBD carries no {given}, so that it cannot be compared; leave it out, the URI and the size are"
        )
    if not export.is_nbd and export.serial is None:
        problems[""] = "lacks serial: a node is written where it reports the serial it was said to have, and only then"
    return problems


def _twice(export: WrittenExport, earlier: Sequence[WrittenExport]) -> dict[str, str]:
    """The problem of an export that is one of the ``earlier`` ones of the file, by the key."""
    for number, other in enumerate(earlier):
        if _reached(export) == _reached(other):
            return {
                "device": f"{export.device} is that of exports[{number}] already: two tenants would write one export"
            }
        if is_one_drive(export.identifiers, other.identifiers):
            return {
                "serial": f"exports[{number}] is said to report the same: give a wwn, eui64 or nguid of each by which "
                "they differ, or leave one out, for two tenants would write one export"
            }
    return {}


def _reached(export: WrittenExport) -> tuple[object, ...]:
    """The export that is reached: a node of its server, or the same to every server that has its URI."""
    if not export.is_nbd:
        return (export.server, export.device)
    uri = urlsplit(export.device)
    # A host has capitals or not, the default port may be left out, and a name be quoted; a bad port is told later.
    host = uri.netloc.lower().removesuffix(f":{_NBD_PORT}")
    return (uri.scheme, host, unquote(uri.path), unquote(uri.query))
