"""What the plans of the designs note of what happened: the rules judge what was, not what was meant to be."""

from __future__ import annotations

import errno
import threading
from pathlib import Path
from statistics import fmean
from types import SimpleNamespace
from typing import Any

import pytest

from rackloop.abilities.blocks import BLOCK_BYTES, IoFailed
from rackloop.clock import Deadline, RealClock, VirtualClock
from rackloop.errors import BadInput, LabError, NotConnected, ProductFailed
from rackloop.measurement import Verdict
from rackloop_fixtures import Took
from rackloop_fixtures.rack.held_drives import REGION_BYTES
from rackloop_models.disaggregation import Assignment, Chosen, History, Mapped, Shape, complete_rules, judged
from rackloop_models.lwfs import LwfsFile
from tests.interrupted_beginning import Interrupted, interrupted_beginning
from tests.plan_modules import plan_module
from tests.unit.models.lwfs_rack import SmallRack

SHAPE = Shape(("s1", "s2"), ("p0",), tuple(f"d{number}" for number in range(8)))


COMPLETE = plan_module("disaggregation/complete")
ELASTIC = plan_module("disaggregation/elastic")
FAILURE = plan_module("disaggregation/failure")


def timed_ios(rack: SmallRack, history: History, chosen: str = "s1") -> tuple[Any, LwfsFile]:
    """The I/Os of a client of the small rack, for which that server was chosen, and its file."""
    untold = SimpleNamespace(waited_s=lambda: None, late_with=lambda _seconds: 0.0)
    service = SimpleNamespace(
        storage=SimpleNamespace(history=history, now_s=rack.wall_s, rack=untold),
        controller=SimpleNamespace(finished=lambda _assigned: None),
        assigned=Assignment(1, "d1", (chosen, "p0"), None, None),
        guard_s=0.0,
    )
    client = rack.client()
    return COMPLETE.TimedIos(service, client), client.open("notes")


@pytest.mark.parametrize(("chosen", "verdict"), [("s1", Verdict.PASS), ("s2", Verdict.FAIL)])
def test_the_server_of_an_io_is_the_one_that_answered_and_not_the_one_that_was_chosen(
    chosen: str, verdict: Verdict
) -> None:
    rack, history = SmallRack(), History()
    history.note(Mapped(0.0, "d1", "s1", "p0"))
    history.note(Chosen(rack.now_s, 1, "d1", chosen))
    ios, file = timed_ios(rack, history, chosen)
    address = ios.do(file, "one", lambda: file.append(b"one"), b"one")
    ios.do(file, "one", lambda: file.read(address), b"one")
    verdicts = {judgement.rule: judgement.verdict for judgement in judged(complete_rules(SHAPE), history)}
    assert verdicts["the policy chooses for each I/O"] is verdict
    assert verdicts["a drive answers only while it is mapped"] is Verdict.PASS
    assert verdicts["no I/O is lost"] is Verdict.PASS


def test_a_record_that_is_damaged_when_it_is_read_is_the_products_failure() -> None:
    rack = SmallRack()
    ios, file = timed_ios(rack, History())
    address = file.append(b"one")
    rack.memory["d1"].write(address.block * BLOCK_BYTES, bytes(BLOCK_BYTES))
    with pytest.raises(ProductFailed, match="holds no record of this file"):
        ios.do(file, "one", lambda: file.read(address), b"one")


def test_a_drive_that_lost_its_key_is_the_products_failure() -> None:
    rack = SmallRack()
    rack.memory["d2"].write(0, bytes(BLOCK_BYTES))
    with pytest.raises(ProductFailed, match="holds no key"):
        rack.move("d2", "s2")


@pytest.mark.parametrize(("is_on_its_way", "error"), [(False, ProductFailed), (True, IoFailed)])
def test_an_error_of_a_drive_that_is_at_its_server_is_the_products_and_of_one_that_moves_is_not(
    is_on_its_way: bool, error: type[Exception]
) -> None:
    rack = SmallRack()
    ios, file = timed_ios(rack, History())
    address = file.append(b"one")
    rack.now_s += 1

    def request() -> bytes:
        if not is_on_its_way:
            file.read(address)
        raise IoFailed("read: input/output error", errno.EIO)

    with pytest.raises(error, match="input/output error"):
        ios.do(file, "one", request, b"one")


