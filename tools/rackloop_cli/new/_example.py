"""Example: a drive is unplugged while it is read."""

import pytest

from rackloop_fixtures import Measure, Rack


# It writes: blocks by which every read can be judged, on a drive that the lab marks scratch: true.
@pytest.mark.rackloop(destructive=True)
def test_example(rack: Rack, measure: Measure) -> None:
    """Unplug a drive for a second while it is read, and have it back with every byte."""
    drive = rack.any_drive()
    server, port = rack.place_of(drive)
    with rack.watching({server: port}) as reads:
        rack.sleep(0.5)
        unplugged = rack.unplug(drive, for_s=1)
        rack.sleep(0.5)
    seen = reads.results[server]
    measure("example.wrong", seen.wrong, max=0, drive=drive)
    measure("example.reads", seen.reads, drive=drive)
    measure("example.stall", seen.longest_stall_s, unit="s", drive=drive)
    measure("example.back", unplugged.back_s, unit="s", max="30 s", drive=drive)
