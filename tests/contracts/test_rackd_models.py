"""Drives of rackd that take their time: queues, remaps and power cuts under queued requests, failing fast, erasing."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from rackloop.clock import Deadline
from rackloop.errors import ToolError
from rackloop.lab import load_profile
from rackloop_drivers.block import NbdExport
from rackloop_drivers.rackd import RecordedRequest
from tests.deadlines import CLOCK
from tests.nbd_wire import EIO, FLUSH, FUA, READ, WRITE, NbdWire
from tests.rack_session import SLOW_S, Rack, Start, mark_drives, pattern
from tests.rackd_process import drive

# Far more than a hard disk serves before a map change that follows at once.
MANY = 128
STRIDE = (64 << 20) // MANY
SECTOR = 512
RETRY_MS = 30


def hard_disk(**changes: Any) -> dict[str, Any]:
    """The timing of a hard disk without a write cache."""
    return dict(load_profile("sata-hdd").timing) | {"write_cache_kib": 0} | changes


def flash() -> dict[str, Any]:
    return dict(load_profile("nvme-ssd").timing)


@pytest.fixture
def rack(start: Start) -> Rack:
    """Drives d01 and d02 are hard disks, d03 is an ideal drive, d04 flash."""
    disks = [drive(number, rotational=True, timing=hard_disk()) for number in (1, 2)]
    return start(drives=[*disks, drive(3), drive(4, timing=flash())])


def record(rack: Rack, *drives: str) -> None:
    for name in drives:
        rack.control.record_io(name, Deadline.after(CLOCK, SLOW_S))


def recorded(rack: Rack, name: str) -> list[RecordedRequest]:
    return rack.control.recorded_io(name, Deadline.after(CLOCK, SLOW_S)).requests


def send_reads(wire: NbdWire) -> list[int]:
    """Reads all over the drive, the next one always far away; their cookies."""
    return [wire.send(READ, number * 37 % MANY * STRIDE, SECTOR) for number in range(MANY)]


def send_writes(wire: NbdWire) -> None:
    """A write into each stride of the drive."""
    for number in range(MANY):
        wire.send(WRITE, number * STRIDE, SECTOR, pattern(1, SECTOR))


def written_strides(rack: Rack, name: str) -> set[int]:
    with rack.open_export(f"drive.{name}") as wire:
        return {number for number in range(MANY) if wire.read(number * STRIDE, SECTOR) == (0, pattern(1, SECTOR))}


def test_a_hard_disk_answers_in_its_own_order_and_each_request_once(rack: Rack) -> None:
    with rack.open_export("drive.d01") as wire:
        sent = send_reads(wire)
        answered = [wire.reply(SECTOR)[0] for _ in sent]
    assert sorted(answered) == sent
    assert answered != sent


def test_fio_sees_the_time_the_drive_takes(rack: Rack) -> None:
    record(rack, "d01")
    job = fio(
        NbdExport(rack.process.nbd, "drive.d01", 64 << 20), "--rw=randread", "--bs=4k", "--size=64m", "--number_ios=30"
    )
    taken = [one.answered_ns - one.arrived_ns for one in recorded(rack, "d01")]
    assert len(taken) == job["read"]["total_ios"] == 30
    # A seek and half a revolution are 12.7 ms; nothing makes 30 of them less than half of that on average.
    assert 30 * 6_000_000 < sum(taken) < 30 * job["read"]["lat_ns"]["mean"] + 1


def test_a_drive_that_takes_its_time_holds_no_other_up(rack: Rack) -> None:
    rack.ask("fault", drive="d01", fault={"kind": "slow", "extra_us": 600_000_000})
    with rack.open_export("drive.d01") as slow, rack.open_export("drive.d03") as ideal:
        send_reads(slow)
        for number in range(MANY):
            assert ideal.write(number * STRIDE, pattern(1, SECTOR)) == 0
    assert written_strides(rack, "d03") == set(range(MANY))
    assert rack.ask("drive_stats", drive="d01")["reads"] == 0


def test_what_queues_in_a_drive_when_it_is_mapped_away_goes_to_the_next_one(rack: Rack) -> None:
    rack.map((1, 101))
    record(rack, "d01", "d02")
    with rack.open_export("srv1.p0") as wire:
        send_writes(wire)
        rack.map((1, 102))
        assert [wire.reply()[1] for _ in range(MANY)] == [0] * MANY
    served = {name: [one.offset // STRIDE for one in recorded(rack, name)] for name in ("d01", "d02")}
    assert sorted(served["d01"] + served["d02"]) == list(range(MANY)), "nothing is lost, nothing executed twice"
    assert served["d02"], "the first drive had served everything before it was mapped away"
    assert {name: written_strides(rack, name) for name in served} == {
        name: set(strides) for name, strides in served.items()
    }
    assert all(one.answered_ns < change_ns(rack) for one in recorded(rack, "d01")[: len(served["d01"])])


def change_ns(rack: Rack) -> int:
    """When the latest map change was executed."""
    return max(int(record["t_ns"]) for record in rack.records_until_settled() if record["event"] == "executed")


def test_several_exports_lead_into_one_queue(rack: Rack) -> None:
    rack.map((1, 101))
    with rack.open_export("srv1.p0") as through_port, rack.open_export("drive.d01") as direct:
        for wire in (through_port, direct):
            send_writes(wire)
        rack.map((1, 102))
        for wire in (through_port, direct):
            assert [wire.reply()[1] for _ in range(MANY)] == [0] * MANY
    assert written_strides(rack, "d01") == set(range(MANY)), "the drive's own export was not disturbed"


def test_a_power_cut_loses_the_queue_and_its_requests_wait_for_power(rack: Rack) -> None:
    record(rack, "d01")
    with rack.open_export("drive.d01") as wire:
        send_writes(wire)
        rack.ask("power", target="drive:d01", on=False)
        rack.wait_for("power", target="drive:d01", on=False)
        assert rack.ask("stats")["held"] > 0
        before = len(recorded(rack, "d01"))
        rack.ask("power", target="drive:d01", on=True)
        assert [wire.reply()[1] for _ in range(MANY)] == [0] * MANY
    assert before < MANY
    assert sorted(one.offset // STRIDE for one in recorded(rack, "d01")) == list(range(MANY))


def test_a_drive_that_begins_to_hang_keeps_its_queue_until_it_answers_again(rack: Rack) -> None:
    with rack.open_export("drive.d01") as wire:
        send_reads(wire)
        rack.ask("fault", drive="d01", fault={"kind": "hang"})
        answered = rack.ask("drive_stats", drive="d01")["reads"]
        rack.wait_held(MANY - answered)
        rack.ask("clear_fault", drive="d01")
        assert [wire.reply(SECTOR)[1] for _ in range(MANY)] == [0] * MANY


def test_faults_keep_their_meaning_on_a_drive_that_takes_its_time(rack: Rack) -> None:
    rack.ask("fault", drive="d01", fault={"kind": "slow", "factor": 3})
    record(rack, "d01")
    with rack.open_export("drive.d01") as wire:
        for number in (0, 5, 10, 15):
            for stride in (MANY - 1 - number, number):
                assert wire.read(stride * STRIDE, SECTOR)[0] == 0
        # Seeks over most of the drive take 13 ms and more, and 25 ms with a whole revolution.
        assert sum(one.answered_ns - one.arrived_ns for one in recorded(rack, "d01")) > 8 * 3 * 10_000_000
        rack.ask("clear_fault", drive="d01")
        rack.ask("fault", drive="d01", fault={"kind": "media_error", "lba": 8, "sectors": 1, "mode": "once"})
        assert [wire.read(8 * SECTOR, SECTOR)[0] for _ in range(2)] == [EIO, 0]
        rack.ask("fault", drive="d01", fault={"kind": "dead"})
        assert wire.read(0, SECTOR)[0] == EIO


def test_a_flush_and_fua_reach_the_file_below_a_drive_that_takes_its_time(start: Start, tmp_path: Path) -> None:
    rack = start(drives=[drive(1, timing=flash(), backing={"kind": "file", "path": "d01.img"})])
    with rack.open_export("drive.d01") as wire:
        assert wire.write(4096, pattern(7), FUA) == 0
        assert wire.plain(FLUSH) == 0
    assert (tmp_path / "d01.img").read_bytes()[4096:8192] == pattern(7)


@pytest.fixture
def weak(start: Start) -> Rack:
    """A rack whose hard disk d01 reads no sector at the first attempt."""
    weak = hard_disk(read_error_probability=1.0, retry_ms=[RETRY_MS, RETRY_MS])
    return start(drives=[drive(1, rotational=True, timing=weak)], map=[[1, 101]])


def test_a_sector_that_cannot_be_read_is_retried_or_fails_fast_as_the_host_asks(weak: Rack) -> None:
    record(weak, "d01")
    with weak.open_export("drive.d01") as patient, weak.open_export("drive.d01.failfast") as hurried:
        assert patient.size == hurried.size
        assert patient.read(24 << 20, 4096)[0] == 0
        assert hurried.read(24 << 20, 4096)[0] == 0, "the drive has it in its buffer now"
        assert hurried.write(48 << 20, pattern(1)) == 0
        assert hurried.read(40 << 20, 4096)[0] == EIO
    retried, *_, failed = recorded(weak, "d01")
    assert retried.answered_ns - retried.arrived_ns > RETRY_MS * 1_000_000 * 0.7
    assert (failed.kind, failed.offset) == ("read", 40 << 20)
    weak.wait_for("io_error", drive="d01", lba=(40 << 20) // SECTOR, errno=EIO)
    stats = weak.ask("drive_stats", drive="d01")
    assert (stats["media_errors"], stats["reads"], stats["writes"]) == (1, 2, 1)


def test_programs_that_others_wrote_reach_the_twin_that_fails_fast(weak: Rack) -> None:
    weak.map((1, 101))
    twin = NbdExport(weak.process.nbd, "srv1.p0", 64 << 20).failing_fast()
    assert twin.failing_fast() == twin
    assert twin.location == "srv1.p0"
    info = json.loads(run("nbdinfo", "--json", twin.uri).stdout)
    assert info["exports"][0]["export-name"] == "srv1.p0.failfast"
    job = fio(twin, "--rw=read", "--bs=4k", "--size=20k", "--continue_on_error=all")
    assert job["total_err"] == 5
    done = run("qemu-io", "-f", "raw", "-c", "read 32M 4k", twin.uri)
    assert "Input/output error" in done.stdout + done.stderr


def run(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run([program, *arguments], capture_output=True, text=True, timeout=60, check=False)
    except FileNotFoundError as error:
        raise ToolError(f"{program} is not installed: apt-get install fio libnbd-bin qemu-utils") from error


def fio(device: NbdExport, *options: str) -> dict[str, Any]:
    """Run one fio job on an export and return its result."""
    always = (f"--{name}={value}" for name, value in device.fio_options().items())
    text = run("fio", "--name=job", "--output-format=json", "--randseed=7", *always, *options).stdout
    job: dict[str, Any] = json.loads(text[text.index("{") :])["jobs"][0]
    return job


def test_a_client_that_leaves_takes_its_queued_requests_with_it(rack: Rack) -> None:
    with rack.open_export("drive.d01") as wire:
        send_writes(wire)
        assert wire.reply()[1] == 0
    with rack.open_export("drive.d01") as other:
        assert other.read(0, SECTOR)[0] == 0
        assert len(written_strides(rack, "d01")) < MANY


@pytest.mark.parametrize("backing", ["sparse", "memory", "file"])
def test_a_sanitized_drive_holds_nothing_of_what_was_written(start: Start, backing: str) -> None:
    where = {"kind": backing} | ({"path": "d01.img"} if backing == "file" else {})
    rack = start(drives=[drive(1, backing=where)])
    with rack.open_export("drive.d01") as wire:
        for offset in (0, 5 << 20, (64 << 20) - 4096):
            assert wire.write(offset, pattern(9)) == 0
        rack.ask("sanitize", drive="d01", method="block-erase")
        for offset in (0, 5 << 20, (64 << 20) - 4096):
            assert wire.read(offset, 4096) == (0, pattern(0))
    rack.wait_for("sanitized", drive="d01", method="block-erase")
    assert rack.ask("drive_stats", drive="d01")["sanitizes"] == 1


def test_requests_that_queue_when_a_drive_is_sanitized_are_executed_afterwards(rack: Rack) -> None:
    mark_drives(rack, 1)
    record(rack, "d01")
    with rack.open_export("drive.d01") as wire:
        send_writes(wire)
        sanitized_ns = rack.ask("sanitize", drive="d01", method="overwrite")["t_ns"]
        assert [wire.reply()[1] for _ in range(MANY)] == [0] * MANY
    served = recorded(rack, "d01")
    assert sorted(one.offset // STRIDE for one in served) == list(range(MANY))
    after = {one.offset // STRIDE for one in served if one.answered_ns > sanitized_ns}
    assert written_strides(rack, "d01") == after


def test_flash_tells_of_its_wear_and_keeps_it_over_a_sanitize(rack: Rack) -> None:
    with rack.open_export("drive.d04") as wire:
        for number in range(MANY):
            assert wire.write(number * 65536, pattern(3, 65536)) == 0
        assert wire.plain(FLUSH) == 0
    before = rack.ask("drive_stats", drive="d04")
    assert 0 < before["nand_bytes_written"] <= MANY * 65536, "what is in the buffer is safe there"
    rack.ask("sanitize", drive="d04", method="crypto-erase")
    after = rack.ask("drive_stats", drive="d04")
    assert after["nand_bytes_written"] >= before["nand_bytes_written"]
    assert after["erase_count_mean"] >= before["erase_count_mean"]


def test_a_drive_that_cannot_be_sanitized_says_why(rack: Rack) -> None:
    assert rack.refused("sanitize", drive="d77", method="overwrite") == "unknown_drive"
    assert rack.refused("sanitize", drive="d01", method="block-erase") == "bad_request"
    assert rack.refused("sanitize", drive="d04", method="overwrite") == "bad_request"
    assert rack.refused("sanitize", drive="d04", method="shred") == "bad_request"
    rack.ask("fault", drive="d01", fault={"kind": "hang"})
    assert rack.refused("sanitize", drive="d01", method="overwrite") == "busy"
    rack.ask("power", target="drive:d02", on=False)
    assert rack.refused("sanitize", drive="d02", method="overwrite") == "busy"


def test_parameters_that_no_drive_can_have_are_refused_at_the_start(start: Start) -> None:
    with pytest.raises(ToolError, match=r"drives\.d01: timing: rpm is 5"):
        start(drives=[drive(1, timing=hard_disk(rpm=5))])
    with pytest.raises(ToolError, match="unknown field `rpn`"):
        start(drives=[drive(1, timing=hard_disk(rpn=7200))])
    with pytest.raises(ToolError, match="unknown variant `tape`"):
        start(drives=[drive(1, timing={"kind": "tape"})])
