"""The recipe of a guest: its packages, its files and its machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

AGENT_PORT = "rackloop"
"""The virtio-serial port by which a guest is told who it is."""
STORAGE_LINK = "enp0s6"
"""The network link of a guest that leads to the others."""
ACCOUNT = "labuser"
"""The account of a guest, besides root's, that logs in by the same key and may be root by sudo."""
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

_HOST_KEY = "/etc/ssh/ssh_host_ed25519_key"

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
    key)
      for home in ~root ~{ACCOUNT}; do mkdir -p -m 700 "$home/.ssh"; echo "$rest" >"$home/.ssh/authorized_keys"; done
      chown -R {ACCOUNT}: ~{ACCOUNT}/.ssh ;;
    hostkey) rest=$(cat {_HOST_KEY}.pub) ;;
    storage)
      set -- $rest
      printf '[Match]\\nName={STORAGE_LINK}\\n\\n[Network]\\nAddress=%s\\nLinkLocalAddressing=no\\n' "$2" \\
        >/etc/systemd/network/20-storage.network
      ip link set dev {STORAGE_LINK} address "$1"
      ip address add "$2" dev {STORAGE_LINK}
      ip link set dev {STORAGE_LINK} up ;;
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

# Modules without a device of theirs in a guest, and those whose code is timed or tested when they are loaded.
_UNLOADED = (
    *("ccp", "cfg80211", "i2c_i801", "iTCO_wdt", "kvm", "kvm_amd", "lpc_ich", "pcspkr", "psmouse", "serio_raw"),
    *("aesni_intel", "crc32_pclmul", "ghash_clmulni_intel", "sha1_ssse3", "sha256_ssse3", "sha512_ssse3"),
)

_FILES = {
    "etc/fstab": "/dev/vda / ext4 defaults,noatime 0 1\n",
    "etc/hostname": "guest\n",
    "etc/modprobe.d/rackloop.conf": "".join(f"blacklist {module}\n" for module in _UNLOADED),
    "etc/hosts": "127.0.0.1 localhost\n::1 localhost\n",
    # There is no network to ask one by: what needs a name fails at once, not after minutes.
    "etc/resolv.conf": "# no name server\n",
    "etc/sudoers.d/rackloop": f"{ACCOUNT} ALL=(root) NOPASSWD: ALL\n",
    # A panic before this is read ends the guest, as the kernel's arguments say; a server that panics later stays so.
    "etc/sysctl.d/10-rackloop.conf": "kernel.panic = 0\n",
    # It is drawn when iSCSI is first used: all guests of one image had the same.
    "etc/iscsi/initiatorname.iscsi": "GenerateName=yes\n",
    "etc/systemd/system/ssh.service.d/rackloop.conf": (
        "[Service]\nExecStartPre=\n"
        f"ExecStartPre=sh -c '[ -e {_HOST_KEY} ] || ssh-keygen -q -t ed25519 -N \"\" -f {_HOST_KEY}'\n"
        "ExecStartPre=/usr/sbin/sshd -t\n"
    ),
    "etc/ssh/sshd_config.d/rackloop.conf": (
        f"HostKey {_HOST_KEY}\nPasswordAuthentication no\nPermitRootLogin prohibit-password\nUseDNS no\n"
    ),
    # Without a processor of its own a guest finds its console's device after more than systemd's 90 s, and would have
    # no login there.
    "etc/systemd/system.conf.d/10-rackloop.conf": "[Manager]\nDefaultDeviceTimeoutSec=15min\n",
    "etc/systemd/network/10-rackloop.network": (
        "[Match]\nName=enp0s4\n\n[Network]\nAddress=10.0.2.15/24\nGateway=10.0.2.2\nLinkLocalAddressing=no\n"
    ),
    "etc/systemd/system/rackloop-guest.service": _AGENT_UNIT,
    "usr/local/sbin/rackloop-guest": _AGENT,
}

# Of an initramfs only what mounts the root: a processor in software unpacks it.
_EARLY_FILES = {
    "etc/initramfs-tools/conf.d/rackloop": "MODULES=list\nCOMPRESS=gzip\nRESUME=none\n",
    "usr/share/initramfs-tools/modules.d/rackloop": "virtio_pci\nvirtio_blk\next4\n",
    # The kernel's own /dev has the disk at once: udev, which hands it on else, is started when the root is there.
    "usr/share/initramfs-tools/scripts/init-bottom/rackloop": (
        '#!/bin/sh\n[ "$1" = prereqs ] || mount -n -o move /dev "$rootmnt/dev"\n'
    ),
}

# What no test of a rack asks for. With these, the modules above and a second udev in the initramfs, a boot in software
# took half as long again.
_MASKED = (
    "apt-daily.timer",
    "apt-daily-upgrade.timer",
    "dpkg-db-backup.timer",
    "e2scrub_all.timer",
    "e2scrub_reap.service",
    "fstrim.timer",
    "getty-static.service",
    "getty@tty1.service",
    "mdcheck_start.timer",
    "mdcheck_continue.timer",
    "mdmonitor-oneshot.timer",
    "modprobe@fuse.service",
    "modprobe@loop.service",
    "proc-sys-fs-binfmt_misc.automount",
    "smartmontools.service",
    "sys-fs-fuse-connections.mount",
    "systemd-binfmt.service",
    "systemd-networkd-wait-online.service",
    "systemd-pstore.service",
    "systemd-update-utmp.service",
    "systemd-update-utmp-runlevel.service",
)
# Playbooks enable them where they are configured.
_DISABLED = ("nvmefc-boot-connections.service", "nvmf-autoconnect.service", "rtslib-fb-targetctl.service")
_LEFT_OUT = tuple(
    f"/usr/share/initramfs-tools/{part}"
    for part in (
        *("hooks/dmsetup", "hooks/fsck", "hooks/iscsi", "hooks/keymap", "hooks/mdadm", "hooks/thermal", "hooks/udev"),
        *("scripts/init-top/udev", "scripts/init-bottom/udev"),
        *("scripts/local-bottom/iscsi", "scripts/local-bottom/mdadm"),
    )
)


@dataclass(frozen=True)
class GuestRecipe:
    """The ingredients of a guest. ``early_files`` are there before the kernel's package is, ``files`` at the end.

    Units that are ``masked`` cannot be started; ``disabled`` ones are not started at boot before a playbook enables
    them. ``left_out`` are files of packages, as dpkg's path-exclude takes them. ``offered`` are packages that a guest
    can install without a network. No file of the image is newer than ``dated_s``, in seconds since 1970: by default
    the release of the suite.
    """

    suite: str = "bookworm"
    packages: tuple[str, ...] = _PACKAGES
    early_files: Mapping[str, str] = field(default_factory=lambda: dict(_EARLY_FILES))
    files: Mapping[str, str] = field(default_factory=lambda: dict(_FILES))
    masked: tuple[str, ...] = _MASKED
    disabled: tuple[str, ...] = _DISABLED
    left_out: tuple[str, ...] = _LEFT_OUT
    offered: tuple[str, ...] = ("lsscsi",)
    dated_s: int = 1686355200
    disk_mib: int = 3072
    memory_mib: int = 640
    slots: int = 8
    append: str = (
        "root=/dev/vda ro console=ttyS0,115200 quiet panic=1 net.ifnames=1 systemd.show_status=0 fsck.mode=skip "
        "cryptomgr.notests 8250.nr_uarts=1 nr_cpus=1"
    )
