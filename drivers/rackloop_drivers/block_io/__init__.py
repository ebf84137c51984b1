"""Parts of sessions with several kinds of block device: the guard's permission, and memory for C code."""

from rackloop_drivers.block_io._buffers import address_of as address_of
from rackloop_drivers.block_io._buffers import unfilled_bytes as unfilled_bytes
from rackloop_drivers.block_io._permit import Permit as Permit