def test_each_round_has_a_median_of_raw_ios_of_its_own() -> None:
    """A median that all had in common would be as one draw in all of them."""
    ios, raw = [Took(4.0, 3.0)] * 4, [*[Took(1.0, 0.5)] * 3, *[Took(2.0, 2.0)] * 3]
    found = COMPLETE._overheads(fmean, ios, raw, 2)
    assert [(each.least, each.seen, each.most) for each in found] == [(3.0, 4.0, 8.0), (1.5, 2.0, 2.0)]


def test_a_drive_has_room_for_all_records_of_one_and_for_the_raw_block_behind_them() -> None:
    key, raw = 1, 1
    most = COMPLETE.PARAMETERS["direct_ios"].most
    assert most <= COMPLETE.FILE_BLOCKS
    assert key + 2 * COMPLETE.FILE_BLOCKS + raw <= REGION_BYTES // BLOCK_BYTES


@pytest.mark.parametrize("moments", [[100], [100, 100]])
def test_a_trace_without_any_time_in_it_makes_no_day(tmp_path: Path, moments: list[int]) -> None:
    path = tmp_path / "short.csv"
    path.write_text("".join(f"1,{t},35,2,8\n" for t in moments))
    with pytest.raises(BadInput, match="two requests at different times"):
        ELASTIC._loads({"trace": str(path), "steps": 4}, seed=1)


def test_a_traces_first_and_last_request_are_a_day_apart(tmp_path: Path) -> None:
    path = tmp_path / "hour.csv"
    path.write_text("1,100,35,2,8\n1,3700,35,2,8\n")
    loads = ELASTIC._loads({"trace": str(path), "steps": 4}, seed=1)
    assert [load.t_s for load in loads] == pytest.approx([0, 21600, 43200, 64800])
    assert [load.share for load in loads] == [0.95, 0, 0, 0.95]


def test_a_server_that_was_to_fail_and_goes_on_answering_is_not_waited_for_without_end() -> None:
    clock = VirtualClock()
    storage = SimpleNamespace(
        now_s=lambda: clock.now_ns() / 1e9,
        sleep=clock.advance,
        rack=SimpleNamespace(
            deadline=lambda seconds: Deadline.after(clock, seconds),
            lab=SimpleNamespace(time_s=lambda _what: 60.0),
            bench=SimpleNamespace(host=lambda _name: SimpleNamespace(run=lambda _command, _deadline: None)),
        ),
    )
    failover = FAILURE.Failover(storage, SimpleNamespace(up=["s1", "s2"]), [], 0.05, 1.0)
    with pytest.raises(LabError, match="s1 was to fail and still answers; was the fault made"):
        failover._await_loss("s1")


def test_servers_are_heard_no_longer_than_who_listens_to_them() -> None:
    asked = 0

    def run(_command: object, _deadline: object) -> None:
        nonlocal asked
        asked += 1
        assert asked < 10_000, "nothing ends the listeners"

    clock = RealClock()
    storage = SimpleNamespace(
        now_s=lambda: clock.now_ns() / 1e9,
        sleep=lambda seconds: clock.sleep_until_ns(clock.now_ns() + round(seconds * 1e9)),
        rack=SimpleNamespace(
            deadline=lambda seconds: Deadline.after(clock, seconds),
            lab=SimpleNamespace(time_s=lambda _what: 60.0),
            bench=SimpleNamespace(host=lambda _name: SimpleNamespace(run=run)),
        ),
    )
    failover = FAILURE.Failover(storage, SimpleNamespace(up=[f"s{number}" for number in range(200)]), [], 0.001, 9.0)
    with pytest.raises(Interrupted), interrupted_beginning("beat_"):
        failover._await_loss("s1")
    while any(thread.is_alive() for thread in threading.enumerate() if thread.name.startswith("beat_")):
        pass
    assert asked < 10_000


@pytest.mark.parametrize(
    ("error", "raised"),
    [(IoFailed("read: input/output error", errno.EIO), ProductFailed), (NotConnected("gone"), LabError)],
)
def test_a_drive_that_its_new_server_cannot_read_is_the_products_failure(
    error: Exception, raised: type[Exception]
) -> None:
    def recover(_drive: str, _token: bytes) -> None:
        raise error

    storage = SimpleNamespace(
        mapping=SimpleNamespace(server_of=lambda _drive: "s2"), servers={"s2": SimpleNamespace(recover=recover)}
    )
    granted = SimpleNamespace(grant=lambda _name, _rights: SimpleNamespace(token=b""))
    client = SimpleNamespace(drive="d1", name="client of d1", rights=None, client=granted)
    failover = FAILURE.Failover(storage, None, [client], 0.05, 1.0)
    with pytest.raises(raised, match=str(error)):
        failover.report(["d1"])
