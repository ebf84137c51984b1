"""An md array of regions of a server's drives, made as a fault is: noted there, and taken apart by any later run.

Sources: mdadm(8), losetup(8), the kernel's ``Documentation/admin-guide/md.rst``.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from rackloop.abilities import Host, WritableDrive
from rackloop.clock import Deadline
from rackloop.errors import BadInput, LabError, NotSupported, ProtocolError, ToolError
from rackloop_drivers.failed_command import failure_of

MD_ARRAY = "md_array"
"""The one kind of :class:`HostArrays`."""

_PACKAGES = {"mdadm": "mdadm", "losetup": "util-linux"}
_NO_TOOL, _NO_KERNEL = 5, 6
_NAME = re.compile(r"[a-z0-9-]{1,32}")
_LEAST_DRIVES = {5: 3, 6: 4}
_SECTOR_BYTES = 512
_GIVEN = frozenset({"kind", "name", "level", "chunk_kib", "offset_bytes", "size_bytes", "drives", "devices"})


def array_of(
    name: str,
    permits: Sequence[WritableDrive],
    *,
    level: int,
    spares: int,
    chunk_bytes: int,
    offset_bytes: int,
    size_bytes: int,
) -> dict[str, Any]:
    """The array ``name`` of RAID ``level`` 5 or 6 as :class:`HostArrays` makes it, of the drives that may be written.

    The last ``spares`` of them wait until they are needed. Each gives ``size_bytes`` from ``offset_bytes`` on. Raises
    BadInput where that is no array, and as :meth:`WritableDrive.require` does.
    """
    drives = len(permits) - spares
    if level not in _LEAST_DRIVES or drives < _LEAST_DRIVES[level] or spares < 0:
        raise BadInput(
            f"RAID {level} cannot have {drives} drives and {spares} spares: RAID 5 takes 3 drives, 6 takes 4"
        )
    return {
        "kind": MD_ARRAY,
        "name": name,
        "level": level,
        "chunk_kib": chunk_bytes >> 10,
        "offset_bytes": offset_bytes,
        "size_bytes": size_bytes,
        "drives": drives,
        "devices": [permit.device.probe_target() for permit in permits],
    }


@dataclass(frozen=True)
class ArrayMember:
    """A loop device of an array by its kernel name, the drive beneath by its own, and where on that it begins."""

    loop: str
    drive: str
    offset_bytes: int


@dataclass(frozen=True)
class ArrayThere:
    """An array by its kernel name and UUID, its size, and its members in the order in which they were given."""

    kernel_name: str
    uuid: str
    size_bytes: int
    members: tuple[ArrayMember, ...]


class HostArrays:
    """:class:`~rackloop_drivers.host_tools.Breaking` of a server: its one kind is an array of some of its drives.

    What is to be made is told by :func:`array_of`. Of each drive it takes a region, by way of a loop device: so the
    guard's claim on the drive stays where it is. What stood there is lost. Ended, no array and no loop device is left,
    and on the drives nothing that mdadm takes for an array; a reboot ends it too. Needs root, mdadm and the kernel's
    raid456 there, else ToolError and NotSupported.
    """

    kinds = frozenset({MD_ARRAY})

    def __init__(self, host: Host) -> None:
        self._host = host

    def prepare(self, fault: Mapping[str, Any], deadline: Deadline) -> dict[str, Any]:
        """See :class:`~rackloop_drivers.host_tools.Breaking`."""
        if fault.keys() != _GIVEN:
            raise BadInput(f"{MD_ARRAY} takes {', '.join(sorted(_GIVEN))}, not {', '.join(sorted(fault))}")
        HostArray(self._host, fault["name"]).run("look", deadline=deadline)
        return {}

    def start(self, note: Mapping[str, Any], deadline: Deadline) -> None:
        """See :class:`~rackloop_drivers.host_tools.Breaking`."""
        fault = note["fault"]
        wanted = [fault[name] for name in ("level", "chunk_kib", "offset_bytes", "size_bytes", "drives")]
        self._of(note).run("begin", *map(str, wanted), *fault["devices"], deadline=deadline)

    def stands(self, note: Mapping[str, Any], deadline: Deadline) -> bool:
        """See :class:`~rackloop_drivers.host_tools.Breaking`."""
        return self._of(note).run("stands", deadline=deadline).strip() == "yes"

    def end(self, note: Mapping[str, Any], deadline: Deadline) -> None:
        """See :class:`~rackloop_drivers.host_tools.Breaking`."""
        self._of(note).run("end", deadline=deadline)

    def _of(self, note: Mapping[str, Any]) -> HostArray:
        return HostArray(self._host, note["fault"]["name"])


class HostArray:
    """The array that :class:`HostArrays` made as ``name`` on a server. Raises BadInput for a name that is none."""

    def __init__(self, host: Host, name: str) -> None:
        if not _NAME.fullmatch(name):
            raise BadInput(f"{name!r} is no name of an array: 1 to 32 of a to z, 0 to 9 and -")
        self._host = host
        self._name = name

    def there(self, deadline: Deadline) -> ArrayThere:
        """The array as it is there now. Raises LabError where no array has its drives, ProtocolError."""
        said = self.run("show", deadline=deadline)
        rows = [line.split() for line in said.splitlines()]
        try:
            [(_, kernel_name, uuid, sectors)] = [row for row in rows if row[0] == "array"]
            members = [ArrayMember(row[1], row[2], int(row[3])) for row in rows if row[0] == "drive"]
            return ArrayThere(kernel_name, uuid, _SECTOR_BYTES * int(sectors), tuple(members))
        except (IndexError, ValueError) as error:
            raise ProtocolError(f"{self._host.name}: an array was to be shown, and it said {said!r}") from error

    def assemble(self, deadline: Deadline) -> None:
        """Put it together anew from the members that know most, where it has lost too many. It must not be open."""
        self.run("assemble", deadline=deadline)

    def fail(self, loops: Collection[str], deadline: Deadline) -> None:
        """Mark members failed; those beyond the redundancy the kernel refuses, and counts as failed all the same."""
        self.run("fail", *loops, deadline=deadline)

    def take_back(self, loops: Collection[str], deadline: Deadline) -> None:
        """Have these members again, as if they were new: the kernel rebuilds what they had, or keeps them as spares."""
        self.run("return", *loops, deadline=deadline)

    def run(self, what: str, *arguments: str, deadline: Deadline) -> str:
        """Run the script on the server; what it printed. Raises ToolError, NotSupported and LabError."""
        script = files("rackloop_drivers.md").joinpath("array.sh").read_text(encoding="utf-8")
        argv: Sequence[str] = ("sh", "-c", script, "array", what, self._name, *arguments)
        completed = self._host.run(argv, deadline)
        said = failure_of(completed)
        if completed.status == _NO_TOOL:
            tool = completed.stdout.strip()
            raise ToolError(f"{tool} was not found on {self._host.name}: install its package {_PACKAGES[tool]} there")
        if completed.status == _NO_KERNEL:
            raise NotSupported(f"{self._host.name} makes no array of drives: {said}")
        if completed.status:
            raise LabError(f"{self._host.name}: array {self._name}: {said}; it takes root on the server")
        return completed.stdout
