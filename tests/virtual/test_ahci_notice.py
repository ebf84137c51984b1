"""Notice of a switch to a guest with SATA drives: what its kernel does on a port of an AHCI controller."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from rackloop.lab import load_lab
from rackloop_drivers.host import SshHost
from rackloop_drivers.host_tools import tell_of_switch
from rackloop_labs import ssh_accesses
from tests.deadlines import CLOCK, soon
from tests.e2e.command_line import CommandLine
from tests.virtual.one_guest import WITHIN_S

pytestmark = pytest.mark.nightly

SERVER = "node1"
LINK_UP = re.compile(r"\bata(\d+): SATA link up")


def told(host: SshHost, script: str, *arguments: str) -> str:
    """What a script prints on the guest."""
    done = host.run(("sh", "-c", script, "script", *arguments), soon(WITHIN_S))
    assert done.status == 0, done
    return done.stdout.strip()


def resets(host: SshHost) -> Counter[str]:
    """How often the kernel has found the link of each port up, which it says after each reset."""
    return Counter(LINK_UP.findall(told(host, "dmesg")))


def disk_at(host: SshHost, path: str) -> str:
    """The kernel's name of the disk at a path; empty where there is none."""
    script = (
        'for link in "/dev/disk/by-path/$1" "/dev/disk/by-path/$1.0"; do [ ! -e "$link" ] || readlink -f "$link"; done'
    )
    return told(host, script, path).rpartition("/")[2]


def test_a_drive_that_the_kernel_let_go_of_comes_by_a_comreset_of_its_port_alone(direct: CommandLine) -> None:
    lab, endpoints = load_lab("virtual-direct"), direct.endpoints("virtual-direct")
    paths = endpoints["servers"][SERVER]["paths"]
    with SshHost(ssh_accesses(lab, endpoints)[SERVER], CLOCK) as host:
        disk = disk_at(host, paths["p2"])
        serial = told(host, 'lsblk -dno SERIAL "/dev/$1"', disk)
        assert serial == lab.drives["hdd1"].serial
        port = told(host, 'readlink -f "/sys/block/$1" | sed -n "s|.*/ata\\\\([0-9]*\\\\)/.*|\\\\1|p"', disk)
        before = resets(host)
        told(host, 'echo 1 >"/sys/block/$1/device/delete"', disk)
        assert disk_at(host, paths["p2"]) == ""
        tell_of_switch(host, [paths["p2"]], soon(WITHIN_S), looks_s=10)
        found = soon(WITHIN_S).poll(lambda: disk_at(host, paths["p2"]), every_s=0.2)
        assert told(host, 'lsblk -dno SERIAL "/dev/$1"', found) == serial
        reset = resets(host) - before
    assert reset.keys() == {port}
