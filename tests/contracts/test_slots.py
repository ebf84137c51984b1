"""A drive in a slot of an expander, by itself: who it is, how I/O reaches it, and that the guard knows it again."""

from __future__ import annotations

from pathlib import Path

from rackloop_drivers.block import NbdExport
from rackloop_drivers.block.nbd_session import NbdSession
from rackloop_drivers.drive import RackdDrive, survey
from tests.deadlines import CLOCK, soon
from tests.rackd_process import drive, running_rackd, small_rack


def test_the_drives_in_an_expander_are_told_apart_by_slot(tmp_path: Path) -> None:
    inside = [drive(number, expander="exp1", slot=number - 5, port=None) for number in (5, 6)]
    for described in inside:
        del described["port"]
    config = small_rack()
    config |= {"expanders": {"exp1": {"port": 150}}, "drives": [*config["drives"], *inside], "map": [[1, 150]]}
    with running_rackd(tmp_path, config) as rackd:
        control = rackd.connect()
        path = RackdDrive(control, server="srv1", port="p0")
        export = NbdExport(rackd.nbd, "srv1.p0", 64 << 20)
        seen = survey(control, ["d05", "d06", "d01"], soon(), slots={"d05": 0, "d06": 1, "d01": None})
        for slot, serial in enumerate(("RL000005", "RL000006")):
            there = path.in_slot(slot)
            assert there.location == export.in_slot(slot).location == f"srv1.p0.s{slot}"
            with NbdSession(export.in_slot(slot), CLOCK) as session:
                session.read(0, 4096)
            identity = there.identify(soon())
            assert identity.serial == serial
            assert identity == seen[slot]
        assert "slot" not in seen[2].identifiers
        control.close()
