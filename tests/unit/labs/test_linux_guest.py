"""What a Linux guest is made of, without one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.linux_guest.machine import require_guest
from tests.linux_guest.packages import GuestPackages


def test_modules_come_after_what_they_depend_on(tmp_path: Path) -> None:
    (tmp_path / "boot").mkdir()
    (tmp_path / "boot" / "vmlinuz-6.1").touch()
    depends = {"raid456": "md-mod,libcrc32c", "md-mod": "", "libcrc32c": "", "raid1": "md-mod"}
    for name, others in depends.items():
        module = tmp_path / "lib" / "modules" / "6.1" / "kernel" / f"{name}.ko"
        module.parent.mkdir(parents=True, exist_ok=True)
        module.write_bytes(b"license=GPL\0depends=" + others.encode() + b"\0name=x\0")
    found = GuestPackages(tmp_path).modules(["raid456", "raid1"])
    assert [path.stem for path in found] == ["md-mod", "libcrc32c", "raid456", "raid1"]


def test_without_a_kernel_a_guest_is_skipped_and_why(tmp_path: Path) -> None:
    with pytest.raises(pytest.skip.Exception, match=r"no Linux guest without .*a kernel in .*test nightly"):
        require_guest(tmp_path)
