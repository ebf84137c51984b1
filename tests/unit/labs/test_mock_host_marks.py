"""Emulated tools that make sectors of mock drives unreadable: what they ask of rackd, and what they refuse."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rackloop_labs.mock_hosts._firmware import Firmware
from rackloop_labs.mock_hosts._view import AttachedDrive, HostView
from tests.transcripts.guest import GUEST, RecordedActs, run

DRIVES = {drive.protocol: drive for drive in GUEST.drives}


def node(drive: AttachedDrive) -> str:
    return f"/dev/{drive.block_name}"


def with_marks(protocol: str, *, marks: bool = True) -> tuple[HostView, AttachedDrive]:
    """The guest, a drive of which has the command, or has not."""
    drive = replace(DRIVES[protocol], firmware_state=Firmware(marks=marks))
    drives = tuple(drive if each.drive_id == drive.drive_id else each for each in GUEST.drives)
    return replace(GUEST, drives=drives), drive


@pytest.mark.parametrize(
    ("protocol", "argv", "said", "asked"),
    [
        (
            "nvme",
            ("nvme", "write-uncor", "--start-block=16", "--block-count=7"),
            "NVME Write Uncorrectable Success\n",
            "16/8",
        ),
        (
            "sata",
            ("hdparm", "--yes-i-know-what-i-am-doing", "--make-bad-sector", "f16"),
            "Corrupting sector 16 (WRITE_UNC_EXT as flagged): succeeded\n",
            "16/1",
        ),
        (
            "sata",
            ("hdparm", "--yes-i-know-what-i-am-doing", "--make-bad-sector", "16"),
            "Corrupting sector 16 (WRITE_UNC_EXT as pseudo): succeeded\n",
            "16/1",
        ),
        ("sas", ("sg_write_long", "--16", "--wr_uncor", "--lba=0x10"), "", "16/1"),
    ],
)
def test_a_sector_is_marked(protocol: str, argv: tuple[str, ...], said: str, asked: str) -> None:
    view, drive = with_marks(protocol)
    acts = RecordedActs()
    answer = run(*argv, node(drive), view=view, acts=acts)
    assert (answer.status, answer.stderr) == (0, "")
    assert answer.stdout.endswith(said)
    assert acts.asked == [("mark", f"{drive.kernel_name}/{asked}")]


@pytest.mark.parametrize(
    ("protocol", "marks", "argv", "status", "said"),
    [
        ("nvme", False, ("nvme", "write-uncor", "--start-block=8"), 1, "Invalid Command Opcode"),
        ("nvme", True, ("nvme", "write-uncor", "--start-block=4000000000"), 1, "LBA Out of Range"),
        ("sata", True, ("hdparm", "--make-bad-sector", "f8"), 1, "--make-bad-sector is VERY DANGEROUS"),
        ("sata", True, ("hdparm", "--yes-i-know-what-i-am-doing", "--make-bad-sector", "g8"), 22, "hdparm - get/set"),
        # As the real one, of a drive of QEMU.
        ("sata", False, ("hdparm", "--yes-i-know-what-i-am-doing", "--make-bad-sector", "f8"), 0, "SG_IO: bad/missing"),
        ("sas", False, ("sg_write_long", "--wr_uncor", "--lba=8"), 9, "Illegal request, Invalid opcode"),
        ("sas", True, ("sg_write_long", "--lba=8"), 5, "sg_write_long failed: Illegal request"),
        ("sas", True, ("sg_write_long", "--wr_uncor", "--lba=many"), 1, "bad argument to '--lba'"),
        ("nvme", True, ("sg_write_long", "--wr_uncor", "--lba=8"), 52, "No such file or directory"),
    ],
)
def test_a_command_that_is_refused_marks_nothing(
    protocol: str, marks: bool, argv: tuple[str, ...], status: int, said: str
) -> None:
    view, drive = with_marks(protocol, marks=marks)
    acts = RecordedActs()
    answer = run(*argv, node(drive), view=view, acts=acts)
    assert answer.status == status
    assert said in answer.stderr
    assert acts.asked == []


def test_a_drive_says_whether_it_has_the_command() -> None:
    for marks in (True, False):
        view, drive = with_marks("nvme", marks=marks)
        assert f"oncs      : {'0xe' if marks else '0xc'}\n" in run("nvme", "id-ctrl", node(drive), view=view).stdout
        assert ("Wr_Unc" in run("smartctl", "-c", node(drive), view=view).stdout) is marks
        view, drive = with_marks("sata", marks=marks)
        listed = run("hdparm", "-I", node(drive), view=view).stdout
        assert ("\t   *\tWRITE_UNCORRECTABLE_EXT command\n" in listed) is marks
        view, drive = with_marks("sas", marks=marks)
        for opcode in ("0x9f,0x11", "0x3f"):
            said = run("sg_opcodes", "--no-inquiry", f"--opcode={opcode}", node(drive), view=view).stdout
            assert ("Command is supported" in said) is marks
