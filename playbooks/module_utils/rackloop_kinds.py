"""Kinds of things that roles change on a host: files, values of the kernel, network links, kernel modules, units."""

from __future__ import annotations

import base64
import errno
import fcntl
import json
import os
import shutil
import socket
import struct
import subprocess
import tempfile
from pathlib import Path
from typing import Any, Protocol

_SIOCGIFMTU, _SIOCSIFMTU = 0x8921, 0x8922


class Refused(Exception):
    """Something cannot be done; the message says what and why."""


class Gone(FileNotFoundError):
    """A link, or another thing with a state, is not there; to put its state back, there is nothing to do."""


def run(*argv: str) -> str:
    """The output of a program. Raises Refused where it is missing or fails."""
    path = shutil.which(argv[0], path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
    if path is None:
        raise Refused(f"{argv[0]} is not installed")
    done = subprocess.run([path, *argv[1:]], capture_output=True, text=True, check=False)
    if done.returncode:
        said = (done.stderr or done.stdout).strip() or f"it ended with status {done.returncode}"
        raise Refused(f"{' '.join(argv)}: {said}")
    return done.stdout


def _says(*argv: str) -> str:
    """The first line that a program prints, whatever its status."""
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    return done.stdout.strip().partition("\n")[0]


class _Kind(Protocol):
    """One kind of thing that a host has: what it is now, by name, and how it is made something else."""

    def now(self, name: str) -> Any: ...
    def put(self, name: str, state: Any) -> None: ...


class _Files:
    """Whole files: content, permissions and owner; None where there is none."""

    def now(self, name: str) -> Any:
        path = Path(name)
        if path.is_symlink():
            raise Refused(f"{name} is a link; a file is expected there, or nothing")
        try:
            content, about = path.read_bytes(), path.stat()
        except FileNotFoundError:
            return None
        return {
            "content": base64.b64encode(content).decode(),
            "mode": about.st_mode & 0o7777,
            "owner": [about.st_uid, about.st_gid],
        }

    def put(self, name: str, state: Any) -> None:
        path = Path(name)
        if state is None:
            path.unlink()
            return
        # Of a file that is put back it may be gone since then, with the package that brought it.
        path.parent.mkdir(parents=True, exist_ok=True)
        fd, fresh = tempfile.mkstemp(dir=path.parent, prefix=".rackloop-")
        try:
            with os.fdopen(fd, "wb") as file:
                file.write(base64.b64decode(state["content"]))
                os.fchmod(file.fileno(), state["mode"])
                if [os.geteuid(), os.getegid()] != state["owner"]:
                    os.fchown(file.fileno(), *state["owner"])
                os.fsync(file.fileno())
            Path(fresh).replace(path)
        except BaseException:
            Path(fresh).unlink()
            raise


class _Folders:
    """Folders that files need; one that others have put something in stays."""

    def now(self, name: str) -> Any:
        return Path(name).is_dir()

    def put(self, name: str, state: Any) -> None:
        if state:
            Path(name).mkdir(0o755)
        elif not any(Path(name).iterdir()):
            Path(name).rmdir()


class _Values:
    """Values that the kernel shows as files; how many spaces are in them does not count."""

    def now(self, name: str) -> Any:
        try:
            return " ".join(Path(name).read_text().split())
        except FileNotFoundError:
            raise Gone(f"this kernel has no {name}") from None

    def put(self, name: str, state: Any) -> None:
        Path(name).write_text(f"{state}\n")


class Interrupts(_Values):
    """The CPUs that take a link's interrupts: ``eth0 3`` is the fourth.

    Not by their numbers: with each boot, or another count of queues, these are dealt anew, to any device.
    ``root`` is where /proc and /sys are.
    """

    # The kernel's refusals of CPUs that it does not have, or not online.
    _NO_SUCH_CPUS = frozenset({errno.EINVAL, errno.EOVERFLOW, errno.ERANGE})

    def __init__(self, root: Path) -> None:
        self._root = root

    def now(self, name: str) -> Any:
        """The CPUs of one, as the kernel lists them."""
        return super().now(self._file(name))

    def put(self, name: str, state: Any) -> None:
        """Have these CPUs take one."""
        try:
            super().put(self._file(name), state)
        except OSError as error:
            if error.errno in self._NO_SUCH_CPUS:
                raise Gone(f"{name}: CPUs {state}: {error.strerror}") from None
            raise

    def names(self, link: str) -> list[str]:
        """The link's interrupts, in the order of their numbers."""
        return [f"{link} {place}" for place in range(len(self._numbers(link)))]

    def _file(self, name: str) -> str:
        link, place = name.split()
        numbers = self._numbers(link)
        if int(place) >= len(numbers):
            raise Gone(f"{link} has {len(numbers)} interrupts, not {int(place) + 1}")
        return str(self._root / f"proc/irq/{numbers[int(place)]}/smp_affinity_list")

    def _numbers(self, link: str) -> list[int]:
        try:
            return sorted(int(irq.name) for irq in (self._root / f"sys/class/net/{link}/device/msi_irqs").iterdir())
        except FileNotFoundError:
            raise Gone(f"{link} is not there, or has no MSI interrupts") from None


class _Mtus:
    """The largest packet of a link (netdevice(7))."""

    def now(self, name: str) -> Any:
        return self._ask(name, _SIOCGIFMTU, 0)

    def put(self, name: str, state: Any) -> None:
        self._ask(name, _SIOCSIFMTU, state)

    @staticmethod
    def _ask(name: str, request: int, mtu: int) -> int:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
            try:
                answer = fcntl.ioctl(asked, request, struct.pack("16si12x", name.encode(), mtu))
            except OSError as error:
                if error.errno == errno.ENODEV:
                    raise Gone(f"{name}: {error.strerror}") from None
                raise
        return int(struct.unpack("16si12x", answer)[1])


class _Offloads:
    """Offloads of a link's hardware: ``eth0 tso`` is on or off (ethtool(8)), None where it cannot be switched."""

    def now(self, name: str) -> Any:
        link, feature = name.split()
        try:
            shown = json.loads(run("ethtool", "--json", "--show-features", link))[0]
        except Refused as refused:
            if not Path("/sys/class/net", link).exists():
                raise Gone(str(refused)) from None
            raise
        long_name = _FEATURES.get(feature, feature)
        if long_name not in shown:
            raise Refused(f"{link} knows no feature {long_name}")
        return None if shown[long_name].get("fixed") else bool(shown[long_name]["active"])

    def put(self, name: str, state: Any) -> None:
        link, feature = name.split()
        run("ethtool", "--features", link, feature, "on" if state else "off")


# ethtool's short names switch several features at once; each is told by one that knows whether it is fixed, but for
# checksums of what is sent, of which a link has one kind or another.
_FEATURES = {
    "rx": "rx-checksumming",
    "tx": "tx-checksumming",
    "sg": "tx-scatter-gather",
    "tso": "tx-tcp-segmentation",
    "gso": "generic-segmentation-offload",
    "gro": "generic-receive-offload",
    "lro": "large-receive-offload",
    "rxvlan": "rx-vlan-offload",
    "txvlan": "tx-vlan-offload",
    "ntuple": "ntuple-filters",
    "rxhash": "receive-hashing",
}


class _Modules:
    """The kernel modules that are loaded, or built in."""

    def now(self, name: str) -> Any:
        return Path("/sys/module", name.replace("-", "_")).is_dir()

    def put(self, name: str, state: Any) -> None:
        run("modprobe", *([] if state else ["--remove"]), name)


class _Units:
    """The units of systemd: enabled, and running; None where there is no such unit."""

    def now(self, name: str) -> Any:
        enabled = _says("systemctl", "is-enabled", name)
        if enabled in {"", "not-found"}:
            return None
        return {"enabled": enabled == "enabled", "active": _says("systemctl", "is-active", name) == "active"}

    def put(self, name: str, state: Any) -> None:
        # A unit that was not there before goes with the file that made it.
        wanted = state or {"enabled": False, "active": False}
        run("systemctl", "daemon-reload")
        run("systemctl", "enable" if wanted["enabled"] else "disable", name)
        run("systemctl", "start" if wanted["active"] else "stop", name)


KINDS: dict[str, _Kind] = {
    "file": _Files(),
    "folder": _Folders(),
    "value": _Values(),
    "interrupt": Interrupts(Path("/")),
    "mtu": _Mtus(),
    "offload": _Offloads(),
    "module": _Modules(),
    "unit": _Units(),
}
