"""The recipe of a guest: its packages, its files and its machine; what is built from it is kept under its digest."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

AGENT_PORT = "rackloop"
"""The virtio-serial port by which a guest is told who it is."""
FIRST_SLOT = 0x10
"""The number on the first PCI bus of the first slot for drives."""

# Those of the shipped playbook's roles among them: the guests reach no network to install them from.
_PACKAGES = (
    "dmsetup",
    "ethtool",
    "fio",
    "hdparm",
    "iproute2",
    "kmod",
    "linux-image-amd64",
    "lsscsi",
    "mdadm",
    "nftables",
    "nvme-cli",
    "open-iscsi",
    "openssh-server",
    "pciutils",
    "procps",
    "python3",
    "python3-apt",
    "sg3-utils",
    "smartmontools",
    "smp-utils",
    "sudo",
    "systemd-sysv",
    "targetcli-fb",
    "udev",
)

# What it does before it says that it is ready is in the saved memory, and costs nothing when the guest is resumed.
_AGENT = f"""#!/bin/sh
exec 3<>/dev/virtio-ports/{AGENT_PORT}
modprobe nvme
udevadm settle
{{ nvme list; lsblk; smartctl --version; python3 -c 'import json, socket, subprocess'; }} >/dev/null 2>&1
echo ready >&3
while :; do
  if ! read -r verb rest <&3; then sleep 0.1; continue; fi
  case $verb in
    name) hostname "$rest"; echo "$rest" >/etc/hostname ;;
    id) echo "$rest" >/etc/machine-id ;;
    time) date -s "@$rest" >/dev/null ;;
    key) mkdir -p -m 700 ~root/.ssh; echo "$rest" >~root/.ssh/authorized_keys ;;
    hostkey) rest=$(cat /etc/ssh/ssh_host_ed25519_key.pub) ;;
    slots) rest=$(for at in $rest; do cat "/sys/bus/pci/devices/0000:00:$at.0/secondary_bus_number"; done | xargs) ;;
    sync) sync ;;
  esac
  echo "$verb $rest" >&3
done
"""

_AGENT_UNIT = """[Unit]
Description=Tells this guest of a virtual rack who it is
After=ssh.service systemd-networkd.service

[Service]
ExecStart=/usr/local/sbin/rackloop-guest
Restart=always

[Install]
WantedBy=multi-user.target
"""

_FILES = {
    "etc/fstab": "/dev/vda / ext4 defaults,noatime 0 1\n",
    "etc/hostname": "guest\n",
    "etc/hosts": "127.0.0.1 localhost\n::1 localhost\n",
    # There is no network to ask one by: what needs a name fails at once, not after minutes.
    "etc/resolv.conf": "# no name server\n",
    # A panic before this is read ends the guest, as the kernel's arguments say; a server that panics later stays so.
    "etc/sysctl.d/10-rackloop.conf": "kernel.panic = 0\n",
    "etc/ssh/sshd_config.d/rackloop.conf": (
        "HostKey /etc/ssh/ssh_host_ed25519_key\n"
        "PasswordAuthentication no\n"
        "PermitRootLogin prohibit-password\n"
        "UseDNS no\n"
    ),
    # Without a processor of its own a guest finds its console's device after more than systemd's 90 s, and would have
    # no login there.
    "etc/systemd/system.conf.d/10-rackloop.conf": "[Manager]\nDefaultDeviceTimeoutSec=15min\n",
    "etc/systemd/network/10-rackloop.network": (
        "[Match]\nName=en*\n\n[Network]\nAddress=10.0.2.15/24\nGateway=10.0.2.2\nLinkLocalAddressing=no\n"
    ),
    "etc/systemd/system/rackloop-guest.service": _AGENT_UNIT,
    "usr/local/sbin/rackloop-guest": _AGENT,
}

# Of an initramfs only what mounts the root: a processor in software unpacks it.
_EARLY_FILES = {
    "etc/initramfs-tools/conf.d/rackloop": "MODULES=list\nCOMPRESS=gzip\nRESUME=none\n",
    "usr/share/initramfs-tools/modules.d/rackloop": "virtio_pci\nvirtio_blk\next4\n",
}

_MASKED = (
    "apt-daily.timer",
    "apt-daily-upgrade.timer",
    "dpkg-db-backup.timer",
    "e2scrub_all.timer",
    "e2scrub_reap.service",
    "fstrim.timer",
    "mdcheck_start.timer",
    "mdcheck_continue.timer",
    "mdmonitor-oneshot.timer",
    "smartmontools.service",
    "systemd-networkd-wait-online.service",
)


@dataclass(frozen=True)
class GuestRecipe:
    """The ingredients of a guest. ``early_files`` are there before the kernel's package is, ``files`` at the end."""

    suite: str = "bookworm"
    packages: tuple[str, ...] = _PACKAGES
    early_files: Mapping[str, str] = field(default_factory=lambda: dict(_EARLY_FILES))
    files: Mapping[str, str] = field(default_factory=lambda: dict(_FILES))
    masked: tuple[str, ...] = _MASKED
    disk_mib: int = 3072
    memory_mib: int = 640
    slots: int = 8
    append: str = "root=/dev/vda ro console=ttyS0,115200 quiet panic=1 net.ifnames=1 systemd.show_status=0"

    @property
    def image_digest(self) -> str:
        """The digest of what the image is made from; the machine that boots it is no part of it."""
        parts = asdict(self)
        for of_the_machine in ("memory_mib", "slots", "append"):
            del parts[of_the_machine]
        return _digest(parts)

    def booted_digest(self, machine: str) -> str:
        """The digest of a guest that was booted from the image and saved, by this ``machine``."""
        return _digest([asdict(self), machine])


def _digest(parts: object) -> str:
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]
