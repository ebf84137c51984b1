"""The guest's root file system: files gathered in a folder and packed as an initramfs, which the kernel unpacks."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

_LIBRARY = re.compile(r"(?:=> )?(/\S+) \(0x")


class Initramfs:
    """Files below ``folder``, which is made. ``busybox`` is a static one: it is the guest's shell, and packs."""

    def __init__(self, folder: Path, busybox: Path) -> None:
        self._folder = folder
        self._busybox = busybox
        for path in ("bin", "dev", "proc", "root", "run", "sys", "tmp"):
            (folder / path).mkdir(parents=True)
        self.add_file(busybox, "/bin/busybox")
        (folder / "bin/init").symlink_to("busybox")
        (folder / "bin/sh").symlink_to("busybox")

    def add_file(self, path: Path, place: str) -> None:
        """A copy of a file of this machine."""
        target = self._folder / place.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)

    def add_text(self, place: str, text: str, *, mode: int = 0o644) -> None:
        """A file with this text."""
        target = self._folder / place.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
        target.chmod(mode)

    def add_program(self, path: Path, place: str = "") -> None:
        """A program or a plugin, by default at its own place, and the libraries of this machine that it loads."""
        self.add_file(path, place or str(path))
        done = subprocess.run(("ldd", path), capture_output=True, text=True, check=True)
        assert "not found" not in done.stdout, f"{path} lacks libraries here: {done.stdout}"
        for library in _LIBRARY.findall(done.stdout):
            self.add_file(Path(library), library)

    def pack(self, archive: Path) -> Path:
        """Write all of it to ``archive`` as the kernel reads it (cpio, ``newc``), owned by root."""
        names = [".", *(str(path.relative_to(self._folder)) for path in sorted(self._folder.rglob("*")))]
        with archive.open("wb") as packed:
            subprocess.run(
                (self._busybox, "cpio", "-o", "-H", "newc", "-R", "0:0"),
                cwd=self._folder,
                input="".join(f"{name}\n" for name in names).encode(),
                stdout=packed,
                stderr=subprocess.DEVNULL,
                check=True,
                env={**os.environ, "LC_ALL": "C"},
            )
        return archive
