"""Ansible module: probe which settings of a host can be changed; others are skipped with a reason."""

from __future__ import annotations

import fcntl
import os
import shutil
import socket
import struct
import tempfile
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule  # type: ignore[import-untyped]

DOCUMENTATION = r"""
module: rackloop_capabilities
short_description: Find out what a host cannot do
description:
  - Sets the fact C(rackloop_cannot), a mapping of what the host cannot do to the reason.
  - Keys are C(packages), C(boot), C(modules), C(services), C(udev), C(sysctls),
    C(links) and C(offloads); what a host can do is not in it.
  - Changes nothing.
author: [Rackloop]
"""

EXAMPLES = r"""
- name: Find out what this host cannot do
  rackloop_capabilities:
"""

RETURN = r"""
ansible_facts:
  description: The fact C(rackloop_cannot).
  returned: always
  type: dict
"""

_CAP_SYS_MODULE = 16
_SIOCGIFMTU, _SIOCSIFMTU = 0x8921, 0x8922
_ALL_USERS = ["0", "0", "4294967295"]


def packages() -> str:
    """Installing a package writes to /usr."""
    return _cannot_write_to("/usr")


def boot() -> str:
    """A new initramfs or boot menu goes to /boot, where there is a kernel to boot."""
    if not any(Path("/boot").glob("vmlinuz*")):
        return "the server boots no kernel of its own (/boot has none)"
    return _cannot_write_to("/boot")


def _cannot_write_to(folder: str) -> str:
    try:
        with tempfile.TemporaryFile(dir=folder):
            return ""
    except OSError as error:
        return f"{folder} cannot be written ({error.strerror})"


def modules() -> str:
    """Loading a kernel module takes CAP_SYS_MODULE in the first user namespace (capabilities(7))."""
    effective = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("CapEff:"))
    if not int(effective.split()[1], 16) >> _CAP_SYS_MODULE & 1:
        return "kernel modules cannot be loaded (no CAP_SYS_MODULE)"
    if Path("/proc/self/uid_map").read_text().split() != _ALL_USERS:
        return "kernel modules cannot be loaded (this is a user namespace)"
    return ""


def services() -> str:
    """True where systemd is running, by its folder (sd_booted(3))."""
    return "" if Path("/run/systemd/system").is_dir() else "services cannot be managed (systemd is not running)"


def udev() -> str:
    """Rules take effect where udevd listens."""
    return "" if Path("/run/udev/control").exists() else "udev rules have no effect (udevd is not running)"


def sysctls() -> str:
    """Settings of the kernel are files below /proc/sys; opening one for writing changes nothing."""
    setting = Path("/proc/sys/net/ipv4/tcp_rmem")
    try:
        with setting.open("r+"):
            return ""
    except OSError as error:
        return f"kernel settings cannot be changed ({setting}: {error.strerror})"


def links() -> str:
    """The loopback is given the MTU that it has (netdevice(7))."""
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
            as_it_is = fcntl.ioctl(asked, _SIOCGIFMTU, struct.pack("16s16x", b"lo"))
            fcntl.ioctl(asked, _SIOCSIFMTU, as_it_is)
    except OSError as error:
        return f"network links cannot be changed ({error.strerror})"
    return ""


def offloads() -> str:
    """They are switched by ethtool; where it can be installed it will be."""
    if shutil.which("ethtool", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"):
        return links()
    why = packages()
    return f"offloads cannot be switched (ethtool is not installed, and {why})" if why else links()


CHECKS = (packages, boot, modules, services, udev, sysctls, links, offloads)


def main() -> None:
    """Answer one task of a playbook."""
    module = AnsibleModule(argument_spec={}, supports_check_mode=True)
    found = {check.__name__: check() for check in CHECKS}
    cannot = {what: why for what, why in found.items() if why}
    module.exit_json(changed=False, ansible_facts={"rackloop_cannot": cannot})


if __name__ == "__main__":
    main()
