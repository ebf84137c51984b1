"""A fault: sectors of a real drive that cannot be read, made by the drive itself, and what they held."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

from rackloop.abilities import BlockDevice, Host, WritableDrive
from rackloop.abilities.blocks import BLOCK_BYTES, Blocks, IoFailed
from rackloop.clock import Deadline
from rackloop.drive_identifiers import normal_text
from rackloop.errors import BadInput, FaultRefused, LabError, NotSupported
from rackloop_drivers.drive.host_drive._marks import marks_by
from rackloop_drivers.host_tools import NoDriveThere, identify_drive

MEDIA_ERROR = "media_error"
MOST_BYTES = 256 << 10
"""The size of the sectors of one fault, whose data is kept in the fault's note."""

_FIELDS = frozenset({"kind", "lba", "sectors", "mode", "on"})
_SIZES = """
name=$(readlink -f "$1") || exit 1
cd "/sys/block/${name##*/}/queue" && cat logical_block_size physical_block_size
"""


class Permit(Protocol):
    """The guard's permission to overwrite a drive; ``is_first`` where nothing was done to it yet."""

    def __call__(self, deadline: Deadline, *, is_first: bool = False) -> WritableDrive: ...


@dataclass(frozen=True)
class ReachedDrive:
    """A drive where it is now: ``device`` of the server ``host``, as HostDrive takes it, and ``path`` for I/O there.

    ``permit`` gives the guard's permission to overwrite it, for which nothing is claimed: others of the same lease may
    hold it. ``blocks`` opens a session by either.
    """

    host: Host
    device: str
    path: BlockDevice
    permit: Permit
    blocks: Callable[[BlockDevice | WritableDrive], AbstractContextManager[Blocks]]


def beyond_drives(fault: Mapping[str, Any]) -> str | None:
    """The reason why no real drive has media errors as ``fault`` wants them; None where one may."""
    mode, on = fault.get("mode", "until_rewritten"), fault.get("on", "read")
    if mode == "until_rewritten" and on == "read":
        return None
    return (
        "a real drive's sectors cannot be read until they are rewritten (mode until_rewritten, on read); "
        f"mode {mode}, on {on} is for simulated drives"
    )


