"""Rebuilding: what moved drives missed, whole spares, resumed and reordered, beside tenants; and bad input."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest

from rackloop.abilities.blocks import BLOCK_BYTES
from rackloop.clock import RealClock, VirtualClock
from rackloop.errors import BadInput, NotConnected
from rackloop.seed import stream
from rackloop_models.disaggregation import CapacityGone, failure
from rackloop_models.rack_erasure import (
    Health,
    NoStripedStore,
    NoSuchObject,
    RecoveryController,
    ServerLoss,
    StripeCode,
    StripedStore,
    StripeLost,
    TooFewDrives,
    format_store,
    needed_bytes,
)
from tests.memory_blocks import MemoryBlocks
from tests.unit.models.striped_drives import Case, Drive, case

SHAPE = failure([f"s{number}" for number in range(6)], ["p0", "p1", "p2", "p3"], [f"d{n}" for n in range(16)], 4)


def filled(made: Case, *, store: StripedStore | None = None) -> tuple[StripedStore, dict[int, bytes]]:
    store = store or made.open()
    held = {number: stream(number, "object").randbytes(store.object_bytes - number) for number in range(store.objects)}
    for number, data in held.items():
        store.put(number, data)
    return store, held


def spare_for(made: Case, store: StripedStore, drive: str, name: str) -> Drive:
    spare = Drive(made.drives[drive].size_bytes, made.power)
    store.replace(drive, name, spare)
    made.drives[name] = spare
    del made.drives[drive]
    return spare


def test_drives_that_moved_are_caught_up_with_what_was_written_meanwhile_and_nothing_else() -> None:
    made = case(4, 2, 12, places=8, servers=6)
    store, held = filled(made)
    lost = [drive for drive, server in made.servers.items() if server == "s2"]
    for drive in lost:
        store.drive_failed(drive, "its server failed")
    missing = {number for number in held if any(drive in lost for drive, _, _ in store.places(number))}
    meanwhile = sorted(missing)[:3]
    for number in meanwhile:
        held[number] = b"m" * store.object_bytes
        store.put(number, held[number])
    for drive, server in zip(lost, ("s0", "s1"), strict=True):
        store.drive_back(drive, made.drives[drive], server=server)
    assert store.recovery_state().units_missing == len(meanwhile)
    report = store.rebuild()
    assert (report.units, report.left) == (len(meanwhile), 0)
    assert report.written_bytes == len(meanwhile) * BLOCK_BYTES
    assert store.recovery_state().health is Health.HEALTHY
    assert store.server_failures_survived == 1
    assert [drive.server for drive in store.recovery_state().drives if drive.name in lost] == ["s0", "s1"]
    assert all(store.get(number) == data for number, data in held.items())


def test_drives_that_nothing_was_written_without_are_well_as_soon_as_they_are_back() -> None:
    made = case(2, 1, 4)
    store, _ = filled(made)
    store.drive_failed("d1")
    assert store.recovery_state().health is Health.DEGRADED
    assert store.recovery_state().drives[1].why == "was said to have failed"
    store.drive_back("d1", made.drives["d1"])
    assert store.recovery_state().health is Health.HEALTHY
    assert store.rebuild().units == 0


def test_spares_get_every_unit_of_the_drives_that_they_stand_for() -> None:
    made = case(4, 2, 12, places=8, servers=6)
    store, held = filled(made)
    lost = [drive for drive, server in made.servers.items() if server == "s2"]
    for number, drive in enumerate(lost):
        spare_for(made, store, drive, f"x{number}")
    assert store.recovery_state().health is Health.DEGRADED
    report = store.rebuild()
    assert (report.units, report.left) == (16, 0)
    assert report.written_bytes == 16 * BLOCK_BYTES
    # Four units are read for each stripe.
    assert report.read_bytes == 4 * BLOCK_BYTES * report.stripes
    assert store.recovery_state().health is Health.HEALTHY
    assert all(store.get(number) == data for number, data in held.items())
    assert all(made.open().get(number) == data for number, data in held.items())


def test_a_rebuild_that_is_stopped_goes_on_where_it_was_also_in_another_process() -> None:
    made = case(3, 2, 8, places=10)
    store, held = filled(made)
    spare_for(made, store, "d3", "x")
    first = store.rebuild(at_most=4)
    assert (first.stripes, first.left) == (4, 6)

    def stop(done: int, total: int) -> None:
        assert (done, total) == (1, 6)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        store.rebuild(progress=stop)
    assert store.recovery_state().health is Health.DEGRADED
    again = made.open()
    assert again.recovery_state().stale == ("x",)
    assert (again.rebuild().units, again.recovery_state().health) == (5, Health.HEALTHY)
    assert all(again.get(number) == data for number, data in held.items())


def test_stripes_with_the_fewest_units_left_come_first_also_after_another_failure() -> None:
    made = case(3, 2, 8, places=12)
    store, _ = filled(made)
    on = {
        number: {store.recovery_state().drives[unit.drive].name for unit in units}
        for number, units in enumerate(store.layout.stripes)
    }
    spare_for(made, store, "d0", "x")
    left: list[int] = []

    def units_left(number: int) -> int:
        gone = {"d1"} if len(left) >= 3 else set()
        return 5 - ("d0" in on[number]) - len(gone & on[number])

    def then(_done: int, _total: int) -> None:
        last = {unit[0] for unit in made.drives["x"].writes[-1:]}
        assert last
        left.append(len(left))
        if len(left) == 3:
            store.drive_failed("d1")

    unit_spans = {
        store.layout.record_offset(unit.place, slot): number
        for number, units in enumerate(store.layout.stripes)
        for unit in units
        if unit.drive == 0
        for slot in (0, 1)
    }
    writes_before = len(made.drives["x"].writes)
    store.rebuild(progress=then)
    order = [unit_spans[offset] for offset, _ in made.drives["x"].writes[writes_before:] if offset in unit_spans]
    assert len(order) == len(store.layout.on_drive[0])
    both = [number for number in order[3:] if "d1" in on[number]]
    assert both
    assert order[3 : 3 + len(both)] == both
    assert units_left(both[0]) == 3


def test_only_the_target_is_rebuilt_where_one_is_named() -> None:
    made = case(2, 2, 6, places=6)
    store, _ = filled(made)
    for number in (0, 1):
        spare_for(made, store, f"d{number}", f"x{number}")
    assert store.rebuild("x1").left == 0
    assert store.recovery_state().stale == ("x0",)
    assert store.rebuild().left == 0
    assert store.recovery_state().health is Health.HEALTHY


def test_what_cannot_be_rebuilt_is_named_and_the_rest_is() -> None:
    made = case(2, 1, 6, places=4)
    store, held = filled(made)
    lost = [number for number in held if {"d0", "d1"} <= {drive for drive, _, _ in store.places(number)}]
    assert 0 < len(lost) < len(held)
    for number in (0, 1):
        spare_for(made, store, f"d{number}", f"x{number}")
    report = store.rebuild()
    assert report.lost == tuple(lost)
    assert store.recovery_state().lost == tuple(lost)
    for number, data in held.items():
        if number in lost:
            with pytest.raises(StripeLost, match=f"object {number}: 2 units"):
                store.get(number)
        else:
            assert store.get(number) == data
    # What is written anew is whole again.
    for number in lost:
        store.put(number, b"again")
    store.rebuild()
    assert store.recovery_state().health is Health.HEALTHY


def test_too_few_drives_for_a_write_leave_what_was_there() -> None:
    made = case(3, 1, 4)
    store, held = filled(made)
    for drive in ("d0", "d1"):
        made.drives[drive].refuses_writes = True
    with pytest.raises(TooFewDrives, match=r"object 0 is written on 3 drives at least.* d0, d1 did not; it holds"):
        store.put(0, bytes(store.object_bytes))
    for drive in ("d0", "d1"):
        made.drives[drive].refuses_writes = False
        store.drive_back(drive, made.drives[drive])
    assert store.get(0) == held[0]
    assert store.recovery_state().health is Health.HEALTHY


def test_a_write_whose_records_fail_is_settled_by_the_next_read() -> None:
    for allowed in range(5):
        made = case(2, 1, 3)
        _, held = filled(made)
        left = [1 << 30]
        failing = {name: _FailingAfter(drive, left) for name, drive in made.drives.items()}
        other = StripedStore(failing, made.clock, workers=1)
        new = bytes(other.object_bytes)
        left[0] = allowed
        with pytest.raises(TooFewDrives):
            other.put(0, new)
        left[0] = 1 << 30
        for name, blocks in failing.items():
            other.drive_back(name, blocks)
        found = other.get(0)
        assert found == (held[0] if allowed < 4 else new)
        other.rebuild()
        assert other.recovery_state().health is Health.HEALTHY
        assert made.open().get(0) == found


class _FailingAfter:
    """Blocks of several drives, of which writes fail after so many."""

    def __init__(self, drive: Drive, left: list[int]) -> None:
        self._drive = drive
        self._left = left

    @property
    def size_bytes(self) -> int:
        return self._drive.size_bytes

    def read(self, offset: int, length: int) -> bytes:
        return self._drive.read(offset, length)

    def write(self, offset: int, data: bytes) -> None:
        self._left[0] -= 1
        if self._left[0] < 0:
            raise NotConnected("the path is gone")
        self._drive.write(offset, data)

    def flush(self) -> None:
        self._drive.flush()


def test_tenants_write_and_read_while_drives_fail_and_are_rebuilt() -> None:
    code = StripeCode(4, 2, 4 * BLOCK_BYTES)
    size = needed_bytes(code, 10)
    drives = {f"d{number}": MemoryBlocks(size) for number in range(9)}
    format_store(drives, code, store_id=b"store of a test.")
    over = Event()
    with StripedStore(drives, RealClock()) as store, ThreadPoolExecutor(3) as threads:

        def tenant(number: int) -> int:
            chance, steps = stream(number, "tenant"), 0
            held: dict[int, bytes] = {}
            mine = range(number, store.objects, 3)
            while not over.is_set() or steps < 20:
                which = chance.choice(mine)
                held[which] = chance.randbytes(chance.randrange(1, store.object_bytes))
                store.put(which, held[which])
                which = chance.choice(sorted(held))
                assert store.get(which) == held[which]
                steps += 1
            assert all(store.get(which) == data for which, data in held.items())
            return steps

        running = [threads.submit(tenant, number) for number in range(3)]
        for turn in range(6):
            drive = f"d{turn}"
            store.drive_failed(drive)
            store.rebuild()
            if turn % 2:
                store.drive_back(drive, drives[drive])
            else:
                drives[f"x{turn}"] = MemoryBlocks(size)
                store.replace(drive, f"x{turn}", drives.pop(f"x{turn}"))
            while store.rebuild().left:
                pass
        over.set()
        assert all(steps.result() >= 20 for steps in running)
        assert store.rebuild().lost == ()
        assert store.recovery_state().health is Health.HEALTHY
        assert store.scrub().repaired == 0


@pytest.mark.parametrize("policy", list(ServerLoss))
def test_a_controller_has_drives_moved_or_spares_filled(policy: ServerLoss) -> None:
    controller = RecoveryController(SHAPE, policy)
    lost = controller.drives_of("s1")
    recovery = controller.server_failed("s1")
    if policy is ServerLoss.MOVE:
        assert [move.drive for move in recovery.moves] == lost
        assert recovery.spares == ()
    else:
        assert [drive for drive, _ in recovery.spares] == lost
        assert [move.drive for _, move in recovery.spares] == ["d12", "d13"]
        assert recovery.moves == ()
    moves = [*recovery.moves, *(move for _, move in recovery.spares)]
    assert len({move.target for move in moves}) == 2
    assert len({move.target[0] for move in moves} - {"s1"}) == 2
    assert all(controller.at[move.drive] == move.target for move in moves)
    assert controller.drives_of("s1") == []


def test_a_controller_without_spares_says_so() -> None:
    controller = RecoveryController(SHAPE, ServerLoss.REBUILD)
    controller.server_failed("s1")
    controller.server_failed("s5")
    assert controller.spares == []
    lost = controller.drives_of("s3")
    with pytest.raises(CapacityGone, match=f"{len(lost)} drives of s3 want as many spares"):
        controller.server_failed("s3")
    assert controller.drives_of("s3") == lost


def test_a_controller_puts_a_spare_in_the_place_of_a_drive() -> None:
    controller = RecoveryController(SHAPE, ServerLoss.MOVE)
    place = controller.at["d3"]
    ((drive, move),) = controller.drive_failed("d3").spares
    assert (drive, move.drive, move.target) == ("d3", "d12", place)


def test_bad_input_is_refused_with_what_to_do() -> None:
    made = case(2, 1, 4)
    store, held = filled(made)
    most = store.object_bytes
    for call, said in (
        (lambda: store.get(store.objects), f"numbers 0 to {store.objects - 1}"),
        (lambda: store.put(-1, b""), "numbers 0 to"),
        (lambda: store.put(0, bytes(most + 1)), f"{most} bytes at most, found {most + 1}"),
        (lambda: store.update(0, most, b"x"), "bytes at most"),
        (lambda: store.update(0, -1, b"x"), "offset: expected 0 or more"),
        (lambda: store.drive_failed("d9"), "drive d9 is not of this store, which has d0, d1, d2, d3"),
        (lambda: store.rebuild("d9"), "drive d9 is not of this store"),
        (lambda: store.replace("d0", "d1", made.drives["d1"]), "d1 is of the store already"),
        (lambda: store.replace("d0", "x", MemoryBlocks(1 << 16)), "spare x has 65536"),
        (lambda: store.drive_back("d0", made.drives["d1"]), "d0 was to be opened, but it is d1"),
        (lambda: store.drive_back("d0", MemoryBlocks(1 << 20)), "carries no striped store"),
        (lambda: made.open(workers=0), "workers: expected at least 1"),
        (lambda: StripedStore({}, made.clock), "none was given"),
    ):
        with pytest.raises(BadInput, match=said):
            call()
    # Nothing has changed.
    assert store.recovery_state().health is Health.HEALTHY
    assert all(store.get(number) == data for number, data in held.items())


def test_objects_that_are_not_there_are_told() -> None:
    store = case(2, 1, 4).open()
    for ask in (store.get, store.remove, store.places, lambda number: store.update(number, 0, b"x")):
        with pytest.raises(NoSuchObject, match="there is no object 1"):
            ask(1)
    store.put(1, b"")
    assert store.get(1) == b""
    assert store.numbers() == [1]
    store.update(1, 5, b"x")
    assert store.get(1) == b"\0\0\0\0\0x"
    store.remove(1)
    assert store.numbers() == []
    with pytest.raises(NoSuchObject):
        store.get(1)


def test_drives_of_another_store_and_drives_that_were_replaced_are_refused() -> None:
    made, other = case(2, 1, 3), case(2, 1, 3)
    format_store(other.drives, other.code, store_id=b"another store...")
    with pytest.raises(NoStripedStore, match="d2 is of the store"):
        StripedStore({"d0": made.drives["d0"], "d1": made.drives["d1"], "d2": other.drives["d2"]}, VirtualClock())
    store = made.open()
    old = made.drives["d2"]
    spare_for(made, store, "d2", "x")
    with pytest.raises(NoStripedStore, match="d2 was replaced by x"):
        StripedStore({**made.drives, "d2": old}, VirtualClock())
    with pytest.raises(NoStripedStore, match="not of this store"):
        store.drive_back("d2", old)


def test_halves_of_a_mirror_that_went_on_apart_are_refused_together() -> None:
    made = case(1, 1, 2)
    store = made.open()
    store.put(0, b"before")
    one = made.open(without=["d1"], trusting=True)
    one.put(0, b"on d0")
    # Half of a mirror may be the old half.
    with pytest.raises(StripeLost, match="cannot be told"):
        made.open(without=["d0"]).get(0)
    assert made.open().get(0) == b"on d0"
    other = made.open(without=["d0"], trusting=True)
    other.put(0, b"on d1")
    with pytest.raises(NoStripedStore, match="was written without others"):
        made.open()


@pytest.mark.parametrize(("servers", "most"), [(3, 2), (2, 3)])
def test_too_few_servers_are_refused_unless_that_is_accepted(servers: int, most: int) -> None:
    code = StripeCode(4, 2)
    drives = {f"d{number}": MemoryBlocks(needed_bytes(code, 2)) for number in range(6)}
    at = {name: f"s{number % servers}" for number, name in enumerate(drives)}
    survived = 1 if most <= 2 else 0
    with pytest.raises(BadInput, match=f"up to {most} at one of the {servers} servers.* {survived} servers may fail"):
        format_store(drives, code, servers=at, server_failures=survived + 1)
    layout = format_store(drives, code, servers=at, server_failures=survived)
    assert layout.server_failures_survived() == survived
    assert StripedStore(drives, VirtualClock()).server_failures_survived == survived


def test_what_cannot_be_formatted_is_refused() -> None:
    code = StripeCode(2, 1, 4096)
    good = {f"d{number}": MemoryBlocks(needed_bytes(code, 2)) for number in range(3)}
    with pytest.raises(BadInput, match=r"a drive needs \d+ bytes .* found d9 of 4096 bytes"):
        format_store({**good, "d9": MemoryBlocks(4096)}, code)
    with pytest.raises(BadInput, match="at which server d2 is"):
        format_store(good, code, servers={"d0": "a", "d1": "b"})
    with pytest.raises(BadInput, match="16 bytes"):
        format_store(good, code, store_id=b"short")
    with pytest.raises(BadInput, match="2 \\+ 1 units wants as many drives, found 2"):
        format_store(dict(list(good.items())[:2]), code)
    assert all(not any(blocks.content) for blocks in good.values())
