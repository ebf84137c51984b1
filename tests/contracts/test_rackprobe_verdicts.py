"""rackprobe names what a read brings back, through files and through NBD in all its manners."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from rackloop.errors import BadInput, LabError
from rackloop_drivers.block import DevicePath, NbdExport
from rackloop_drivers.workload import SECTOR_BYTES, Expected, RackProbe
from tests.deadlines import soon
from tests.nbdkit_process import serving_tcp, serving_unix
from tests.writable_drive import minted

SECTORS = 64
SERIAL = "RL000001"
LBA = 5
EXPECTED = Expected(SERIAL, generation=3, seed=7)


@dataclass(frozen=True)
class Bench:
    """A drive's bytes in a file, and the same bytes as the probe reaches them."""

    probe: RackProbe
    file: Path
    device: NbdExport | DevicePath

    def write(
        self, *, serial: str = SERIAL, lba: int = LBA, sectors: int = 1, generation: int = 3, seed: int = 7
    ) -> None:
        """Write identified sectors, two of them a request, so that there are many."""
        with minted(self.device, serial) as drive:
            self.probe.write(
                drive,
                soon(),
                start_lba=lba,
                sectors=sectors,
                generation=generation,
                seed=seed,
                block_bytes=2 * SECTOR_BYTES,
            )

    def sector(self, lba: int = LBA) -> bytes:
        """The bytes of a sector."""
        with self.file.open("rb") as file:
            file.seek(lba * SECTOR_BYTES)
            return file.read(SECTOR_BYTES)

    def put(self, sector: bytes, lba: int = LBA) -> None:
        """Change the bytes of a sector behind the probe's back."""
        with self.file.open("r+b") as file:
            file.seek(lba * SECTOR_BYTES)
            file.write(sector)


@pytest.fixture(params=["path", "unix", "unix-simple-replies", "tcp"])
def bench(request: pytest.FixtureRequest, probe: RackProbe, tmp_path: Path) -> Iterator[Bench]:
    file = tmp_path / "drive"
    size = SECTORS * SECTOR_BYTES
    with file.open("wb") as made:
        made.truncate(size)
    socket = tmp_path / "nbd.sock"
    match request.param:
        case "path":
            yield Bench(probe, file, DevicePath(file))
        case "unix":
            with serving_unix(socket, ["file", str(file)]):
                yield Bench(probe, file, NbdExport(socket, "", size))
        case "unix-simple-replies":
            with serving_unix(socket, ["--no-sr", "file", str(file)]):
                yield Bench(probe, file, NbdExport(socket, "", size))
        case "tcp":
            with serving_tcp(["file", str(file)]) as address:
                yield Bench(probe, file, NbdExport(address, "", size))


def untouched(bench: Bench) -> None:
    bench.write()


def of_another_drive(bench: Bench) -> None:
    bench.write(serial="RL000002")


def of_another_address(bench: Bench) -> None:
    bench.write(lba=LBA + 1)
    bench.put(bench.sector(LBA + 1))


def of_an_older_generation(bench: Bench) -> None:
    bench.write(generation=2)


def of_a_newer_generation(bench: Bench) -> None:
    bench.write(generation=4)


def of_another_run(bench: Bench) -> None:
    bench.write(seed=8)


