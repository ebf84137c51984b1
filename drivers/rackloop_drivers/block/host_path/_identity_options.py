"""The identity of a drive as options of rackprobe, which compares it with what the kernel read."""

from __future__ import annotations

from rackloop.abilities import DriveIdentity

_NAMES = ("wwn", "eui64", "nguid")


def identity_options(identity: DriveIdentity) -> list[str]:
    """The options that ``rackprobe hold`` and ``rackprobe serve`` take."""
    names = [f"--{kind}={identity.identifiers[kind]}" for kind in _NAMES if kind in identity.identifiers]
    return [f"--serial={identity.serial}", f"--size={identity.size_bytes}", *names]
