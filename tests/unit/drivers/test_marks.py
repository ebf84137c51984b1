"""Drives' own commands that make sectors unreadable: which has them, and what tools are told."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rackloop.errors import LabError, NotSupported, ToolError, UnknownFormat
from rackloop_drivers.drive.host_drive._erasing import Tools
from rackloop_drivers.drive.host_drive._marks import AtaMarks, Marks, NvmeMarks, ScsiMarks, marks_by
from tests.unit.drivers.test_host_sanitizers import Server, later, ok

DATA = Path(__file__).parent / "data" / "hdparm"
RECORDED = Path(__file__).parents[2] / "transcripts" / "recorded"
MARKING = (DATA / "marking.out").read_text()
"""Printed by hdparm 9.65 (``--Istdin``) of IDENTIFY data that were made up."""
LONG = """
  Opcode=0x9f  Service_action=0x0011
  Command_name: Write long(16)
  Command is supported [conforming to SCSI standard]
  Usage data: 9f 11 ff ff ff ff ff ff ff ff 00 00 00 00 {} 00
"""
SHORT = """
  Opcode=0x3f
  Command_name: Write long(10)
  Command is supported [conforming to SCSI standard]
  Usage data: 3f 40 ff ff ff ff 00 00 00 00
"""
MISSING = """
  Opcode=0x9f  Service_action=0x0011
  Command_name: Write long(16)
  Command is NOT supported
  No command duration limit mode page
  Multiple Logical Units (MLU): not reported
"""
"""Printed by sg_opcodes 1.46 of a drive of scsi_debug."""
AWAY = MISSING.replace("is NOT supported", "is not currently available")
"""As of a SATA drive, by the kernel's translation."""


def told(server: Server) -> list[str]:
    """What tools were told that is no question."""
    return [line for line in server.ran if not line.startswith(("sg_opcodes", "hdparm -I", "nvme id-ctrl"))]


def test_an_nvme_drive_says_in_its_oncs_whether_it_can() -> None:
    NvmeMarks(Tools(Server({"id-ctrl": ok(json.dumps({"oncs": 0x0E}))}), "/dev/nvme0n1")).require(later())
    # Of a drive of QEMU.
    qemu = (RECORDED / "virtual" / "nvme-id-ctrl.json.out").read_text()
    with pytest.raises(NotSupported, match=r"no Write Uncorrectable \(bit 1 of its ONCS, 0x15d, is 0\)"):
        NvmeMarks(Tools(Server({"id-ctrl": ok(qemu)}), "/dev/nvme0n1")).require(later())


@pytest.mark.parametrize("printed", ["", "[]", '{"oncs": "many"}', '{"mn": "x"}'])
def test_an_answer_without_oncs_is_kept_with_the_error(printed: str) -> None:
    with pytest.raises(UnknownFormat, match="nvme id-ctrl printed no oncs") as error:
        NvmeMarks(Tools(Server({"id-ctrl": ok(printed)}), "/dev/nvme0n1")).require(later())
    assert error.value.raw == printed


def test_an_ata_drive_says_among_its_features_whether_it_can() -> None:
    AtaMarks(Tools(Server({"-I": ok(MARKING)}), "/dev/sdb")).require(later())
    with pytest.raises(NotSupported, match="/dev/sdb: the drive has no WRITE_UNCORRECTABLE_EXT command"):
        AtaMarks(Tools(Server({"-I": ok((DATA / "disk.out").read_text())}), "/dev/sdb")).require(later())
    # Of a drive of QEMU.
    qemu = (RECORDED / "virtual" / "hdparm-I.out").read_text()
    with pytest.raises(NotSupported, match="no WRITE_UNCORRECTABLE_EXT"):
        AtaMarks(Tools(Server({"-I": ok(qemu)}), "/dev/sdb")).require(later())
    is_off = MARKING.replace("   *\tWRITE_UNC", "    \tWRITE_UNC")
    with pytest.raises(NotSupported, match="no WRITE_UNCORRECTABLE_EXT"):
        AtaMarks(Tools(Server({"-I": ok(is_off)}), "/dev/sdb")).require(later())


