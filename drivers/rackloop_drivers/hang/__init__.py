"""Servers whose programs are held by the kernel's freezer: all but those by which the harness reaches them."""

from rackloop_drivers.hang._hang import HostHang as HostHang
