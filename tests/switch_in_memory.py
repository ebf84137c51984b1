"""A simulated circuit switch whose map is in memory, in a thread of its own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rackloop.portmap import PortMap
from rackloop_drivers.fabric.flexfabric import LineFaults, MemoryMatrix, SwitchPeer, SwitchThread
from tests.deadlines import CLOCK


@contextmanager
def switch_in_memory(
    boot_map: PortMap | None = None, *, state_path: Path | None = None, line_faults: LineFaults | None = None
) -> Iterator[SwitchThread]:
    """A switch that starts with ``boot_map``."""

    async def make() -> SwitchPeer:
        return SwitchPeer(MemoryMatrix(CLOCK, boot_map=boot_map), state_path=state_path, line_faults=line_faults)

    with SwitchThread(make) as thread:
        yield thread


def tcp(thread: SwitchThread) -> str:
    """The address of a TCP port that the switch opens."""
    host, port = thread.call(lambda peer: peer.serve_tcp())
    return f"tcp://{host}:{port}"
