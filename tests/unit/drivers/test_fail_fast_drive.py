"""A drive that was told to fail fast, and another that is in its place by now."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

import pytest

from rackloop.abilities import Completed, Host
from rackloop.clock import Deadline
from rackloop.errors import GuardRefused, LabError
from rackloop_drivers.fail_fast import FAIL_FAST, FailFast
from tests.deadlines import soon
from tests.unit.harness.recorded_server import RECORDED, RecordedServer

PLACE = "pci-0000:00:1f.2-ata-2"
FAULT = {"kind": FAIL_FAST, "within_s": 0.2}


def recorded_serial() -> str:
    return str(json.loads(RECORDED["smartctl sdb"].stdout)["serial_number"])


OWN = f"/dev/disk/by-id/ata-SSD_{recorded_serial().replace(' ', '_')}"


@dataclass
class Server(RecordedServer):
    """The recorded server with one drive at a port; ``by_id`` are names that lead to nodes.

    Limits are ``asked`` of nodes, and ``told`` to them.
    """

    by_id: dict[str, str] = field(default_factory=lambda: {OWN: "sdb", "/dev/disk/by-id/ata-SSD_NOT_IT": "sdb"})
    setting: list[int] = field(default_factory=lambda: [70, 70])
    told: list[str] = field(default_factory=list)
    asked: set[str] = field(default_factory=set)

    def run(self, argv: Sequence[str], deadline: Deadline, *, stdin: str = "") -> Completed:
        if argv[0] == "smartctl":
            log, node = argv[3], argv[4]
            self.asked.add(node)
            if log != "scterc":
                self.told.append(node)
                self.setting = [int(value) for value in log.split(",")[1:]]
            control = {way: {"deciseconds": value} for way, value in zip(("read", "write"), self.setting, strict=True)}
            return Completed(tuple(argv), 0, json.dumps({"ata_sct_erc": control}), "")
        if argv[3] == "names":
            names = [name for name, node in self.by_id.items() if node in self._behind(argv[4])]
            return Completed(tuple(argv), 0, "".join(f"{name}\n" for name in names), "")
        return super().run(argv, deadline, stdin=stdin)

    def exchange(self, serial: str | None) -> None:
        """Take the drive out, and plug in one with another serial, or none."""
        self.by_id.clear()
        recording = self.answers.pop("smartctl sdb")
        if serial is not None:
            report = json.loads(recording.stdout) | {"serial_number": serial}
            self.answers["smartctl sdb"] = replace(recording, stdout=json.dumps(report))

    def _behind(self, given: str) -> list[str]:
        if given.startswith("/dev/disk/by-id/"):
            return [node for name, node in self.by_id.items() if name == given]
        return super()._behind(given.removeprefix("/dev/disk/by-path/"))


def told(server: Server, *, move: bool = False) -> tuple[FailFast, dict[str, Any]]:
    """The drive at the port, told to fail fast, and the note of that."""
    drive = FailFast(cast("Host", server), PLACE, serial=recorded_serial(), move=move)
    note = drive.prepare(FAULT, soon(10)) | {"fault": FAULT}
    drive.start(note, soon(10))
    assert server.setting == [2, 70]
    return drive, note


def test_a_drive_is_told_by_the_name_that_leads_to_no_other() -> None:
    server = Server()
    drive, note = told(server)
    drive.end(note, soon(10))
    assert (server.setting, server.told, server.asked) == ([70, 70], [OWN, OWN], {OWN})


def test_a_drive_that_got_another_node_has_its_setting_back() -> None:
    server = Server()
    drive, note = told(server)
    server.answers["smartctl sda"] = server.answers["smartctl sdb"]
    server.exchange("OTHER")
    server.by_id = {OWN: "sda"}
    assert drive.stands(note, soon(10))
    drive.end(note, soon(10))
    assert (server.setting, server.told) == ([70, 70], [OWN, OWN])


def test_a_drive_without_a_name_of_its_own_is_told_nothing() -> None:
    server = Server(by_id={"/dev/disk/by-id/ata-SSD_NOT_IT": "sdb"})
    with pytest.raises(LabError, match="no name under /dev/disk/by-id has the serial"):
        told(server)
    assert server.told == []


def test_another_drive_than_the_one_described_is_told_nothing() -> None:
    """Somebody may have plugged it in, and a pool on it loses what is not read in time."""
    server = Server()
    server.exchange("OTHER")
    server.by_id = {"/dev/disk/by-id/ata-SSD_OTHER": "sdb"}
    with pytest.raises(GuardRefused, match=f"the serial is described as {recorded_serial()}, its drive has OTHER"):
        told(server)
    assert server.told == []


def test_an_exchanged_drive_took_its_setting_along() -> None:
    server = Server()
    drive, note = told(server)
    server.exchange("OTHER")
    assert not drive.stands(note, soon(10))
    drive.end(note, soon(10))
    assert len(server.told) == 1, "the other drive was told nothing"


@pytest.mark.parametrize(("move", "serial"), [(True, "OTHER"), (False, None), (True, None)])
def test_a_drive_that_may_still_have_power_is_asked_for(serial: str | None, *, move: bool) -> None:
    """A switch gave it to another server, or its own forgot it."""
    server = Server()
    drive, note = told(server, move=move)
    server.exchange(serial)
    for ask in (drive.stands, drive.end):
        with pytest.raises(LabError, match=f"drive {recorded_serial()} was told to fail fast here"):
            ask(note, soon(10))
    assert len(server.told) == 1


def test_a_drive_that_was_exchanged_before_it_was_told_is_not_told() -> None:
    server = Server()
    drive = FailFast(cast("Host", server), PLACE, serial=recorded_serial(), move=False)
    note = drive.prepare(FAULT, soon(10))
    server.exchange("OTHER")
    with pytest.raises(LabError, match="does not lead to it any more"):
        drive.start(note, soon(10))
    assert server.told == []
