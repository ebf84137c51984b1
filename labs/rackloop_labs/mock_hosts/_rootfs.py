"""The files of a mock server: its own, kept while the lab is up, and those of this machine."""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rackloop.errors import LabError
from rackloop_labs.mock_hosts._sysfs import SYSRQ_TRIGGER, WRITTEN, Sysfs

TOOLS_FOLDER = "/opt/rackloop/bin"
TOOL_SOCKET = "/run/rackloop/tools.sock"
SEARCH_PATH = f"{TOOLS_FOLDER}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
HOME = "/root"
_MACHINE_ID_NAMESPACE = uuid.UUID("5b2c1c43-51a5-4f5c-9a53-6f5a8a0b7d5e")

_OWN_FOLDERS = ("etc", "home", "opt", "root", "var")
_MADE_FOLDERS = (
    "etc/default",
    "etc/modprobe.d",
    "etc/modules-load.d",
    "etc/network/interfaces.d",
    "etc/profile.d",
    "etc/sysctl.d",
    "etc/systemd/system",
    "etc/tmpfiles.d",
    "etc/udev/rules.d",
    "opt/rackloop/bin",
    "var/cache",
    "var/lib",
    "var/log",
    "var/spool",
)
# These describe what is in /usr, which is this machine's; without them its programs and libraries are not found.
_MACHINES_OWN = (
    "/etc/alternatives",
    "/etc/debian_version",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/localtime",
    "/etc/protocols",
    "/etc/services",
    "/var/lib/dpkg",
    "/var/lib/rpm",
)
PANIC = "panic"
NMI_SETTINGS = ("unknown_nmi_panic", "panic_on_unrecovered_nmi", "panic_on_io_nmi")
"""Settings of a server's kernel: the first is kept and not obeyed."""
_MERGED_FOLDERS = ("bin", "lib", "lib32", "lib64", "sbin")


@dataclass(frozen=True)
class HostFolder:
    """The folder of a mock server's files on this machine."""

    path: Path

    @property
    def boot_id(self) -> Path:
        """Read as ``/proc/sys/kernel/random/boot_id``; written before each boot."""
        return self.path / "boot_id"

    def kernel_setting(self, name: str) -> Path:
        """The server's ``/proc/sys/kernel/NAME``, one of those that are its own."""
        return self.path / name

    @property
    def panics_at_nmi(self) -> bool:
        """Whether its kernel is set to panic at an NMI."""
        files = (self.kernel_setting(name) for name in NMI_SETTINGS)
        return any(file.exists() and file.read_text().strip() == "1" for file in files)

    def forget_settings(self) -> None:
        """Have the kernel's settings as they are after a boot."""
        for name in (PANIC, *NMI_SETTINGS):
            if (file := self.kernel_setting(name)).exists():
                file.write_text("0\n")

    @property
    def tool_socket(self) -> Path:
        """The socket at which the emulated tools of this server find the lab."""
        return self.path / "tools.sock"

    def furnish(self, server: str) -> None:
        """Make the files of a server that was just installed. Raises LabError where they cannot be written."""
        try:
            for name in _MADE_FOLDERS:
                (self.path / name).mkdir(parents=True)
            for name in ("home", "root", "tmp", "var/tmp"):
                (self.path / name).mkdir(parents=True)
            (self.path / "root").chmod(0o700)
            for name in ("tmp", "var/tmp"):
                (self.path / name).chmod(0o1777)
            for name, text in _etc(server).items():
                (self.path / "etc" / name).write_text(text)
            (self.path / "etc/shadow").chmod(0o640)
            for name, target in _LINKS.items():
                (self.path / name).symlink_to(target)
        except OSError as error:
            raise LabError(f"server {server}: its files cannot be made: {error}; look at {self.path}") from error

    def bindings(self, sysfs: Sysfs, tools: Path, sockets: Sequence[Path]) -> list[str]:
        """Bubblewrap's options that make the server's file tree of these files and this machine's ``/usr``.

        ``tools`` holds the emulated tools; ``sockets`` are reached in the server by the paths they have here. The
        folders of ``sysfs`` must be there when the server boots.
        """
        options = ["--ro-bind", "/usr", "/usr"]
        for name in _MERGED_FOLDERS:
            if (top := Path("/") / name).is_symlink():
                options += ["--symlink", str(top.readlink()), str(top)]
            elif top.is_dir():
                options += ["--ro-bind", str(top), str(top)]
        for name in (*_OWN_FOLDERS, "tmp"):
            options += ["--bind", str(self.path / name), f"/{name}"]
        for name in _MACHINES_OWN:
            options += ["--ro-bind-try", name, name]
        for name in ("boot", "media", "mnt", "srv"):
            options += ["--dir", f"/{name}"]
        options += self._kernel_bindings(sysfs)
        options += ["--ro-bind", str(sysfs.sys), "/sys", "--bind", str(sysfs.written), f"/sys/{WRITTEN}"]
        options += ["--dev", "/dev", "--ro-bind", str(sysfs.disk), "/dev/disk"]
        options += ["--ro-bind", str(tools), TOOLS_FOLDER]
        for socket in sockets:
            options += ["--bind", str(socket), str(socket)]
        return options

    def _kernel_bindings(self, sysfs: Sysfs) -> list[str]:
        options = ["--tmpfs", "/run", "--bind", str(self.tool_socket), TOOL_SOCKET, "--proc", "/proc"]
        # The kernel is this machine's: only what belongs to the server's own network may be set. It takes user 0 of
        # a server for its own where the lab runs as root.
        for option, path in (("--ro-bind", "/proc/sys"), ("--bind", "/proc/sys/net")):
            options += [option, path, path]
        options += ["--ro-bind", str(self.boot_id), "/proc/sys/kernel/random/boot_id"]
        # When a kernel panics, and what becomes of it then, is the server's own: it stays where it is.
        for setting in (PANIC, *NMI_SETTINGS):
            if (known := Path("/proc/sys/kernel") / setting).exists():
                self.kernel_setting(setting).write_text("0\n")
                options += ["--bind", str(self.kernel_setting(setting)), str(known)]
        if Path("/proc/sysrq-trigger").exists():
            options += ["--bind", str(sysfs.written / SYSRQ_TRIGGER), "/proc/sysrq-trigger"]
        return options


