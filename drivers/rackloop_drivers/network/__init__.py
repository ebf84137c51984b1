"""Servers cut off their network by themselves: a packet filter that lets the harness's own SSH through."""

from rackloop_drivers.network._partition import HostPartition as HostPartition
