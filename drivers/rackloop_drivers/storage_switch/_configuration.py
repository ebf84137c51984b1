"""The configuration of a storage switch: its drives and tenants, as ``docs/reference/storageswitch.md`` has them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from rackloop.abilities import WritableDrive

_SCHEMA = 1
_UNIQUE = ("wwn", "eui64", "nguid")


@runtime_checkable
class _Identified(Protocol):
    """A device that says what its path reports of its drive."""

    def identifiers(self) -> Mapping[str, str]: ...


@dataclass(frozen=True)
class SwitchedTenant:
    """A tenant of a switch: its region of a drive, and the description that its scheduler is given.

    ``weight`` is its share relative to the others', for Parda and FlashFQ. ``slo`` is the objective of a
    latency-critical tenant of ReFlex: ``iops`` of 4 KiB, ``read_percent`` and ``p95_us``. ``drive`` is the id of that
    drive, which may be left out where the switch has one. The export of a tenant that is ``read_only`` cannot be
    written; where all are, ReFlex has more to promise.
    """

    name: str
    offset_bytes: int
    size_bytes: int
    weight: float = 1.0
    slo: Mapping[str, float] | None = None
    drive: str | None = None
    read_only: bool = False

    def fields(self) -> dict[str, Any]:
        """The entry of the configuration."""
        region = {"offset": self.offset_bytes, "bytes": self.size_bytes}
        of_drive = {} if self.drive is None else {"drive": self.drive}
        told = {"weight": self.weight, "slo": self.slo, "read_only": self.read_only}
        return {"name": self.name, **of_drive, "region": region, **told}


def _entry(drive: WritableDrive) -> dict[str, Any]:
    """The entry of a drive in a configuration."""
    device = drive.device
    target = device.probe_target()
    if target.startswith(("nbd:", "nbd+unix:")):
        return {"kind": "nbd", "uri": target}
    found = device.identifiers() if isinstance(device, _Identified) else {}
    identity = {"serial": drive.serial, "size": drive.size_bytes}
    identity |= {name: found[name] for name in _UNIQUE if name in found}
    return {"kind": "device", "node": target, **identity}


def drives_of(drives: Sequence[WritableDrive]) -> tuple[dict[str, dict[str, Any]], list[str]]:
    """The entries of these drives in a configuration, by their ids, and the options by which the switch may write them.

    An NBD export is reached by its URI, which is that of the permitted drive alone. A node is held by the guard, and
    the switch compares it with its identity once more. Raises as :meth:`WritableDrive.require` does.
    """
    entries = {drive.drive_id: _entry(drive) for drive in drives}
    nodes = [drive for drive in drives if entries[drive.drive_id]["kind"] == "device"]
    # The option is for all of them: of those that are not all held, the switch claims each itself.
    held = ["--claimed"] if nodes and all(drive.is_claimed for drive in nodes) else []
    return entries, [*(f"--allow-write={drive.serial}" for drive in nodes), *held]


def configuration(
    drives: Mapping[str, Mapping[str, Any]],
    scheduler: Mapping[str, Any],
    tenants: Sequence[SwitchedTenant],
    *,
    control: str,
    nbd: str,
) -> dict[str, Any]:
    """The whole document, with the drives by their names; ``control`` and ``nbd`` are paths of the sockets."""
    return {
        "schema": _SCHEMA,
        "control": control,
        "nbd": nbd,
        "drives": [{"name": name, **drive} for name, drive in drives.items()],
        "scheduler": dict(scheduler),
        "tenants": [tenant.fields() for tenant in tenants],
    }
