"""Settings of devices that a udev rule changes and an undo puts back, on a folder in the place of /sys."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from rackloop.data import data_path
from tests.ansible_modules import module_of_ansible

SETTINGS = module_of_ansible("rackloop_device_settings")
RULES = yaml.safe_load((data_path("playbooks") / "roles/kernel_ahci/vars/main.yml").read_text())["kernel_ahci_udev"]
PORT = "/devices/pci0000:00/0000:00:1f.2/ata1/host0"
# As `udevadm info --export-db` prints it: each device with its properties, a blank line behind it.
DATABASE = f"""P: {PORT}/scsi_host/host0
M: host0
E: DEVPATH={PORT}/scsi_host/host0
E: SUBSYSTEM=scsi_host
E: RACKLOOP_BEFORE_LINK_POWER_MANAGEMENT_POLICY=med_power_with_dipm

P: {PORT}/target0:0:0/0:0:0:0
E: DEVTYPE=scsi_device
E: RACKLOOP_BEFORE_TIMEOUT=30
E: RACKLOOP_BEFORE_EH_TIMEOUT=10

P: /devices/pci0000:00/0000:00:1f.2/ata2/host1/target1:0:0/1:0:0:0
E: DEVTYPE=scsi_device
"""


class Sysfs:
    """A port with its drive as the rule has left them, and a drive that the rule never saw."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.policy = self.attribute(f"{PORT}/scsi_host/host0/link_power_management_policy", "max_performance")
        self.timeout = self.attribute(f"{PORT}/target0:0:0/0:0:0:0/timeout", "10")
        self.eh_timeout = self.attribute(f"{PORT}/target0:0:0/0:0:0:0/eh_timeout", "5")

    def attribute(self, name: str, value: str) -> Path:
        path = self.root / name[1:]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{value}\n")
        return path

    def values(self) -> list[str]:
        return [path.read_text().strip() for path in (self.policy, self.timeout, self.eh_timeout)]


@pytest.fixture
def sysfs(tmp_path: Path) -> Sysfs:
    return Sysfs(tmp_path)


def test_each_device_has_its_own_settings_back(sysfs: Sysfs) -> None:
    changes, left = SETTINGS.restore(sysfs.root, DATABASE, only_say=True)
    assert sysfs.values() == ["max_performance", "10", "5"]
    assert SETTINGS.restore(sysfs.root, DATABASE, only_say=False) == (changes, left)
    assert sysfs.values() == ["med_power_with_dipm", "30", "10"]
    assert changes == [
        f"{PORT}/scsi_host/host0/link_power_management_policy",
        f"{PORT}/target0:0:0/0:0:0:0/timeout",
        f"{PORT}/target0:0:0/0:0:0:0/eh_timeout",
    ]
    assert left == []
    assert SETTINGS.restore(sysfs.root, DATABASE, only_say=False) == ([], [])


def test_a_device_that_has_gone_meanwhile_is_passed_over(sysfs: Sysfs) -> None:
    sysfs.timeout.unlink()
    assert SETTINGS.restore(sysfs.root, DATABASE, only_say=False)[1] == []
    assert sysfs.eh_timeout.read_text() == "10\n"


def test_a_setting_that_the_kernel_refuses_is_told_and_the_others_come_back(sysfs: Sysfs) -> None:
    """Here by a file of the kernel that refuses it too."""
    sysfs.policy.unlink()
    sysfs.policy.symlink_to("/proc/self/oom_score_adj")
    changes, left = SETTINGS.restore(sysfs.root, DATABASE, only_say=False)
    assert left == [f"{PORT}/scsi_host/host0/link_power_management_policy"]
    assert len(changes) == 2
    assert sysfs.timeout.read_text() == "30\n"


def test_the_rule_keeps_each_setting_before_it_changes_it() -> None:
    rules = RULES["content"]
    changed = re.findall(r'ATTR\{(\w+)\}="', rules)
    assert sorted(changed) == ["eh_timeout", "link_power_management_policy", "timeout"]
    for attribute in changed:
        key = f"RACKLOOP_BEFORE_{attribute.upper()}"
        imported, kept = rules.index(f'IMPORT{{db}}="{key}"'), rules.index(f'ENV{{{key}}}="$attr{{{attribute}}}"')
        assert imported < kept < rules.index(f'ATTR{{{attribute}}}="')
        assert f'ENV{{{key}}}!="?*"' in rules[imported:kept]
