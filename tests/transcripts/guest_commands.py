"""The commands whose answers are recorded on a guest of a virtual rack, by the names of the recordings."""

from __future__ import annotations

from collections.abc import Mapping

NVME, SAS, SATA = "/dev/nvme0n1", "/dev/sda", "/dev/sdb"
"""The drives of the guest ``node1`` of ``virtual-direct``, in the order in which its kernel finds them."""

_NAMES = "find {0}/ -maxdepth 1 -type f -printf '%f\\n' | sort"

COMMANDS: Mapping[str, str] = {
    "nvme-list": "nvme list",
    "nvme-list.json": "nvme list -o json",
    "nvme-list-v.json": "nvme list -v -o json",
    "nvme-id-ctrl.json": f"nvme id-ctrl {NVME} -o json",
    "nvme-id-ns.json": f"nvme id-ns {NVME} -o json",
    "nvme-smart-log.json": f"nvme smart-log {NVME} -o json",
    "nvme-error-log.json": f"nvme error-log {NVME} -e 4 -o json",
    "nvme-id-ctrl-sas": f"nvme id-ctrl {SAS}",
    "nvme-version": "nvme version",
    "smartctl-x-nvme.json": f"smartctl -j -x {NVME}",
    "smartctl-x-sas.json": f"smartctl -j -x {SAS}",
    "smartctl-x-sata.json": f"smartctl -j -x {SATA}",
    "smartctl-H-nvme": f"smartctl -H {NVME}",
    "smartctl-H-sata": f"smartctl -H {SATA}",
    "smartctl-no-device.json": "smartctl -j -x /dev/sdz",
    "smartctl-scan.json": "smartctl -j --scan",
    "lsblk.json": "lsblk -J -b -d -o NAME,SERIAL,SIZE,TRAN,ROTA,MODEL,WWN,TYPE,STATE",
    "lsblk-no-device": "lsblk /dev/sdz",
    "lsscsi": "lsscsi",
    "lsscsi-s": "lsscsi -s",
    "hdparm-I": f"hdparm -I {SATA}",
    "sg_ses-drive": f"sg_ses {SAS}",
    "setpci-no-register": "setpci -s 00:10.0 NONSENSE.w",
    "sysfs-nvme": _NAMES.format("/sys/class/nvme/nvme0"),
    "sysfs-block": _NAMES.format("/sys/block/sda"),
    "sysfs-queue": _NAMES.format("/sys/block/sda/queue"),
    "sysfs-scsi": _NAMES.format("/sys/block/sda/device"),
    "udevadm-nvme": f"udevadm info --query=property {NVME}",
    "udevadm-sas": f"udevadm info --query=property {SAS}",
    "udevadm-sata": f"udevadm info --query=property {SATA}",
}


def _scsi(name: str) -> tuple[str, str]:
    host = f"$(readlink -f /sys/block/{name}/device | grep -o 'host[0-9]*' | tail -n 1)"
    return (
        f"echo {host} >/run/recorded; echo 1 >/sys/block/{name}/device/delete",
        "echo '- - -' >/sys/class/scsi_host/$(cat /run/recorded)/scan",
    )


RETURNS: Mapping[str, tuple[str, str]] = {
    "uevents-nvme.json": ("echo 1 >/sys/class/nvme/nvme0/device/remove", "echo 1 >/sys/bus/pci/rescan"),
    "uevents-sas.json": _scsi("sda"),
    "uevents-sata.json": _scsi("sdb"),
}
"""For each recording of events the commands that make a drive go, and come back."""