def test_a_scsi_drive_reports_its_write_long_and_the_bit_that_it_looks_at() -> None:
    answers = {"0x9f,0x11": ok(LONG.format("40")), "0x3f": ok(SHORT)}
    ScsiMarks(Tools(Server(answers), "/dev/sdc")).require(later())
    for first, second in ((AWAY, AWAY), (LONG.format("00"), MISSING), (MISSING, SHORT.replace("3f 40", "3f 00"))):
        server = Server({"0x9f,0x11": ok(first), "0x3f": ok(second)})
        with pytest.raises(NotSupported, match="reports no WRITE LONG with WR_UNCOR"):
            ScsiMarks(Tools(server, "/dev/sdc")).require(later())
    silent = Server({"sg_opcodes": [(9, "", "sg_opcodes failed: Illegal request, Invalid opcode\n")]})
    with pytest.raises(NotSupported, match="it cannot make sectors of its own unreadable"):
        ScsiMarks(Tools(silent, "/dev/sdc")).require(later())


@pytest.mark.parametrize(
    ("protocol", "answers", "first", "many", "commands"),
    [
        (
            "nvme",
            {"write-uncor": ok("NVME Write Uncorrectable Success\n")},
            16,
            12,
            [
                "nvme write-uncor --start-block=16 --block-count=7 /dev/x",
                "nvme write-uncor --start-block=24 --block-count=3 /dev/x",
            ],
        ),
        (
            "sata",
            {"make-bad": ok("succeeded\n")},
            8,
            2,
            [
                "hdparm --yes-i-know-what-i-am-doing --make-bad-sector f8 /dev/x",
                "hdparm --yes-i-know-what-i-am-doing --make-bad-sector f9 /dev/x",
            ],
        ),
        (
            "sas",
            {"0x9f,0x11": ok(LONG.format("40")), "sg_write_long": ok("")},
            1 << 32,
            1,
            ["sg_write_long --16 --wr_uncor --lba=4294967296 /dev/x"],
        ),
        (
            "sas",
            {"0x9f,0x11": ok(MISSING), "0x3f": ok(SHORT), "sg_write_long": ok("")},
            8,
            1,
            ["sg_write_long --wr_uncor --lba=8 /dev/x"],
        ),
    ],
)
def test_tools_are_told_the_sectors(
    protocol: str, answers: dict[str, list[tuple[int, str, str]]], first: int, many: int, commands: list[str]
) -> None:
    server = Server(answers)
    marks_by(server, protocol, "/dev/x").mark(first, many, 512, later())
    assert told(server) == commands


def test_a_short_write_long_does_not_reach_far_sectors() -> None:
    server = Server({"0x9f,0x11": ok(MISSING), "0x3f": ok(SHORT)})
    with pytest.raises(NotSupported, match=r"has no WRITE LONG \(16\), and sector 4294967296 is beyond 32 bits"):
        ScsiMarks(Tools(server, "/dev/sdc")).mark(1 << 32, 1, 512, later())
    assert told(server) == []


@pytest.mark.parametrize(
    ("kind", "answers", "tool"),
    [
        (NvmeMarks, {"write-uncor": [(1, "", "NVMe status: Invalid Command Opcode(0x4001)\n")]}, "nvme write-uncor"),
        (AtaMarks, {"make-bad": [(1, "", "Program aborted.\n")]}, "make-bad-sector"),
        (ScsiMarks, {"0x9f": ok(LONG.format("40")), "long": [(5, "", "sg_write_long failed\n")]}, "sg_write_long"),
    ],
)
def test_a_tool_that_fails_is_quoted(
    kind: type[AtaMarks | NvmeMarks | ScsiMarks], answers: dict[str, list[tuple[int, str, str]]], tool: str
) -> None:
    marks: Marks = kind(Tools(Server(answers), "/dev/x"))
    with pytest.raises(LabError, match=f"/dev/x: .*{tool}.* failed: "):
        marks.mark(8, 8, 512, later())


def test_a_missing_tool_is_named_with_its_package() -> None:
    server = Server({"0x9f": ok(LONG.format("40")), "sg_write_long": [(127, "", "sh: sg_write_long: not found\n")]})
    with pytest.raises(ToolError, match=r"sg_write_long was not found .* install its package sg3-utils"):
        ScsiMarks(Tools(server, "/dev/x")).mark(8, 1, 512, later())