def remove(folder: Path) -> None:
    """Remove the files of mock servers, whatever their users made of them."""
    if not folder.exists():
        return
    try:
        shutil.rmtree(folder)
    except PermissionError:
        # A folder without permissions stops whoever is not root.
        for parent, names, _ in os.walk(folder):
            for path in (Path(parent) / name for name in names):
                if not path.is_symlink():
                    path.chmod(0o700)
        shutil.rmtree(folder)


def _etc(server: str) -> Mapping[str, str]:
    return {
        "environment": f'PATH="{SEARCH_PATH}"\n',
        "fstab": "",
        "group": "root:x:0:\nnogroup:x:65534:\n",
        "hostname": f"{server}\n",
        "hosts": f"127.0.0.1\tlocalhost\n127.0.1.1\t{server}\n::1\tlocalhost ip6-localhost ip6-loopback\n",
        "machine-id": f"{uuid.uuid5(_MACHINE_ID_NAMESPACE, server).hex}\n",
        "modules": "",
        "nsswitch.conf": "".join(f"{name}: files\n" for name in ("passwd", "group", "shadow", "hosts", "services")),
        "passwd": f"root:x:0:0:root:{HOME}:/bin/bash\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
        "profile": f'PATH="{SEARCH_PATH}"\nexport PATH\n'
        'for part in /etc/profile.d/*.sh; do [ -r "$part" ] && . "$part"; done\nunset part\n',
        "resolv.conf": "",
        "shadow": "root:*:19000:0:99999:7:::\nnobody:*:19000:0:99999:7:::\n",
        "shells": "/bin/sh\n/bin/bash\n/usr/bin/bash\n/usr/bin/sh\n",
        "sysctl.conf": "",
    }


_LINKS = {
    "etc/mtab": "../proc/self/mounts",
    "etc/os-release": "../usr/lib/os-release",
    "var/lock": "/run/lock",
    "var/run": "/run",
}
