"""Where the HBA ports of a mock server are on its PCI bus."""

from __future__ import annotations


def pci_address(index: int) -> str:
    """Domain, bus, device and function of a server's port number ``index``, from 0 on.

    Each has a bus of its own, from 0000:10:00.0 on.
    """
    return f"0000:{0x10 + index:02x}:00.0"
