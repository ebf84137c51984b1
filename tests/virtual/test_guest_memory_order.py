"""A guest's memory barriers: QEMU's devices have threads of their own, and a guest of one core needs them too."""

from __future__ import annotations

import subprocess
from pathlib import Path

from rackloop_labs.virtual_rack.machine import MachineFiles, machine_arguments
from rackloop_labs.virtual_rack.prerequisites import QEMU
from rackloop_labs.virtual_rack.recipe import GuestRecipe

# cli; mfence; mov al,0; out 0xf4,al; hlt
BARRIER_AND_END = bytes.fromhex("fa 0faef0 b000 e6f4 f4")
BOOT_SECTOR = BARRIER_AND_END.ljust(510, b"\0") + bytes.fromhex("55aa")
LOADED_AT, LENGTH = 0x7C00, 0x200
STATUS = 1  # isa-debug-exit: twice what was written, and 1.


def option(argv: list[str], name: str) -> tuple[str, str]:
    return name, argv[argv.index(name) + 1]


def test_a_barrier_of_the_guest_is_translated(tmp_path: Path) -> None:
    """QEMU before 8.1 leaves it out where its machine can have no second core: requests to an NVMe drive are lost."""
    argv = machine_arguments(GuestRecipe(), MachineFiles(tmp_path, tmp_path / "console"), is_resumed=True)
    disk, log = tmp_path / "disk.raw", tmp_path / "translated.log"
    disk.write_bytes(BOOT_SECTOR)
    done = subprocess.run(
        (
            *(QEMU, "-nodefaults", "-display", "none", "-machine", "pc", "-m", "64M", "-no-reboot"),
            *(word for name in ("-accel", "-cpu", "-smp") for word in option(argv, name)),
            *("-drive", f"if=ide,format=raw,file={disk}", "-device", "isa-debug-exit,iobase=0xf4,iosize=1"),
            *("-d", "in_asm,op", "-dfilter", f"{LOADED_AT:#x}+{LENGTH:#x}", "-D", log),
        ),
        check=False,
        timeout=60,
    )
    assert done.returncode == STATUS
    translated = log.read_text()
    assert "mfence" in translated
    assert [line for line in translated.splitlines() if line.split()[:1] == ["mb"]], translated
