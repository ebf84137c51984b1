"""Boxes that serve remote flash over TCP, as far as what was published of them goes."""

from __future__ import annotations

from dataclasses import dataclass

from rackloop_models.drives import Cores, Hardware, Link

GIGABITS_PER_S = 100.0
_LINK_MB_S = GIGABITS_PER_S * 1e3 / 8
# Ethernet, IP and TCP headers of a segment, beside a request header of ReFlex.
_CAPSULE_BYTES = 66 + 24


@dataclass(frozen=True)
class CoreKind:
    """A kind of core: what it serves of 4 KiB reads, and what it adds to the latency of one; both were published."""

    name: str
    iops_per_core: float
    added_us: float
    most_cores: int
    source: str

    @property
    def work_us(self) -> float:
        """Its work for a request."""
        return 1e6 / self.iops_per_core

    def hardware(self, cores: int) -> Hardware:
        """A box with so many of them behind 100 GbE.

        The work is half before the drive and half behind it. Besides, a request waits for what is published to be
        added, less that work and the time on the wire: in the network adapters and until a core takes notice.
        """
        on_wire_us = (4096 + 2 * _CAPSULE_BYTES) / _LINK_MB_S
        waits_us = self.added_us - self.work_us - on_wire_us
        return Hardware(
            cores=Cores(
                count=cores,
                submission_us=self.work_us / 2,
                completion_us=self.work_us / 2,
                serve="connections",
            ),
            link=Link(
                mb_s=_LINK_MB_S,
                propagation_us=waits_us / 2,
                command_bytes=_CAPSULE_BYTES,
                completion_bytes=_CAPSULE_BYTES,
            ),
        )


X86 = CoreKind("x86", 850e3, 21.0, 4, "Klimovic et al., ReFlex, ASPLOS 2017: over TCP")
A72 = CoreKind("A72", 2_100e3 / 4, 22.0, 8, "Xie, Litz and Qian, FMS 2019: 2100 K IOPS on four cores")
CORE_KINDS = (X86, A72)
