"""The image of a guest: a root file system of Debian packages, a kernel and its initramfs."""

from __future__ import annotations

import hashlib
import json
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

from rackloop.clock import Clock
from rackloop.errors import LabError
from rackloop.lab import environment_for_programs
from rackloop_labs.virtual_rack.prerequisites import found
from rackloop_labs.virtual_rack.recipe import ACCOUNT, GuestRecipe

DISK, KERNEL, INITRD, PACKAGES = "disk.raw", "vmlinuz", "initrd", "packages.txt"
"""The files of an image; the last lists its packages and their versions."""
CONTENT = "content.sha256"
"""The file with the SHA-256 of the root's files, with their owners, rights and times, and that of the initramfs."""
PARTS = (DISK, KERNEL, INITRD, PACKAGES, CONTENT)
MEMORY, STATE = "memory.raw", "state"
"""The files of a saved guest beside its image's: its memory, and the state of its devices."""

Say = Callable[[str], None]

_STEP = re.compile(r"I: ((?:running apt-get|downloading|extracting|installing|cleaning)\b.*?)(?:\.\.\.|$)")
_LAST_HOOK = re.compile(r"I: running --customize-hook .*/finish ")
_NOT_FETCHED = "E: Failed to fetch "
_LAST_LINES = 6
# By it the parts come out of mmdebstrap's name space, whose root is another user than the one who builds.
_OUT = 9
_SBIN = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def build_image(recipe: GuestRecipe, folder: Path, clock: Clock, say: Say) -> None:
    """Make the image in ``folder``, which is there; ``say`` is told of each step.

    Needs the network, and no root where user namespaces may be used. From the same packages the same content comes
    out, by :data:`CONTENT`, whenever and wherever it is built; the places of files on the disk may differ. Raises
    LabError with what mmdebstrap said last where it fails.
    """
    with tempfile.TemporaryDirectory(prefix="rackloop-image-", ignore_cleanup_errors=True) as name:
        work = Path(name)
        # The root of mmdebstrap's name space, seen from here another user, works here, too.
        work.chmod(0o1777)
        for stage, files in {"early": recipe.early_files, "late": recipe.files}.items():
            _write(work / stage, files)
        _write(work, {"finish": _finish(recipe)})
        program = found("mmdebstrap") or "mmdebstrap"
        with _unpacking(folder) as out:
            _run([program, *_arguments(recipe, work)], recipe, out, work, clock, say)
    missing = [part for part in PARTS if not (folder / part).exists()]
    if missing:
        raise LabError(f"mmdebstrap made no {', '.join(missing)}; build it again with an empty cache")


def making_of(recipe: GuestRecipe) -> str:
    """All that is done to make an image, but for what the recipe's files do themselves."""
    return "\n".join((*_arguments(recipe, Path("work")), _finish(recipe)))


def image_digest(recipe: GuestRecipe, making: str) -> str:
    """The digest of what an image is made from, and of its ``making``; the machine that boots it is no part of it."""
    parts = asdict(recipe)
    for of_the_machine in ("memory_mib", "slots", "append"):
        del parts[of_the_machine]
    return digest([parts, making])


def digest(parts: object) -> str:
    """A name, 16 hexadecimal digits, for what is made from these parts, which JSON can hold."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]


def _arguments(recipe: GuestRecipe, work: Path) -> list[str]:
    """The arguments of mmdebstrap, to make the root file system with what stands in ``work``."""
    return [
        *("--format=null", "--variant=apt", "--components=main"),
        *("--architectures=amd64", f"--include={','.join(recipe.packages)}"),
        *(f"--dpkgopt=path-exclude=/usr/share/{what}/*" for what in ("doc", "info", "locale", "man")),
        *(f"--dpkgopt=path-exclude={path}" for path in recipe.left_out),
        f'--essential-hook=cp -r {shlex.quote(str(work))}/early/. "$1"',
        f'--customize-hook=cp -r {shlex.quote(str(work))}/late/. "$1"',
        f'--customize-hook=sh {shlex.quote(str(work))}/finish "$1"',
        *(recipe.suite, "/dev/null"),
    ]


def _finish(recipe: GuestRecipe) -> str:
    """The script that makes the parts of the root file system, on mmdebstrap's side."""
    return f"""set -e
root=$1
units() {{ systemctl --root="$root" --quiet "$@" 2>/dev/null || chroot "$root" systemctl --quiet "$@"; }}
units enable systemd-networkd.service ssh.service rackloop-guest.service
units disable {" ".join(recipe.disabled)}
chroot "$root" useradd --create-home --shell /bin/sh {ACCOUNT}
chmod 440 "$root/etc/sudoers.d/rackloop"
{_offer(recipe)}
for unit in {" ".join(recipe.masked)}; do ln -sf /dev/null "$root/etc/systemd/system/$unit"; done
: >"$root/etc/machine-id"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
chroot "$root" dpkg-query --show >"$work/{PACKAGES}"
cp "$root"/boot/vmlinuz-* "$work/{KERNEL}"
cp "$root"/boot/initrd.img-* "$work/{INITRD}"
# What each installation draws anew, or tells of itself, is no part of the image: guests draw their own.
rm -f "$root"/boot/initrd.img-* "$root"/etc/ssh/ssh_host_*_key* "$root"/etc/nvme/hostnqn "$root"/etc/nvme/hostid
find "$root/var/cache" "$root/var/log" "$root/var/lib/apt/lists" -xdev -type f -delete
rm -f "$root"/etc/*- "$root"/var/lib/dpkg/*-old
mkdir "$work/root"
# What is mounted in it is not of it, and where an ordinary user builds these are the files of dev, too; nor is what
# mmdebstrap keeps in tmp.
for part in "$root"/*; do
  case ${{part##*/}} in
    dev | proc | run | sys) mkdir "$work/root/${{part##*/}}" ;;
    tmp) mkdir -m 1777 "$work/root/tmp" ;;
    *) cp -ax "$part" "$work/root/" ;;
  esac
done
# What is newer than this script was written by the build. What packages brought keeps its date, which is in Python's
# compiled files, too.
find "$work/root" -newer "$0" -exec touch --no-dereference --date="@$SOURCE_DATE_EPOCH" {{}} +
{{ tar -C "$work/root" --sort=name --numeric-owner -c . | sha256sum; sha256sum <"$work/{INITRD}"; }} >"$work/{CONTENT}"
truncate -s {recipe.disk_mib}M "$work/{DISK}"
mkfs.ext4 -q -F -L rackloop -E lazy_itable_init=0,nodiscard -d "$work/root" "$work/{DISK}"
rm -rf "$work/root"
tar -C "$work" --sparse --owner=0 --group=0 -c {" ".join(PARTS)} >&{_OUT}
"""


