"""The cache of guests: images by the digest of all they are made from, and guests that were booted once and saved."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rackloop.clock import Clock
from rackloop.errors import BadInput, LabError
from rackloop.lab import state_root
from rackloop_labs.virtual_rack.image import (
    DISK,
    INITRD,
    KERNEL,
    MEMORY,
    PACKAGES,
    PARTS,
    STATE,
    Say,
    build_image,
    digest,
    image_digest,
    making_of,
)
from rackloop_labs.virtual_rack.prerequisites import (
    qemu_version,
    require_memory,
    require_name_space,
    require_programs,
    require_room,
)
from rackloop_labs.virtual_rack.recipe import FIRST_SLOT, GuestRecipe

_ABOUT = "about.json"
_SCHEMA = 2
_BOOTED = (DISK, KERNEL, INITRD, MEMORY, STATE)
# What they take of a disk, with a margin: files with holes; and what an image takes while it is made, elsewhere.
_IMAGE_MIB, _BOOTED_MIB, _WORK_MIB = 1536, 2048, 4096
# In software, on a machine that is busy with other things. A guest that panics ends, and is not waited for.
_BOOT_S = 900.0
_ANSWER_S = 60.0


@dataclass(frozen=True)
class SavedGuest:
    """A guest that was booted and saved in ``folder``; ``slot_buses`` are the PCI buses of its slots, in order."""

    folder: Path
    recipe: GuestRecipe
    host_key: str
    slot_buses: tuple[int, ...]


class GuestCache:
    """The images and saved guests of this machine, below ``root``, for all labs that are made by ``recipe``."""

    def __init__(
        self, clock: Clock, recipe: GuestRecipe | None = None, root: Path | None = None, boot_s: float = _BOOT_S
    ) -> None:
        self.recipe = recipe or GuestRecipe()
        self._clock = clock
        self._boot_s = boot_s
        self._root = root or state_root() / "guests"

    @property
    def image(self) -> Path:
        """The folder of the image."""
        return self._root / f"image-{self._image_digest}"

    def booted(self) -> Path:
        """The folder of the guest that this version of QEMU booted from the image, on a machine that is the same."""
        from rackloop_labs.virtual_rack.machine import MachineFiles, machine_arguments

        machine = machine_arguments(self.recipe, MachineFiles(Path(), Path("console")), is_resumed=False)
        return self._root / f"booted-{digest([self._image_digest, _SCHEMA, qemu_version(), machine])}"

    def require(self, lab: str) -> SavedGuest:
        """The saved guest. Raises BadInput where a program is missing, LabError where the guest was not built."""
        require_programs(to_build=False)
        folder = self.booted()
        if not _is_whole(folder, _BOOTED):
            raise LabError(
                f"the guests of lab {lab} are not built yet, for QEMU {qemu_version()}: `rackloop lab build {lab}`"
            )
        return self._saved(folder)

    def build(self, say: Say) -> tuple[SavedGuest, bool]:
        """The saved guest, built where it is not there, and whether it had to be.

        ``say`` is told of each step. Raises BadInput where this machine lacks what it takes, LabError where the
        packages cannot be had or the guest does not boot.
        """
        require_programs(to_build=False)
        folder = self.booted()
        if _is_whole(folder, _BOOTED):
            return self._saved(folder), False
        with self._alone(say):
            if not _is_whole(folder, _BOOTED):
                self._require_means()
                self._require_image(say)
                self._boot(folder, say)
        return self._saved(folder), True

    @property
    def _image_digest(self) -> str:
        return image_digest(self.recipe, making_of(self.recipe))

    @property
    def _has_image(self) -> bool:
        return _is_whole(self.image, PARTS)

    def _require_means(self) -> None:
        """Raise BadInput where this machine lacks what the whole of it takes: before anything is begun."""
        require_memory(1, self.recipe.memory_mib)
        if self._has_image:
            require_room(self._root, _BOOTED_MIB, "a booted guest")
            return
        require_programs(to_build=True)
        require_name_space()
        require_room(self._root, _IMAGE_MIB + _BOOTED_MIB, "the guests' image, with a guest that is booted,")
        require_room(Path(tempfile.gettempdir()), _WORK_MIB, "making the guests' image", variable="TMPDIR")

    def _require_image(self, say: Say) -> None:
        if self._has_image:
            return
        with self._made(self.image) as folder:
            build_image(self.recipe, folder, self._clock, say)
            packages = len((folder / PACKAGES).read_text(encoding="utf-8").splitlines())
            _write(folder, {"schema": _SCHEMA, "suite": self.recipe.suite, "packages": packages})
        say(f"image: {packages} packages, kept in {self.image}")

    def _boot(self, booted: Path, say: Say) -> None:
        started_ns = self._clock.now_ns()
        say("guest: booting, once")
        with self._made(booted) as folder:
            for part in (KERNEL, INITRD):
                os.link(self.image / part, folder / part)
            # A sparse copy, and of no block where the file system can do without.
            copying = ("cp", "--sparse=always", "--reflink=auto", self.image / DISK, folder / DISK)
            if subprocess.run(copying, stderr=subprocess.DEVNULL, check=False).returncode != 0:
                raise LabError(f"the image cannot be copied to {folder}: is its disk full?")
            about = asyncio.run(self._booted_in(folder))
            _write(folder, {"schema": _SCHEMA, "qemu": qemu_version(), **about})
        say(f"guest: booted and saved ({(self._clock.now_ns() - started_ns) / 1e9:.0f} s)")

    async def _booted_in(self, folder: Path) -> dict[str, Any]:
        from rackloop_labs.virtual_rack.machine import Machine, MachineFiles, machine_arguments

        files = MachineFiles(folder, folder / "console.log")
        machine = await Machine.start("the guest", machine_arguments(self.recipe, files, is_resumed=False), files)
        try:
            await machine.wait_until_ready(self._boot_s)
            host_key = await machine.tell("hostkey", "", _ANSWER_S)
            places = " ".join(f"{FIRST_SLOT + slot:x}" for slot in range(self.recipe.slots))
            buses = (await machine.tell("slots", places, _ANSWER_S)).split()
            if not host_key.startswith("ssh-ed25519 ") or len(buses) != self.recipe.slots:
                raise LabError(f"the guest booted, and lacks a host key or slots: {machine.last_words()}")
            await machine.tell("sync", "", _ANSWER_S)
            await machine.save(folder)
        finally:
            await machine.end()
        return {"host_key": " ".join(host_key.split()[:2]), "slot_buses": [int(bus) for bus in buses]}

    def _saved(self, folder: Path) -> SavedGuest:
        try:
            about = json.loads((folder / _ABOUT).read_text(encoding="utf-8"))
            return SavedGuest(folder, self.recipe, about["host_key"], tuple(about["slot_buses"]))
        except (OSError, ValueError, KeyError) as error:
            raise LabError(f"{folder} is damaged ({error}): delete it, and build again") from error

    @contextmanager
    def _made(self, folder: Path) -> Iterator[Path]:
        """A folder that has its name once it is whole, and is gone where it does not become so."""
        with tempfile.TemporaryDirectory(prefix="making-", dir=self._root, ignore_cleanup_errors=True) as making:
            fresh = Path(making) / "guest"
            fresh.mkdir()
            yield fresh
            shutil.rmtree(folder, ignore_errors=True)
            fresh.rename(folder)

    @contextmanager
    def _alone(self, say: Say) -> Iterator[None]:
        """The block as the only one of all processes that builds here; what killed ones left is cleared away."""
        try:
            self._root.mkdir(parents=True, exist_ok=True, mode=0o700)
            lock = os.open(self._root / "build.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise BadInput(f"cannot make {self._root}: {error.strerror}; set RACKLOOP_STATE_HOME") from error
        try:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                say("guest: another process builds it; waiting for that")
                fcntl.flock(lock, fcntl.LOCK_EX)
            for left in self._root.glob("making-*"):
                shutil.rmtree(left, ignore_errors=True)
            yield
        finally:
            os.close(lock)


def _is_whole(folder: Path, parts: tuple[str, ...]) -> bool:
    """Whether what was made there has all its parts still."""
    return all((folder / part).exists() for part in (_ABOUT, *parts))


def _write(folder: Path, about: dict[str, Any]) -> None:
    (folder / _ABOUT).write_text(json.dumps(about, indent=2), encoding="utf-8")
