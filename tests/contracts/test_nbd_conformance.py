"""NBD clients that others wrote find in rackd what the protocol promises, and every byte where they put it."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rackloop.seed import stream
from tests.rackd_process import RunningRackd, drive, running_rackd, small_rack

PACKAGES = {
    "fio": "fio",
    "nbdinfo": "libnbd-bin",
    "nbdcopy": "libnbd-bin",
    "qemu-img": "qemu-utils",
    "qemu-io": "qemu-utils",
}
RUN_S = 60.0
SIZE = 64 << 20


def run(program: str, *arguments: str | Path) -> str:
    """What a program printed. Fails the test where it is not installed or ends badly."""
    path = shutil.which(program)
    if path is None:
        pytest.fail(f"{program} is not installed: apt-get install {PACKAGES[program]}")
    done = subprocess.run([path, *arguments], capture_output=True, text=True, timeout=RUN_S, check=False)
    assert done.returncode == 0, f"{program} {arguments}: {done.stderr}{done.stdout}"
    return done.stdout


@pytest.fixture(params=["sparse", "memory", "file"])
def backing(request: pytest.FixtureRequest) -> dict[str, str]:
    return {"kind": request.param} | ({"path": "d01.img"} if request.param == "file" else {})


@pytest.fixture
def rackd(tmp_path: Path, backing: dict[str, str]) -> Iterator[RunningRackd]:
    config = small_rack() | {
        "drives": [drive(1, backing=backing), drive(2, bytes=SIZE // 2, rotational=True)],
        "map": [[1, 101], [2, 102]],
        "nbd_tcp": "127.0.0.1:0",
    }
    with running_rackd(tmp_path, config) as running:
        yield running


@pytest.fixture
def image(tmp_path: Path) -> Path:
    """Noise with a hole in it, as large as the drive."""
    path = tmp_path / "image"
    noise = stream(1, "image").randbytes(SIZE // 4)
    with path.open("wb") as file:
        file.write(noise)
        file.seek(SIZE // 2)
        file.write(noise)
        file.truncate(SIZE)
    return path


def fio(uri: str, *options: str) -> dict[str, Any]:
    """Run one fio job and return its result, from the first brace of what fio prints."""
    # Without continue_on_error fio does not count errors.
    always = (
        "--name=conformance",
        "--ioengine=nbd",
        f"--uri={uri}",
        "--randseed=7",
        "--continue_on_error=all",
        "--verify_state_save=0",
    )
    text = run("fio", "--output-format=json", *always, *options)
    job: dict[str, Any] = json.loads(text[text.index("{") :])["jobs"][0]
    return job


@pytest.mark.parametrize(("export", "block"), [("srv1.p0", "4k"), ("drive.d01", "512k")])
def test_fio_verifies_what_it_wrote(rackd: RunningRackd, export: str, block: str) -> None:
    options = ("--rw=randwrite", f"--bs={block}", "--iodepth=32", f"--size={SIZE}", "--verify=crc32c")
    job = fio(rackd.uri(export), *options)
    assert job["total_err"] == 0
    assert job["read"]["io_bytes"] == job["write"]["io_bytes"] == SIZE


def test_fio_reads_writes_and_flushes_from_several_connections(rackd: RunningRackd) -> None:
    options = ("--rw=randrw", "--bs=4k", "--iodepth=8", "--numjobs=3", "--size=4m", "--fsync=16", "--group_reporting")
    job = fio(rackd.uri("srv1.p0"), *options)
    assert job["total_err"] == 0
    assert job["read"]["io_bytes"] + job["write"]["io_bytes"] == 3 * (4 << 20)


def test_fio_reaches_it_over_tcp(rackd: RunningRackd) -> None:
    job = fio(f"nbd://{rackd.tcp}/srv1.p0", "--rw=randwrite", "--bs=4k", "--iodepth=16", "--size=4m", "--verify=crc32c")
    assert job["total_err"] == 0


def test_nbdinfo_reads_what_an_export_can(rackd: RunningRackd) -> None:
    said = json.loads(run("nbdinfo", "--json", rackd.uri("srv1.p0")))
    assert (said["protocol"], said["TLS"], said["structured"]) == ("newstyle-fixed", False, True)
    (export,) = said["exports"]
    expected = {
        "export-name": "srv1.p0",
        "export-size": SIZE,
        "is_read_only": False,
        "is_rotational": False,
        "can_flush": True,
        "can_fua": True,
        "can_multi_conn": True,
        "can_trim": True,
        "can_zero": True,
        "block_size_minimum": 1,
        "block_size_preferred": 4096,
        "block_size_maximum": 64 << 20,
    }
    assert {name: export[name] for name in expected} == expected


def test_nbdinfo_lists_every_export_and_its_twin(rackd: RunningRackd) -> None:
    listed = json.loads(run("nbdinfo", "--list", "--json", rackd.uri("")))["exports"]
    exports = {f"{server}.p{n}": SIZE for server in ("srv1", "srv2") for n in range(4)}
    exports |= {"drive.d01": SIZE, "drive.d02": SIZE // 2}
    assert {export["export-name"]: export["export-size"] for export in listed} == {
        f"{name}{suffix}": size for name, size in exports.items() for suffix in ("", ".failfast")
    }
    rotational = [export["export-name"] for export in listed if export["is_rotational"]]
    assert rotational == ["drive.d02", "drive.d02.failfast"]


def test_nbdcopy_brings_an_image_there_and_back(rackd: RunningRackd, image: Path, tmp_path: Path) -> None:
    back = tmp_path / "back"
    run("nbdcopy", image, rackd.uri("srv1.p0"))
    run("nbdcopy", rackd.uri("drive.d01"), back)
    assert back.read_bytes() == image.read_bytes()


def test_nbdcopy_zeroes_what_was_there(rackd: RunningRackd, image: Path, tmp_path: Path) -> None:
    blank = tmp_path / "blank"
    with blank.open("wb") as file:
        file.truncate(SIZE)
    run("nbdcopy", image, rackd.uri("srv1.p0"))
    run("nbdcopy", blank, rackd.uri("srv1.p0"))
    run("qemu-img", "compare", "-f", "raw", "-F", "raw", rackd.uri("srv1.p0"), str(blank))


def test_qemu_img_converts_and_compares(rackd: RunningRackd, image: Path) -> None:
    uri = rackd.uri("srv1.p0")
    run("qemu-img", "convert", "-n", "-f", "raw", "-O", "raw", str(image), uri)
    assert "identical" in run("qemu-img", "compare", "-f", "raw", "-F", "raw", str(image), uri)
    info = json.loads(run("qemu-img", "info", "--output=json", uri))
    assert (info["format"], info["virtual-size"]) == ("raw", SIZE)


def test_qemu_io_reads_writes_zeroes_and_discards(rackd: RunningRackd) -> None:
    steps = ["write -P 0xab 0 1M", "write -f -P 0xcd 4097 513", "read -P 0xcd 4097 513", "read -P 0xab 0 4097"]
    steps += [
        "write -z 8k 8k",
        "read -P 0 8k 8k",
        "discard 64k 64k",
        "read -P 0 64k 64k",
        "read -P 0xab 128k 1k",
        "flush",
    ]
    commands = [part for step in steps for part in ("-c", step)]
    printed = run("qemu-io", "-f", "raw", *commands, rackd.uri("srv1.p0"))
    assert "Pattern verification failed" not in printed
    assert printed.count("read ") == 5


def test_a_smaller_drive_ends_before_its_port_does(rackd: RunningRackd) -> None:
    job = fio(
        rackd.uri("srv1.p1"),
        "--rw=write",
        "--bs=64k",
        "--size=1m",
        f"--offset={SIZE // 2 - (1 << 20)}",
        "--verify=crc32c",
    )
    assert job["total_err"] == 0
    path = shutil.which("qemu-io") or pytest.fail("qemu-io is not installed: apt-get install qemu-utils")
    for step, said in ((f"read {SIZE // 2} 4k", "Input/output error"), (f"write {SIZE // 2} 4k", "No space left")):
        command = [path, "-f", "raw", "-c", step, rackd.uri("srv1.p1")]
        done = subprocess.run(command, capture_output=True, text=True, timeout=RUN_S, check=False)
        assert said in done.stdout + done.stderr
