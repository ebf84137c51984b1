"""The whole site on mock servers, with Ansible itself: made once, then nothing is left to do, and taken back."""

from __future__ import annotations

from rackloop_drivers.provision import Provisioned, TaskStatus
from tests.mock_rack import MockRack
from tests.playbooks import play

# Everything that a role may change on a mock server, as one text.
STATE = (
    "cd /; find etc var/lib -xdev -printf '%p %y %m %U\\n' | sort;"
    " find etc var/lib -xdev -type f -exec sha256sum {} + | sort;"
    " cat /proc/sys/net/ipv4/tcp_[rw]mem; ip link show lo"
)
ROLES_OF_FILES = (
    *("kernel_ahci", "network_tuning", "iscsi_target", "iscsi_initiator"),
    *("nvme_tcp_target", "nvme_tcp_host"),
)


def test_the_site_is_provisioned_once_and_taken_back_exactly(rack: MockRack) -> None:
    before = rack.says("srv4", STATE)
    first = play(rack, "site", "srv1", "srv4")
    changed = {(task.host, task.role) for task in first.tasks if task.status is TaskStatus.CHANGED}
    # Server 1 is of the stack vanilla: its kernel stays as it came.
    assert changed == {(host, role) for host in ("srv1", "srv4") for role in ROLES_OF_FILES} - {("srv1", "kernel_ahci")}
    assert "mtu 9000" in rack.says("srv4", "ip link show lo")
    assert rack.says("srv4", "cat /etc/modprobe.d/rackloop.conf").startswith(
        "options libata force=nodbdelay,rstonce,nolpm\noptions ahci mobile_lpm_policy=1\n"
    )
    assert "cannot be written (Read-only file system)" in reason(first, "srv4", "base_tools", "Install the packages")
    assert "user namespace" in reason(first, "srv4", "nvme_tcp_target", "Load the target's kernel modules")
    assert "systemd is not running" in reason(first, "srv4", "iscsi_target", "Enable and start the target service")
    assert all(task.reason for task in first.tasks if task.status is TaskStatus.SKIPPED)

    assert play(rack, "site", "srv4").hosts["srv4"].changed == 0

    undone = play(rack, "undo", "srv1", "srv4")
    assert undone.hosts["srv4"].changed == len(ROLES_OF_FILES)
    assert rack.says("srv4", STATE) == before
    assert play(rack, "undo", "srv4").hosts["srv4"].changed == 0


def reason(done: Provisioned, host: str, role: str, name: str) -> str:
    """Why one task was skipped on one server."""
    (task,) = [task for task in done.tasks if (task.host, task.role, task.task) == (host, role, name)]
    assert task.status is TaskStatus.SKIPPED
    return task.reason or ""
