"""Addresses of the PCI functions that a mock server's ports are."""

from __future__ import annotations


def pci_address(index: int) -> str:
    """Domain, bus, device and function of a server's HBA port number ``index``, from 0 on: each on a bus of its own."""
    return f"0000:{0x10 + index:02x}:00.0"
