"""The limits of drives' error recovery, as tools print them and are told them."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from rackloop.abilities import Completed
from rackloop.clock import Deadline
from rackloop.errors import LabError, NotSupported, UnknownFormat
from rackloop_drivers.fail_fast._limits import AtaLimit, Limit, NvmeLimit, ScsiLimit
from tests.deadlines import soon
from tests.unit.harness.recorded_server import RecordedServer, answered

# Printed by sg_wr_mode 1.46 of a drive of scsi_debug.
PAGE = """    Linux     scsi_debug        0191   peripheral_type: disk [0x0]
>>> No contents given, so show current mode page data:
  header:
00 1a 00 10 00 00 00 08
  block descriptor(s):
00 00 80 00 00 00 02 00
  mode page:
01 0a c0 0b f0 00 00 00  05 00 ff ff
"""
# By nvme-cli 2.3 of a drive of QEMU, and by a later one.
FEATURE = "get-feature:0x05 (Error Recovery), Current value:0x00010000\n"
LATER = "get-feature:0x05 (Error Recovery), Current value: 0x00010000\n"
CONTROL = {"read": {"enabled": True, "deciseconds": 70}, "write": {"enabled": False}}
CASES = [
    (AtaLimit, json.dumps({"ata_sct_erc": CONTROL}), "70,0", "2,0"),
    (NvmeLimit, FEATURE, "0x10000", "0x10002"),
    (NvmeLimit, LATER, "0x10000", "0x10002"),
    (ScsiLimit, PAGE, "01,0a,c0,0b,f0,00,00,00,05,00,ff,ff", "01,0a,c0,0b,f0,00,00,00,05,00,00,6f"),
]


class Server(RecordedServer):
    """A server that answers any tool with one recording, and has every program."""

    def __init__(self, stdout: str, status: int = 0) -> None:
        super().__init__(answers={})
        self.said = answered(stdout, status=status)

    def find(self, program: str) -> str | None:
        return program

    def run(self, argv: Sequence[str], deadline: Deadline, *, stdin: str = "") -> Completed:
        self.ran.append(tuple(argv))
        return Completed(tuple(argv), self.said.status, self.said.stdout, "")


@pytest.mark.parametrize(("kind", "printed", "setting", "limited"), CASES)
def test_a_setting_is_read_whole_and_its_limit_alone_is_changed(
    kind: type[Limit], printed: str, setting: str, limited: str
) -> None:
    limit = kind(Server(printed), "/dev/sdb")
    assert limit.read(soon()) == setting
    assert limit.limited(setting, 0.111) == limited


@pytest.mark.parametrize(
    ("kind", "setting", "told"),
    [
        (AtaLimit, "1,70", "smartctl --json=c -l scterc,1,70 /dev/sdb"),
        (NvmeLimit, "0x10001", "nvme set-feature --feature-id=5 --value=0x10001 /dev/sdb"),
        (ScsiLimit, "01,0a", "sg_wr_mode --page=1 --contents=01,0a /dev/sdb"),
    ],
)
def test_a_setting_is_told_whole(kind: type[Limit], setting: str, told: str) -> None:
    server = Server("")
    kind(server, "/dev/sdb").write(setting, soon())
    assert " ".join(server.ran[-1]) == told


def test_a_drive_that_has_no_control_says_so_beforehand() -> None:
    # A status of 4 is no failure of smartctl itself.
    with pytest.raises(NotSupported, match="has no SCT Error Recovery Control"):
        AtaLimit(Server("{}", status=4), "/dev/sdb").read(soon())


@pytest.mark.parametrize(
    ("kind", "printed"), [(AtaLimit, "no"), (NvmeLimit, "no"), (ScsiLimit, "  mode page:\n01 0a\n")]
)
def test_another_form_is_kept_with_the_error(kind: type[Limit], printed: str) -> None:
    with pytest.raises(UnknownFormat, match="did not print the setting in a known form") as error:
        kind(Server(printed), "/dev/sdb").read(soon())
    assert error.value.raw == printed


def test_a_tool_that_fails_is_quoted() -> None:
    with pytest.raises(LabError, match=r"srv9:/dev/sdb: nvme get-feature .* failed: Invalid Field"):
        NvmeLimit(Server("Invalid Field\n", status=1), "/dev/sdb").read(soon())
