"""Prerequisites of virtual racks on this machine: programs, memory and room on the disk."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

from rackloop.errors import BadInput

QEMU = "qemu-system-x86_64"
VDE_SWITCH = "vde_switch"
_MEMORY = Path("/proc/meminfo")
# The keys that Debian signs its packages by are a package of their own on other distributions.
_KEYS = "/usr/share/keyrings/debian-archive-keyring.gpg"
_BUILDERS = {"mmdebstrap": "mmdebstrap", "mkfs.ext4": "e2fsprogs", _KEYS: "debian-archive-keyring"}
# By which an ordinary user becomes root in a name space.
_ROOTLESS = {"newuidmap": "uidmap"}
_RUNNERS = {QEMU: "qemu-system-x86", VDE_SWITCH: "vde2", "setpriv": "util-linux"}
_ANSWERS_S = 30.0
# For QEMU itself, beside the memory of the guest.
_OVERHEAD_MIB = 192
_SYSTEM_FOLDERS = "/usr/local/sbin:/usr/sbin:/sbin"

Find = Callable[[str], str | None]


def require_programs(*, to_build: bool, find: Find | None = None) -> None:
    """Raise BadInput naming every program that is missing, and the command that installs them."""
    find = find or found
    wanted = {**_RUNNERS, **(_BUILDERS if to_build else {}), **(_ROOTLESS if to_build and os.geteuid() else {})}
    missing = {program: package for program, package in wanted.items() if find(program) is None}
    if missing:
        packages = " ".join(dict.fromkeys(missing.values()))
        raise BadInput(
            f"a virtual rack needs {' and '.join(missing)}, not found here: install with "
            f"`sudo apt-get install --no-install-recommends {packages}`"
        )


def found(program: str) -> str | None:
    """The path of a program, those of the administrator included; a path is that of a file."""
    if program.startswith("/"):
        return program if Path(program).is_file() else None
    return shutil.which(program) or shutil.which(program, path=_SYSTEM_FOLDERS)


def qemu_version() -> str:
    """The version of QEMU here, as it says itself. Raises BadInput where it says none."""
    try:
        said = subprocess.run(
            (found(QEMU) or QEMU, "--version"), capture_output=True, text=True, timeout=_ANSWERS_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise BadInput(f"{QEMU} --version: {error}; install qemu-system-x86 again") from error
    version = re.search(r"version (.+)", said.stdout)
    if version is None:
        raise BadInput(f"{QEMU} --version says no version: {said.stderr.strip() or said.stdout.strip()!r}")
    return version[1].strip()


def require_name_space(refusal: str | None = None) -> None:
    """Raise BadInput where this user may not have the name space that an image is made in; ``refusal`` says why."""
    refusal = _refused_name_space() if refusal is None else refusal
    if not refusal:
        return
    if os.geteuid() == 0:
        advice = "give it the capability SYS_ADMIN, as `docker run --privileged` does, or build on another machine"
    else:
        advice = (
            "let users have them (sysctl user.max_user_namespaces, kernel.unprivileged_userns_clone, "
            "kernel.apparmor_restrict_unprivileged_userns), or build as root"
        )
    raise BadInput(f"the guests' image is made in a name space of its own, refused here ({refusal}): {advice}")


def _refused_name_space() -> str:
    """The kernel's refusal of the name space; empty where it grants it."""
    wanted = ("--mount",) if os.geteuid() == 0 else ("--user", "--map-root-user", "--mount")
    argv = (found("unshare") or "unshare", *wanted, "true")
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=_ANSWERS_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return "" if done.returncode == 0 else done.stderr.strip() or f"unshare ended with status {done.returncode}"


def require_memory(guests: int, memory_mib: int, meminfo: Path = _MEMORY) -> None:
    """Raise BadInput where this machine has not the free memory for so many guests."""
    needed = guests * (memory_mib + _OVERHEAD_MIB)
    free = _available_mib(meminfo)
    if free is not None and free < needed:
        raise BadInput(
            f"{guests} guests of {memory_mib} MiB need {needed} MiB of memory, and {free} MiB are free: "
            "end other programs, or describe fewer servers"
        )


def require_room(
    folder: Path,
    needed_mib: int,
    what: str,
    free_bytes: Callable[[Path], int] | None = None,
    *,
    variable: str = "RACKLOOP_STATE_HOME",
) -> None:
    """Raise BadInput where the file system of ``folder`` has not so much room for ``what``; ``variable`` moves it."""
    free = (free_bytes or _free_bytes)(folder) >> 20
    if free < needed_mib:
        raise BadInput(
            f"{what} needs {needed_mib} MiB in {folder}, and {free} MiB are free: make room, or set {variable} to a "
            "folder of a larger disk"
        )


def _free_bytes(folder: Path) -> int:
    return shutil.disk_usage(folder).free


def _available_mib(meminfo: Path) -> int | None:
    try:
        lines = meminfo.read_text(encoding="ascii").splitlines()
        [available] = [line.split()[1] for line in lines if line.startswith("MemAvailable:")]
        return int(available) >> 10
    except (OSError, ValueError):
        return None
