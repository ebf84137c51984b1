"""A drive of one guest used by another over the storage network: the playbook's roles, connected by real kernels.

The tests are of one rack.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.e2e.command_line import CommandLine, wait_until
from tests.meta.tree import ROOT
from tests.virtual.guests import baseline_comes, endpoints_of, tell

pytestmark = pytest.mark.nightly

DRIVE = "/dev/disk/by-id/nvme-QEMU_NVMe_Ctrl_RLV00001"
TARGET, INITIATOR = "srv1", "srv2"
HOST_UUID = "8d4f4b6e-6a55-5c54-9d39-1f2a40c1d5a2"
INITIATOR_NAME = "iqn.2003-01.org.rackloop:initiator"
REPLAY = ROOT / "testplans" / "workload" / "test_trace_replay.py"


def provision(up: CommandLine, server: str, role: str, *settings: str) -> int:
    """The number of tasks of a role that changed a server."""
    words = [word for setting in settings for word in ("--set", setting)]
    ended = up("lab", "provision", "virtual", "--servers", server, "--roles", role, "--timeout-s", "1500", *words)
    assert ended.status == 0, ended
    return ended.out.count(f"{server}  changed ")


@contextmanager
def provisioned(up: CommandLine, server: str, role: str, *settings: str) -> Iterator[None]:
    """A server as a role makes it, which is a state that the role finds as it wants it; taken back in the end."""
    assert provision(up, server, role, *settings) > 0
    try:
        assert provision(up, server, role, *settings) == 0
        yield
    finally:
        ended = up("lab", "provision", "virtual", "--servers", server, "--roles", role, "--undo", "--timeout-s", "1500")
        assert ended.status == 0, ended


def disks(up: CommandLine, server: str) -> set[str]:
    """The names of the disks that a guest's kernel has."""
    return set(tell(up, server, "lsblk --nodeps --noheadings --output NAME").split())


def comes(up: CommandLine, known: set[str]) -> str:
    """The path of a disk that the initiator has besides those that it had."""
    wait_until(lambda: bool(disks(up, INITIATOR) - known), lambda: str(disks(up, INITIATOR)))
    return f"/dev/{min(disks(up, INITIATOR) - known)}"


def is_the_drive(up: CommandLine, remote: str) -> None:
    """Assert that what is written to a disk of the initiator is read from the target's drive."""
    copying = f"dd of={remote} bs=64k count=16 iflag=fullblock oflag=direct status=none"
    written = tell(up, INITIATOR, f"head -c 1M /dev/urandom | tee /tmp/written | {copying} && sha256sum </tmp/written")
    read = tell(up, TARGET, f"dd if={DRIVE} bs=64k count=16 iflag=direct status=none | sha256sum")
    assert read == written


def address(up: CommandLine, server: str) -> str:
    """The address of a guest on the storage network."""
    found: str = endpoints_of(up)["servers"][server]["storage_address"]
    return found


def test_a_drive_is_used_by_nvme_over_tcp_and_given_back(up: CommandLine) -> None:
    baseline_comes(up)
    known, target = disks(up, INITIATOR), address(up, TARGET)
    host = f"nqn.2014-08.org.nvmexpress:uuid:{HOST_UUID}"
    offered = (
        f"nvme_tcp_target_address={target}",
        f"nvme_tcp_target_devices=[{DRIVE}]",
        f"nvme_tcp_target_hosts=['{host}']",
    )
    asked = (f"nvme_tcp_host_uuid={HOST_UUID}", f"nvme_tcp_host_discovery=['{target}:4420']")
    with provisioned(up, TARGET, "nvme_tcp_target", *offered):
        with provisioned(up, INITIATOR, "nvme_tcp_host", *asked):
            is_the_drive(up, comes(up, known))
        assert disks(up, INITIATOR) == known
        # What a target offers is in use, though the kernel lets it be opened by others: nothing else writes to it.
        ended = up("run", REPLAY, "--lab", "virtual", "--out", "refused")
        assert ended.status == 3, ended
        assert "drive d01 may not be written" in ended.out
        assert "nvme0n1 is namespace 1 of nqn." in ended.out or "nvme1n1 is namespace 1 of nqn." in ended.out
    assert tell(up, TARGET, "ls /sys/kernel/config/nvmet/subsystems 2>/dev/null; true") == ""


def test_a_drive_is_used_by_iscsi_and_given_back(up: CommandLine) -> None:
    baseline_comes(up)
    known, target = disks(up, INITIATOR), address(up, TARGET)
    offered = (
        f"iscsi_target_address={target}",
        f"iscsi_target_luns={{d01: {DRIVE}}}",
        f"iscsi_target_initiators=['{INITIATOR_NAME}']",
    )
    asked = (f"iscsi_initiator_name={INITIATOR_NAME}", "iscsi_initiator_sessions=1")
    with (
        provisioned(up, TARGET, "iscsi_target", *offered),
        provisioned(up, INITIATOR, "iscsi_initiator", *asked),
    ):
        tell(up, INITIATOR, f"iscsiadm -m discovery -t st -p {target} && iscsiadm -m node --login")
        is_the_drive(up, comes(up, known))
        tell(up, INITIATOR, "iscsiadm -m node --logout && iscsiadm -m node -o delete")
        assert disks(up, INITIATOR) == known
    assert "iqn." not in tell(up, TARGET, "ls /sys/kernel/config/target/iscsi 2>/dev/null; true")
