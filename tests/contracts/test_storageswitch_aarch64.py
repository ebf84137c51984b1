"""The programs for servers with 64-bit ARM processors, run by an emulator of the processor."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.nbd_wire import FLUSH, NbdWire
from tests.storageswitch_process import running_switch, two_tenants

NATIVE = Path(__file__).resolve().parents[2] / "native"
TARGET = "aarch64-unknown-linux-musl"
EMULATOR = "qemu-aarch64-static"
SIZE = 8 << 20
ELF_MACHINE_AARCH64 = 183
BUILD_S, TESTS_S = 1800.0, 1800.0
NO_STANDARD_LIBRARY = 3

pytestmark = pytest.mark.nightly


@pytest.fixture(scope="module")
def emulator() -> str:
    found = shutil.which(EMULATOR)
    if found is None:
        pytest.skip(f"{EMULATOR} is not installed (Debian: qemu-user-static)")
    return found


@pytest.fixture(scope="module")
def folder() -> Path:
    """The folder of the programs, freshly built."""
    command = [str(NATIVE / "build"), "--target", "aarch64"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=BUILD_S, check=False)
    if done.returncode == NO_STANDARD_LIBRARY:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stderr
    return NATIVE / "target" / "release" / "aarch64"


@pytest.mark.parametrize("program", ["storageswitch", "rackprobe"])
def test_a_program_is_one_file_for_that_processor(folder: Path, program: str, emulator: str) -> None:
    content = (folder / program).read_bytes()
    assert (content[:4], int.from_bytes(content[18:20], "little")) == (b"\x7fELF", ELF_MACHINE_AARCH64)
    # An emulator of the processor alone, without that processor's libraries, is enough.
    done = subprocess.run([emulator, folder / program, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith(program)


def test_a_switch_for_another_processor_serves_clients(folder: Path, emulator: str, tmp_path: Path) -> None:
    image = tmp_path / "drive.img"
    image.write_bytes(bytes(SIZE))
    config = two_tenants(drive={"kind": "file", "path": str(image)}, scheduler={"kind": "gimbal"})
    with (
        running_switch(config, before=(emulator,), binary=folder / "storageswitch") as switch,
        NbdWire(switch.nbd, "a") as a,
        NbdWire(switch.nbd, "b") as b,
    ):
        for number in range(50):
            assert a.write(number * 4096, bytes([number]) * 4096) == 0
            assert b.read(number * 4096, 4096) == (0, bytes(4096))
        assert a.plain(FLUSH) == 0
        assert a.read(49 * 4096, 4096) == (0, b"\x31" * 4096)
        drive = switch.drive()
        assert [tenant["completed"] for tenant in drive["scheduler"]["tenants"]] == [51, 50]
        # The emulator knows no io_uring.
        assert drive["access"] == "threads"
        assert drive["fallback"].startswith("io_uring is refused")
    assert image.read_bytes()[:4096] == bytes(4096)
    assert image.read_bytes()[4096:8192] == b"\x01" * 4096


@pytest.mark.usefixtures("folder")
def test_the_schedulers_keep_their_promises_on_that_processor(emulator: str) -> None:
    of_target = f"CARGO_TARGET_{TARGET.upper().replace('-', '_')}"
    environment = os.environ | {
        f"{of_target}_LINKER": "rust-lld",
        f"{of_target}_RUSTFLAGS": "-C link-self-contained=yes",
        f"{of_target}_RUNNER": emulator,
    }
    command = [
        "cargo",
        "test",
        "--locked",
        "--release",
        "--target",
        TARGET,
        "--package",
        "schedulers",
        "--lib",
        "--tests",
    ]
    done = subprocess.run(
        command, cwd=NATIVE, env=environment, capture_output=True, text=True, timeout=TESTS_S, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "test result: ok." in done.stdout
