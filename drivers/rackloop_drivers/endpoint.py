"""Parser for the addresses of boxes."""

from __future__ import annotations

from ipaddress import IPv6Address
from urllib.parse import urlsplit

from rackloop.errors import BadInput

__all__ = ["host_and_port", "is_ipv6"]


def host_and_port(address: str, default_port: int) -> tuple[str, int]:
    """The parts of ``host``, ``host:port``, an IPv6 address or ``[IPv6]:port``. Raises BadInput for anything else."""
    if is_ipv6(address):
        return address, default_port
    try:
        parts = urlsplit(f"//{address}")
        host, port = parts.hostname, parts.port
        # What looks a name up would raise this, and not all of them know it.
        (host or "").encode("idna")
    except ValueError as error:
        raise BadInput(f"{address!r} is no address: {error}; give 'host' or 'host:port'") from None
    if host is None or port == 0 or parts.netloc != address or "@" in address:
        raise BadInput(f"{address!r} is no address: give 'host' or 'host:port'")
    return host, default_port if port is None else port


def is_ipv6(address: str) -> bool:
    """Whether it is an IPv6 address, without a port."""
    try:
        IPv6Address(address)
    except ValueError:
        return False
    return True
