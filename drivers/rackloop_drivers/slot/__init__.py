"""Drives removed from servers by software: by the kernel, by the slot's power, by the enclosure."""

from rackloop_drivers.slot._slot import HostSlot as HostSlot
