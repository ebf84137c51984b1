"""A Linux of its own, in QEMU: a real kernel, an sshd, and what serves a block device of it as an NBD export."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from rackloop.clock import Clock, Deadline
from rackloop_drivers.host import SshAccess
from tests.linux_guest.initramfs import Initramfs
from tests.linux_guest.packages import UNPACKED, GuestPackages
from tests.linux_guest.qemu import QEMU, READY, running_qemu
from tests.sshd_process import SSHD, make_key

SSH_PORT = 22
NBD_PORT = 10809
# What the kernel needs to have disks and a network. Of its random numbers the processor is the source.
_MODULES = ("virtio_pci", "virtio_blk", "virtio_net")

_INITTAB = "::sysinit:/bin/busybox sh /etc/rc\n"
_RC = f"""
/bin/busybox --install -s /bin
export PATH=/bin:/sbin:/usr/sbin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
mkdir -p /dev/pts /run/sshd
mount -t devpts devpts /dev/pts
for module in $(cat /etc/modules); do insmod "/lib/$module" || echo "$module is not loaded"; done
ip link set lo up
ip address add 10.0.2.15/24 dev eth0
ip link set eth0 up
/usr/sbin/sshd -f /etc/sshd_config && echo {READY}
"""
_SSHD = """
AuthorizedKeysFile /etc/authorized_keys
HostKey /etc/host_key
PasswordAuthentication no
PermitRootLogin prohibit-password
StrictModes no
UseDNS no
UsePAM no
"""
_TEXTS = {
    "/etc/group": "root:x:0:\nnogroup:x:65534:\n",
    "/etc/inittab": _INITTAB,
    "/etc/passwd": "root:x:0:0:root:/root:/bin/sh\nsshd:x:65534:65534::/run/sshd:/bin/false\n",
    "/etc/rc": _RC,
    "/etc/sshd_config": _SSHD,
}


@dataclass(frozen=True)
class LinuxGuest:
    """A guest that is up. ``access`` logs in to it as root and knows its key; ``nbd`` leads to its ``NBD_PORT``."""

    access: SshAccess
    nbd: tuple[str, int]


def require_guest(unpacked: Path = UNPACKED) -> GuestPackages:
    """The packages of the guest. Skips the test, with the reason, where a guest cannot be had."""
    packages = GuestPackages(unpacked)
    lacking = [
        name
        for name, is_there in {
            "qemu-system-x86": QEMU,
            "openssh-server": SSHD,
            "nbdkit": shutil.which("nbdkit"),
            f"a kernel in {unpacked}": packages.is_there,
        }.items()
        if not is_there
    ]
    if lacking:
        pytest.skip(f"no Linux guest without {', '.join(lacking)}: `./rackloop test nightly` gets them on Debian")
    return packages


@contextmanager
def running_guest(
    packages: GuestPackages,
    disks: Sequence[Path],
    clock: Clock,
    *,
    modules: Sequence[str] = (),
    programs: Sequence[str] = (),
    boot_s: float = 120.0,
) -> Iterator[LinuxGuest]:
    """A guest with these disks (raw files) for as long as the block lasts.

    ``modules`` are loaded beside what every guest has; ``programs`` are paths in the unpacked packages. Raises
    DeadlineExceeded where it is not up after ``boot_s``, ToolError where it ends before.
    """
    with tempfile.TemporaryDirectory(prefix="rackloop-guest-") as name:
        folder = Path(name)
        key, host_key = make_key(folder / "user_key"), make_key(folder / "host_key")
        root = Initramfs(folder / "root", packages.root / "bin/busybox")
        loaded = packages.modules((*_MODULES, *modules))
        for module in loaded:
            root.add_file(module, f"/lib/{module.name}")
        for program in programs:
            root.add_program(packages.root / program, f"/{program}")
        root.add_program(Path(str(SSHD)), "/usr/sbin/sshd")
        root.add_program(Path(str(shutil.which("nbdkit"))), "/bin/nbdkit")
        root.add_program(_nbdkit_plugin("file"))
        root.add_file(host_key, "/etc/host_key")
        root.add_file(key.with_name("user_key.pub"), "/etc/authorized_keys")
        for place, text in _TEXTS.items():
            root.add_text(place, text)
        root.add_text("/etc/modules", "".join(f"{module.name}\n" for module in loaded))
        archive = root.pack(folder / "initramfs")
        with running_qemu(folder, packages.kernel, archive, disks, (SSH_PORT, NBD_PORT)) as qemu:
            qemu.wait_until_ready(Deadline.after(clock, boot_s))
            ports = qemu.ports()
            known_hosts = folder / "known_hosts"
            public = " ".join(host_key.with_name("host_key.pub").read_text().split()[:2])
            known_hosts.write_text(f"[127.0.0.1]:{ports[SSH_PORT]} {public}\n")
            access = SshAccess("guest", "127.0.0.1", known_hosts, ports[SSH_PORT], "root", key)
            yield LinuxGuest(access, ("127.0.0.1", ports[NBD_PORT]))


def _nbdkit_plugin(name: str) -> Path:
    said = subprocess.run(("nbdkit", "--dump-config"), capture_output=True, text=True, check=True).stdout
    config = dict(line.partition("=")[::2] for line in said.splitlines())
    return Path(config["plugindir"]) / f"nbdkit-{name}-plugin.so"