class MediaErrors:
    """:class:`~rackloop_drivers.host_tools.Breaking` of a drive's sectors; its one kind is ``media_error``.

    ``reach`` finds the drive ``drive_id`` where it is now, and raises NoDriveThere where it is nowhere; sectors of
    ``sector_bytes`` are meant, whole blocks of 4096 bytes and of the drive's own. The drive marks them by its own
    command, which destroys what they hold: under the guard's permission, and noted before. Each block is read again
    right before it is marked. To end it what they held is written to those that are still unreadable, under another
    permission, and to no other; so what was written meanwhile stays. No drive compares and writes at once: what is
    written while a block is being marked, or between the failed read of one and its rewriting, is lost. Raises
    NotSupported where the drive has no such command, GuardRefused where the guard refuses it, LabError where the
    sectors were written since they were noted.
    """

    kinds = frozenset({MEDIA_ERROR})

    def __init__(self, drive_id: str, sector_bytes: int, reach: Callable[[Deadline], ReachedDrive]) -> None:
        self._drive_id = drive_id
        self._sector_bytes = sector_bytes
        self._reach = reach

    def prepare(self, fault: Mapping[str, Any], deadline: Deadline) -> dict[str, Any]:
        """See :class:`~rackloop_drivers.host_tools.Breaking`."""
        offset, length = self._range(fault)
        drive = self._reach(deadline)
        with drive.permit(deadline, is_first=True) as writable:
            node = writable.device.probe_target()
            protocol = identify_drive(drive.host, drive.device, deadline).identity.protocol
            marks_by(drive.host, protocol, node).require(deadline)
            logical, physical = self._sizes(drive.host, node, deadline)
            # Only an NVMe drive takes less than it writes at once.
            block = max(BLOCK_BYTES, logical if protocol == "nvme" else physical)
            self._require_whole(offset, length, block)
            with drive.blocks(writable) as blocks:
                if (content := _read(blocks, offset, length)) is None:
                    raise FaultRefused(
                        f"{MEDIA_ERROR} of {self._drive_id}",
                        ["sectors there cannot be read already: name others, or end the fault that stands there"],
                    )
        return {
            "serial": writable.serial,
            "protocol": protocol,
            "offset": offset,
            "logical": logical,
            "block": block,
            "content": b64encode(content).decode("ascii"),
        }

    def start(self, note: Mapping[str, Any], deadline: Deadline) -> None:
        """See :class:`~rackloop_drivers.host_tools.Breaking`."""
        drive, logical, pieces = self._reach(deadline), note["logical"], list(_pieces(note))
        with drive.permit(deadline) as writable, drive.blocks(writable) as blocks:
            marks = marks_by(drive.host, note["protocol"], writable.device.probe_target())
            for at, held in pieces:
                self._require_unchanged(drive, blocks, at, held)
            for number, (at, held) in enumerate(pieces):
                try:
                    # Jobs of the same lease may write here, and the note took time, as do the marks before this one.
                    self._require_unchanged(drive, blocks, at, held)
                except LabError:
                    self._give_back(drive, blocks, pieces[:number])
                    raise
                marks.mark(at // logical, len(held) // logical, logical, deadline)
            if any(_read(blocks, at, len(held)) is not None for at, held in pieces):
                raise LabError(f"{self._where(drive)}: the drive took `{marks.tool}`, and still reads these sectors")

    def stands(self, note: Mapping[str, Any], deadline: Deadline) -> bool:
        """See :class:`~rackloop_drivers.host_tools.Breaking`; it does where the drive is gone."""
        drive = self._found(note, deadline)
        return drive is None or not _is_readable(drive, note)

    def end(self, note: Mapping[str, Any], deadline: Deadline) -> None:
        """See :class:`~rackloop_drivers.host_tools.Breaking`."""
        if (drive := self._found(note, deadline)) is None:
            raise LabError(
                f"drive {note['serial']} ({self._drive_id}) has sectors that were made unreadable, and is not where "
                "it should be: plug it in there again"
            )
        if _is_readable(drive, note):
            return
        with drive.permit(deadline) as writable, drive.blocks(writable) as blocks:
            self._give_back(drive, blocks, _pieces(note))

    def _require_unchanged(self, drive: ReachedDrive, blocks: Blocks, at: int, held: bytes) -> None:
        """Return where a block holds what its note says. Raises LabError where it was written meanwhile."""
        if _read(blocks, at, len(held)) != held:
            raise LabError(
                f"{self._where(drive)}: the {len(held)} bytes at {at} were written while they were to be made "
                "unreadable, and no sectors are: keep jobs off them, or name others"
            )

    def _give_back(self, drive: ReachedDrive, blocks: Blocks, pieces: Iterable[tuple[int, bytes]]) -> None:
        """Write what blocks held to those that cannot be read, and leave those that can: they were written since."""
        for at, held in pieces:
            if _read(blocks, at, len(held)) is None:
                blocks.write(at, held)
                if _read(blocks, at, len(held)) is None:
                    raise LabError(
                        f"{self._where(drive)}: the {len(held)} bytes at {at} were written again and still cannot "
                        "be read; replace the drive"
                    )
        blocks.flush()

    def _found(self, note: Mapping[str, Any], deadline: Deadline) -> ReachedDrive | None:
        """The drive of a note; None where it, or any, is not there."""
        try:
            drive = self._reach(deadline)
            there = identify_drive(drive.host, drive.device, deadline).identity.serial
        except NoDriveThere:
            return None
        return drive if normal_text(there) == normal_text(note["serial"]) else None

    def _range(self, fault: Mapping[str, Any]) -> tuple[int, int]:
        """The first byte and how many of the sectors that are meant."""
        if surplus := sorted(fault.keys() - _FIELDS - {"times"}):
            raise BadInput(f"{MEDIA_ERROR} of {self._drive_id} takes no {', '.join(surplus)}")
        if why := beyond_drives(fault):
            raise NotSupported(f"{self._drive_id}: {why}")
        offset, length = (int(fault[name]) * self._sector_bytes for name in ("lba", "sectors"))
        if length > MOST_BYTES:
            most = MOST_BYTES // self._sector_bytes
            raise BadInput(f"{MEDIA_ERROR} of {self._drive_id}: a real drive takes {most} sectors at most in one fault")
        return offset, length

    def _require_whole(self, offset: int, length: int, block_bytes: int) -> None:
        if offset % block_bytes or length % block_bytes:
            unit = max(1, block_bytes // self._sector_bytes)
            raise BadInput(
                f"{MEDIA_ERROR} of {self._drive_id}: a real drive is marked in whole blocks of {block_bytes} bytes: "
                f"give lba and sectors that are multiples of {unit}"
            )

    def _sizes(self, host: Host, node: str, deadline: Deadline) -> tuple[int, int]:
        """The sector that the drive counts in, and the one that it writes in."""
        said = host.run(["sh", "-c", _SIZES, "sizes", node], deadline)
        try:
            logical, physical = map(int, said.stdout.split())
        except ValueError as error:
            why = said.stderr.strip() or f"it says {said.stdout.strip()!r}"
            raise LabError(
                f"{host.name}: the kernel does not say how large the sectors of {node} are: {why}"
            ) from error
        return logical, physical

    def _where(self, drive: ReachedDrive) -> str:
        return f"{drive.host.name}:{drive.device}"


def _read(blocks: Blocks, offset: int, length: int) -> bytes | None:
    """The bytes there; None where sectors cannot be read."""
    try:
        return blocks.read(offset, length)
    except IoFailed as error:
        if error.is_unreadable:
            return None
        raise


def _is_readable(drive: ReachedDrive, note: Mapping[str, Any]) -> bool:
    """Whether all sectors of a note can be read."""
    with drive.blocks(drive.path) as blocks:
        return _read(blocks, note["offset"], len(b64decode(note["content"]))) is not None


def _pieces(note: Mapping[str, Any]) -> Iterator[tuple[int, bytes]]:
    """Each block of a note: where it is, and what it held."""
    content, block = b64decode(note["content"]), note["block"]
    for at in range(0, len(content), block):
        yield note["offset"] + at, content[at : at + block]