def torn_half_way(bench: Bench) -> None:
    bench.write(generation=2)
    old = bench.sector()
    bench.write()
    bench.put(bench.sector()[: SECTOR_BYTES // 2] + old[SECTOR_BYTES // 2 :])


def torn_on_the_first_write(bench: Bench) -> None:
    bench.write()
    bench.put(bench.sector()[: SECTOR_BYTES // 2] + bytes(SECTOR_BYTES // 2))


def with_a_flipped_bit(bench: Bench) -> None:
    bench.write()
    sector = bytearray(bench.sector())
    sector[2000] ^= 0x10
    bench.put(bytes(sector))


def never_written(bench: Bench) -> None:
    bench.put(bytes(SECTOR_BYTES))


def written_by_somebody_else(bench: Bench) -> None:
    bench.put(b"\xa5" * SECTOR_BYTES)


@pytest.mark.parametrize(
    ("prepare", "verdict"),
    [
        (untouched, "right"),
        (of_another_drive, "wrong_drive"),
        (of_another_address, "misplaced"),
        (of_an_older_generation, "stale"),
        (of_a_newer_generation, "newer"),
        (of_another_run, "other_seed"),
        (torn_half_way, "torn"),
        (torn_on_the_first_write, "torn"),
        (with_a_flipped_bit, "corrupt"),
        (never_written, "blank"),
        (written_by_somebody_else, "foreign"),
    ],
    ids=lambda case: case.__name__ if callable(case) else case,
)
def test_a_sector_gets_its_name(bench: Bench, prepare: Callable[[Bench], None], verdict: str) -> None:
    prepare(bench)
    found = bench.probe.verify(bench.device, EXPECTED, soon(), start_lba=LBA)
    assert {name: count for name, count in found.verdicts.items() if count} == {verdict: 1}
    assert found.is_right == (verdict == "right")
    assert [(offender.lba, offender.verdict) for offender in found.offenders] == (
        [] if verdict == "right" else [(LBA, verdict)]
    )


def test_offenders_say_who_they_are(bench: Bench) -> None:
    bench.write(lba=0, sectors=SECTORS)
    bench.write(serial="RL000002", lba=9, generation=5, seed=1)
    bench.write(lba=20, generation=2)
    found = bench.probe.verify(
        bench.device, EXPECTED, soon(), sectors=SECTORS, queue_depth=1, block_bytes=4 * SECTOR_BYTES
    )
    assert found.verdicts["right"] == SECTORS - 2
    stranger, old = found.offenders
    assert (stranger.lba, stranger.found_serial, stranger.found_generation, stranger.found_seed) == (
        9,
        "RL000002",
        5,
        1,
    )
    assert (old.lba, old.verdict, old.found_lba, old.found_generation) == (20, "stale", 20, 2)


def test_a_torn_sector_names_the_generations_it_mixes(bench: Bench) -> None:
    torn_half_way(bench)
    (offender,) = bench.probe.verify(bench.device, EXPECTED, soon(), start_lba=LBA).offenders
    assert offender.torn_generations == (2, 3)


@pytest.mark.parametrize("queue_depth", [1, 3, 64])
def test_every_queue_depth_reaches_every_sector(bench: Bench, queue_depth: int) -> None:
    with minted(bench.device, SERIAL) as drive:
        written = bench.probe.write(
            drive,
            soon(),
            start_lba=1,
            sectors=SECTORS - 1,
            queue_depth=queue_depth,
            block_bytes=4 * SECTOR_BYTES,
        )
    assert (written.sectors, written.bytes) == (SECTORS - 1, (SECTORS - 1) * SECTOR_BYTES)
    found = bench.probe.verify(
        bench.device, Expected(SERIAL), soon(), sectors=SECTORS, queue_depth=queue_depth, block_bytes=4 * SECTOR_BYTES
    )
    assert (found.verdicts["right"], found.verdicts["blank"]) == (SECTORS - 1, 1)


def test_what_does_not_fit_is_refused_and_nothing_is_written(bench: Bench) -> None:
    with pytest.raises(BadInput, match=f"it has {SECTORS} sectors"):
        bench.write(lba=SECTORS - 1, sectors=2)
    assert bench.file.read_bytes() == bytes(SECTORS * SECTOR_BYTES)


def test_failed_reads_are_counted_with_their_cause(probe: RackProbe, tmp_path: Path) -> None:
    arguments = ["--filter=error", "memory", f"{SECTORS * SECTOR_BYTES}", "error-pread=EIO", "error-pread-rate=100%"]
    with serving_unix(tmp_path / "nbd.sock", arguments) as socket:
        device = NbdExport(socket, "", SECTORS * SECTOR_BYTES)
        found = probe.verify(device, EXPECTED, soon(), sectors=4, block_bytes=SECTOR_BYTES)
    assert found.unreadable_sectors == 4
    assert not found.is_right
    [range_] = found.unreadable
    assert (range_.lba, range_.sectors) == (0, 4)
    assert "Input/output error" in range_.error


def test_a_failed_write_is_the_targets_failure(probe: RackProbe, tmp_path: Path) -> None:
    arguments = ["--filter=error", "memory", f"{SECTORS * SECTOR_BYTES}", "error-pwrite=ENOSPC", "error-pwrite-rate=1"]
    with serving_unix(tmp_path / "nbd.sock", arguments) as socket:
        export = NbdExport(socket, "", SECTORS * SECTOR_BYTES)
        with (
            minted(export, SERIAL) as drive,
            pytest.raises(LabError, match="the write at sector 2 failed: No space left"),
        ):
            probe.write(drive, soon(), start_lba=2)


def test_a_read_only_export_is_not_written(probe: RackProbe, tmp_path: Path) -> None:
    with (
        serving_unix(tmp_path / "nbd.sock", ["--readonly", "memory", "1M"]) as socket,
        minted(NbdExport(socket, "", 1 << 20), SERIAL) as drive,
        pytest.raises(LabError, match="read-only"),
    ):
        probe.write(drive, soon())