def _offer(recipe: GuestRecipe) -> str:
    """The part of the script that puts packages into a repository of the guest's own, in place of Debian's."""
    place = "srv/packages"
    return f"""mkdir "$root/{place}"
(
  cd "$root/{place}"
  APT_CONFIG=$MMDEBSTRAP_APT_CONFIG apt-get download -qq -o APT::Sandbox::User=root {" ".join(recipe.offered)}
  for package in *.deb; do
    dpkg-deb --field "$package"
    echo "Filename: ./$package"
    echo "Size: $(stat --format=%s "$package")"
    echo "SHA256: $(sha256sum <"$package" | cut -d" " -f1)"
    echo
  done >Packages
)
rm -f "$root"/etc/apt/sources.list.d/*
echo "deb [trusted=yes] file:/{place} ./" >"$root"/etc/apt/sources.list"""


def _write(folder: Path, files: Mapping[str, str]) -> None:
    for place, text in files.items():
        path = folder / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        if text.startswith("#!"):
            path.chmod(0o755)


@contextmanager
def _unpacking(folder: Path) -> Iterator[int]:
    """A pipe whose other end unpacks what comes into ``folder``; returns once it has."""
    tar = subprocess.Popen(
        (shutil.which("tar") or "tar", "-x", "--sparse", "--no-same-owner", "-C", str(folder)),
        stdin=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert tar.stdin is not None  # noqa: S101 - asked for
    try:
        yield tar.stdin.fileno()
    finally:
        tar.stdin.close()
        status = tar.wait()
    if status != 0:
        raise LabError(f"the image could not be unpacked in {folder}: is its disk full?")


def _run(argv: list[str], recipe: GuestRecipe, out: int, work: Path, clock: Clock, say: Say) -> None:
    started_ns = clock.now_ns()
    lines: list[str] = []
    # As root mmdebstrap mounts proc, sys and dev where it stands: in a name space of their own they are gone with it,
    # even where it is killed. A shell may know no descriptor of two digits, which this one can have here.
    apart = 'if [ "$(id -u)" = 0 ] && unshare --mount true 2>/dev/null; then set -- unshare --mount "$@"; fi'
    shell = f'{apart}; exec "$@" {_OUT}>&1 >/dev/null'
    environment = {**environment_for_programs(), "PATH": _SBIN, "LC_ALL": "C.UTF-8", "TMPDIR": str(work)}
    environment |= {"DEBIAN_FRONTEND": "noninteractive", "SOURCE_DATE_EPOCH": str(recipe.dated_s)}
    with subprocess.Popen(
        # However this process ends, mmdebstrap ends and clears up.
        ("setpriv", "--pdeathsig", "TERM", "sh", "-c", shell, "sh", *argv),
        stdin=subprocess.DEVNULL,
        stdout=out,
        stderr=subprocess.PIPE,
        env=environment,
        text=True,
        errors="replace",
    ) as process:
        assert process.stderr is not None  # noqa: S101 - asked for
        try:
            for line in process.stderr:
                lines.append(line.rstrip())
                step = _STEP.match(line)
                if step or _LAST_HOOK.match(line):
                    what = step[1] if step else "making the disk"
                    say(f"image: {what} ({(clock.now_ns() - started_ns) / 1e9:.0f} s)")
        except BaseException:
            process.terminate()
            raise
    if process.returncode != 0:
        if refused := next((line for line in lines if _NOT_FETCHED in line), None):
            raise LabError(
                f"Debian's packages cannot be downloaded: {refused.removeprefix('E: ')}; is there a network?"
            )
        said = " | ".join([line for line in lines if line and not line.startswith("I:")][-_LAST_LINES:])
        raise LabError(f"mmdebstrap ended with status {process.returncode}: {said or 'it said nothing'}")
