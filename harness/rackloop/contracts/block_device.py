"""The contract of every :class:`~rackloop.abilities.BlockDevice` with its callers. Nothing is written to the device."""

from __future__ import annotations

from collections.abc import Callable

from rackloop.abilities import BlockDevice
from rackloop.contracts._clause import clauses, must_raise
from rackloop.errors import LabError, NotSupported

BlockDeviceFactory = Callable[[], BlockDevice]

_SECTOR_BYTES = 512
_TARGETS = ("/", "nbd://", "nbd+unix://")


def has_a_size_in_whole_sectors(make: BlockDeviceFactory) -> None:
    """``size_bytes`` is positive, a multiple of 512, and the same when asked again."""
    device = make()
    assert device.size_bytes > 0
    assert device.size_bytes % _SECTOR_BYTES == 0, f"{device.size_bytes} bytes are not whole sectors of {_SECTOR_BYTES}"
    assert make().size_bytes == device.size_bytes


def tells_fio_where_it_is(make: BlockDeviceFactory) -> None:
    """``fio_options`` name an engine and either a URI or a file, never both."""
    options = make().fio_options()
    assert options.get("ioengine"), "fio is given no ioengine"
    places = sorted({"filename", "uri"} & options.keys())
    assert len(places) == 1, f"fio needs either filename or uri, and is given {places}"


def tells_the_probe_where_it_is(make: BlockDeviceFactory) -> None:
    """``probe_target`` is an absolute path or an NBD URI, and the place that fio is given too."""
    device = make()
    target, options = device.probe_target(), device.fio_options()
    assert target.startswith(_TARGETS), f"{target!r} starts with none of {_TARGETS}"
    # fio splits file names at colons unless they are escaped.
    assert target == options.get("uri", options.get("filename", "").replace("\\:", ":"))


def says_who_uses_it(make: BlockDeviceFactory) -> None:
    """Each claim of ``usage`` is a part of a sentence; an unused device has none."""
    claims = make().usage().claims
    assert all(claim.strip() for claim in claims), f"empty claims: {claims}"


def is_claimed_once(make: BlockDeviceFactory) -> None:
    """While one holds the claim no other gets it; once it is closed, the next one does."""
    first = make().claim_exclusive()
    if first is None:
        raise NotSupported("nothing on this machine can claim this device for itself")
    try:
        with must_raise(LabError):
            make().claim_exclusive()
    finally:
        first.close()
    again = make().claim_exclusive()
    assert again is not None, "a claim that was given back cannot be had again"
    again.close()


CONTRACT = clauses(__name__)
