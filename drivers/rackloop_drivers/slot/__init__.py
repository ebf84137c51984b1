"""Drives taken out of servers without a hand on them: by the kernel, by the slot's power, by the enclosure."""

from rackloop_drivers.slot._slot import HostSlot

__all__ = ["HostSlot"]
