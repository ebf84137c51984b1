"""Simulated drives, asked through rackd's control socket."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from rackloop.abilities import DriveIdentity, SanitizeMethod
from rackloop.clock import Deadline
from rackloop.drive_identifiers import normal_text
from rackloop.errors import GuardRefused, LabError, NotSupported, ProtocolError
from rackloop_drivers.rackd import RackdControl

if TYPE_CHECKING:
    from rackloop.abilities import WritableDrive

_IDENTIFIERS = ("wwn", "eui64", "nguid")


class RackdDrive:
    """A Drive of a simulated rack, and its Sanitizer: whichever the port of a server sees now.

    ``slot`` says which one where an expander is there.
    ``location`` is the NBD export on the same path, ``srv1.p0`` or ``srv1.p0.s3``.
    """

    def __init__(self, control: RackdControl, *, server: str, port: str, slot: int | None = None) -> None:
        self._control = control
        self._slot = slot
        self._where: dict[str, Any] = {"server": server, "port": port}
        self.location = f"{server}.{port}"
        if slot is not None:
            self._where["slot"] = slot
            self.location += f".s{slot}"

    def in_slot(self, slot: int) -> RackdDrive:
        """The drive in a slot of the expander that is there."""
        return RackdDrive(self._control, server=self._where["server"], port=self._where["port"], slot=slot)

    def identify(self, deadline: Deadline) -> DriveIdentity:
        """The identity that the drive reports; one that was asked for by its slot has that slot.

        Raises LabError where no drive is online there.
        """
        return _identity_of(self._online(deadline), self._slot)

    def health(self, deadline: Deadline) -> dict[str, int]:
        """The drive's counters by rackd's names: media_errors, phy_resets, power_cycles, bytes_written...

        A drive with a timing model adds what that knows of its wear, such as percentage_used or read_retries.
        """
        stats = self._control.request("drive_stats", deadline, drive=self._online(deadline)["drive"])
        return {name: value for name, value in stats.items() if name != "t_ns" and isinstance(value, int)}

    def methods(self, deadline: Deadline) -> tuple[SanitizeMethod, ...]:
        """The methods by which the drive erases itself, the one to prefer first."""
        return _methods_of(self._online(deadline))

    def sanitize(self, drive: WritableDrive, method: SanitizeMethod, deadline: Deadline) -> None:
        """Have the drive erase itself, at once; I/O that comes meanwhile waits.

        Raises GuardRefused where ``drive`` is the permission to write another drive, NotSupported where the drive
        does not offer ``method``, LabError where the permission was given back or the drive cannot be asked.
        """
        answer = self._online(deadline)
        serial = normal_text(str(answer.get("serial")))
        device = drive.device
        if serial != drive.serial:
            reason = f"at {self.location} is the drive {serial}, the permission is for {drive.serial} at {device}"
            raise GuardRefused(drive.drive_id, [reason])
        offered = _methods_of(answer)
        if method not in offered:
            raise NotSupported(f"the drive at {self.location} offers {', '.join(offered)}, not {method}")
        self._control.request("sanitize", deadline, drive=answer["drive"], method=str(method))

    def _online(self, deadline: Deadline) -> dict[str, Any]:
        answer = self._control.request("identify", deadline, **self._where)
        if answer.get("drive") is None:
            raise LabError(f"no drive is online at {self.location}; map one there, or wait until it is online")
        return answer


def survey(
    control: RackdControl,
    drive_ids: Iterable[str],
    deadline: Deadline,
    *,
    slots: Mapping[str, int | None] | None = None,
) -> list[DriveIdentity]:
    """The identities of drives of a simulated rack, each asked by its name, mapped or not.

    ``slots`` says which of them are in a slot of an expander: they have it among their identifiers then.
    """
    return [
        _identity_of(control.request("identify", deadline, drive=drive_id), (slots or {}).get(drive_id))
        for drive_id in drive_ids
    ]


def _methods_of(answer: dict[str, Any]) -> tuple[SanitizeMethod, ...]:
    try:
        return tuple(SanitizeMethod(name) for name in answer["sanitize_methods"])
    except (KeyError, TypeError, ValueError) as error:
        raise ProtocolError(f"rackd said of a drive's sanitize methods {error}: {answer}") from error


def _identity_of(answer: dict[str, Any], slot: int | None = None) -> DriveIdentity:
    try:
        identifiers = {name: str(answer[name]) for name in _IDENTIFIERS if answer.get(name) is not None}
        if slot is not None:
            identifiers["slot"] = str(slot)
        return DriveIdentity(
            model=str(answer["model"]),
            serial=str(answer["serial"]),
            firmware=str(answer["firmware"]),
            protocol=str(answer["protocol"]),
            size_bytes=int(answer["bytes"]),
            identifiers=identifiers,
        )
    except (KeyError, TypeError, ValueError) as error:
        raise ProtocolError(f"rackd identified a drive without {error}: {answer}") from error
