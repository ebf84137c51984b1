"""The event stream: numbered, read back whole, honest about what a killed run leaves."""

import errno
import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Semaphore

import pytest

from rackloop.clock import VirtualClock
from rackloop.errors import BadInput, LabError
from rackloop.record import ActAnnounced, ActDone, EventLog, RemapSeen, Stage, Stamped, TestFinished, read_events
from tests.deadlines import soon


def write_three(path: Path) -> None:
    clock = VirtualClock(start_ns=7)
    log = EventLog(path, clock)
    log.write(ActAnnounced(act=1, test="t", ability="fabric", what={"change": "partial"}), durable=True)
    clock.advance(1)
    log.write(ActDone(act=1, test="t"))
    log.write(RemapSeen("t", "comreset", "srv4", "p0", "d13", 4, [Stage("commanded", 9, "harness", 0)]))
    log.close()


def test_events_come_back_as_they_were_written(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    write_three(path)
    first, second, third = read_events(path)
    assert first == Stamped(1, 7, ActAnnounced(act=1, test="t", ability="fabric", what={"change": "partial"}))
    assert (second.seq, second.t_ns) == (2, 1_000_000_007)
    assert isinstance(third.event, RemapSeen)
    assert third.event.stages == [Stage("commanded", 9, "harness", 0)]


def test_listeners_hear_every_event(tmp_path: Path) -> None:
    heard: list[Stamped] = []
    log = EventLog(tmp_path / "events.jsonl", VirtualClock())
    log.subscribe(heard.append)
    log.write(TestFinished("t", "pass", None, None, 0.1))
    log.close()
    assert heard == list(read_events(log.path))


def fill_the_disk(path: Path) -> None:
    """Have the device that is always full take what is written to ``path``, which this process has open."""
    (number,) = [int(fd.name) for fd in Path("/proc/self/fd").iterdir() if fd.exists() and fd.samefile(path)]
    full = os.open("/dev/full", os.O_WRONLY)
    os.dup2(full, number)
    os.close(full)


def test_on_a_full_disk_no_act_is_announced_and_what_is_done_goes_on(tmp_path: Path) -> None:
    log = EventLog(tmp_path / "events.jsonl", VirtualClock())
    log.write(ActAnnounced(act=1, test="t", ability="fabric", what={}), durable=True)
    fill_the_disk(log.path)
    log.write(ActDone(act=1, test="t"))
    assert (
        log.problem
        == f"{tmp_path} cannot be written: No space left on device; free some space, or choose another --out"
    )
    with pytest.raises(LabError, match="No space left on device"):
        log.write(ActAnnounced(act=2, test="t", ability="fabric", what={}), durable=True)
    log.close()
    (first,) = read_events(log.path)
    assert first.event.kind == "act.announced"


ANNOUNCED = ActAnnounced(act=1, test="t", ability="fabric", what={})


class SlowDisk:
    """A disk that has what it was told to keep once it is ``let``; it tells that it was ``asked``."""

    def __init__(self) -> None:
        self.asked, self.let = Semaphore(0), Semaphore(0)
        self.has: list[int] = []
        self.error: OSError | None = None

    def fdatasync(self, fd: int) -> None:
        lines = Path(f"/proc/self/fd/{fd}").read_bytes().count(b"\n")
        self.asked.release()
        assert self.let.acquire(timeout=10)
        if self.error is not None:
            raise self.error
        self.has.append(lines)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> SlowDisk:
    slow = SlowDisk()
    monkeypatch.setattr(os, "fdatasync", slow.fdatasync)
    return slow


def test_others_are_written_while_one_is_on_its_way_to_the_disk(tmp_path: Path, disk: SlowDisk) -> None:
    log = EventLog(tmp_path / "events.jsonl", VirtualClock())
    with ThreadPoolExecutor() as threads:
        first = threads.submit(log.write, ANNOUNCED, durable=True)
        assert disk.asked.acquire(timeout=10)
        log.write(ActDone(act=1, test="t"))
        later = [threads.submit(log.write, ANNOUNCED, durable=True) for _ in range(2)]
        assert soon().poll(lambda: len(list(read_events(log.path))) == 4, every_s=1e-3)
        # One at a time: whoever wrote before it has taken down that it did.
        log.write(ActDone(act=1, test="t"))
        assert not first.done()
        disk.let.release(3)
        assert first.result().seq == 1
        assert {one.result().seq for one in later} == {3, 4}
    # Those that were written meanwhile are on the disk by one way to it.
    assert disk.has == [1, 5]
    log.close()


def test_what_the_disk_refuses_is_refused_to_all_that_wait_for_it(tmp_path: Path, disk: SlowDisk) -> None:
    log = EventLog(tmp_path / "events.jsonl", VirtualClock())
    disk.error = OSError(errno.EIO, "Input/output error")
    with ThreadPoolExecutor() as threads:
        waiting = [threads.submit(log.write, ANNOUNCED, durable=True) for _ in range(2)]
        assert soon().poll(lambda: len(list(read_events(log.path))) == 2, every_s=1e-3)
        disk.let.release(2)
        for one in waiting:
            with pytest.raises(LabError, match="Input/output error"):
                one.result()
    log.close()


def test_what_was_written_before_the_log_ended_is_on_the_disk(tmp_path: Path, disk: SlowDisk) -> None:
    log = EventLog(tmp_path / "events.jsonl", VirtualClock())
    with ThreadPoolExecutor() as threads:
        first = threads.submit(log.write, ANNOUNCED, durable=True)
        assert disk.asked.acquire(timeout=10)
        ending = threads.submit(log.close)
        disk.let.release()
        ending.result()
        assert first.result().seq == 1
    with pytest.raises(LabError, match="has ended"):
        log.write(ANNOUNCED, durable=True)


def test_a_half_written_last_line_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    write_three(path)
    path.write_bytes(path.read_bytes()[:-20])
    assert [stamped.seq for stamped in read_events(path)] == [1, 2]


def test_a_byte_that_was_no_text_is_read_back(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    log = EventLog(path, VirtualClock())
    said = b"model \xff".decode(errors="surrogateescape")
    log.write(ActDone(1, None, said))
    log.close()
    assert [stamped.event for stamped in read_events(path)] == [ActDone(1, None, said)]


def test_a_broken_line_in_the_middle_is_named(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    write_three(path)
    lines = path.read_text().splitlines()
    path.write_text("\n".join([lines[0], '{"kind":"nonsense"}', lines[2]]) + "\n")
    with pytest.raises(BadInput, match=r"events\.jsonl:2"):
        list(read_events(path))


def test_a_stream_is_never_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    write_three(path)
    with pytest.raises(BadInput, match="--out"):
        EventLog(path, VirtualClock())


def test_fields_a_later_version_adds_are_ignored(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    write_three(path)
    record = json.loads(path.read_text().splitlines()[1]) | {"colour": "blue"}
    path.write_text(json.dumps(record) + "\n")
    assert [stamped.event for stamped in read_events(path)] == [ActDone(act=1, test="t")]


def test_a_line_that_is_nested_without_end_is_no_event(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    write_three(path)
    path.write_text("[" * 100_000 + "\n" + path.read_text())
    with pytest.raises(BadInput, match=r"events\.jsonl:1: not an event"):
        list(read_events(path))


@pytest.mark.parametrize(
    ("field", "value"),
    [("act", [1]), ("test", 7), ("result", "done"), ("seq", "first"), ("t_ns", None), ("seq", float("inf"))],
)
def test_a_field_of_another_type_is_named(tmp_path: Path, field: str, value: object) -> None:
    path = tmp_path / "events.jsonl"
    write_three(path)
    lines = path.read_text().splitlines()
    lines[1] = json.dumps(json.loads(lines[1]) | {field: value})
    path.write_text("\n".join(lines) + "\n")
    with pytest.raises(BadInput, match=r"events\.jsonl:2: not an event") as refused:
        list(read_events(path))
    assert "\n" not in str(refused.value)
