"""The contract of every :class:`~rackloop.abilities.Drive` with its callers. Nothing is written to the drive."""

from __future__ import annotations

from collections.abc import Callable

from rackloop.abilities import Drive
from rackloop.contracts._clause import clauses, must_raise, past, soon
from rackloop.errors import DeadlineExceeded

DriveFactory = Callable[[], Drive]

_PROTOCOLS = frozenset({"nvme", "sas", "sata"})
_IDENTIFIERS = frozenset({"by_path", "eui64", "nguid", "slot", "wwn"})
_SECTOR_BYTES = 512


def says_who_it_is(make: DriveFactory) -> None:
    """Model, serial and firmware are there and carry no padding; the protocol is one that a rack has."""
    identity = make().identify(soon())
    for name in ("model", "serial", "firmware"):
        value = getattr(identity, name)
        assert value, f"{name} is empty"
        assert value == value.strip(), f"{name} is padded: {value!r}"
    assert identity.protocol in _PROTOCOLS, f"protocol {identity.protocol!r} is none of {sorted(_PROTOCOLS)}"


def has_a_size_in_whole_sectors(make: DriveFactory) -> None:
    """``size_bytes`` is positive and a multiple of 512."""
    size_bytes = make().identify(soon()).size_bytes
    assert size_bytes > 0
    assert size_bytes % _SECTOR_BYTES == 0, f"{size_bytes} bytes are not whole sectors of {_SECTOR_BYTES}"


def leaves_out_identifiers_it_lacks(make: DriveFactory) -> None:
    """``identifiers`` has known names only, and no empty values: what is not reported is absent."""
    identifiers = make().identify(soon()).identifiers
    unknown = sorted(set(identifiers) - _IDENTIFIERS)
    assert not unknown, f"unknown identifiers: {unknown}"
    empty = sorted(name for name, value in identifiers.items() if not value.strip())
    assert not empty, f"identifiers without a value: {empty}"


def stays_the_same_drive(make: DriveFactory) -> None:
    """Asked again, by the same driver or by another, it is the same drive."""
    drive = make()
    identity = drive.identify(soon())
    assert drive.identify(soon()) == identity
    assert make().identify(soon()) == identity


def counts_its_health(make: DriveFactory) -> None:
    """Health counters have names that stay, and values that are whole numbers."""
    drive = make()
    first, second = drive.health(soon()), drive.health(soon())
    assert first, "no health counter at all"
    assert first.keys() == second.keys()
    odd = {name: value for name, value in first.items() if not name or type(value) is not int}
    assert not odd, f"not whole numbers by name: {odd}"


def refuses_a_deadline_that_is_over(make: DriveFactory) -> None:
    """A call that comes too late raises DeadlineExceeded."""
    drive = make()
    for late in (drive.identify, drive.health):
        with must_raise(DeadlineExceeded):
            late(past())


CONTRACT = clauses(__name__)
