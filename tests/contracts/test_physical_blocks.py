"""A physical rack's drives as blocks of the harness: stores, stripes and the oracle on mock servers reached by SSH."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from rackloop.abilities import WritableDrive
from rackloop.abilities.blocks import BLOCK_BYTES, IoFailed, Part
from rackloop.errors import BadInput, GuardRefused
from rackloop.lab import Lab, LabState, load_lab, once_online
from rackloop.safety import Guard
from rackloop_cli.main import main
from rackloop_drivers.block.nbd_session import FailFastNbdSession, NbdSession
from rackloop_drivers.open_blocks import open_blocks
from rackloop_drivers.rackd import RackdControl
from rackloop_labs import Bench, MockLab, open_lab
from rackloop_models.local_erasure import Layout, LocalStore, format_drive
from rackloop_models.rack_erasure import StripeCode, StripedStore, format_store
from rackloop_oracles.recovery import BlockSystem, Outcome, RecoveryOracle
from tests.deadlines import CLOCK, soon
from tests.discovered_rack import erasable_rack
from tests.leased import EverythingLeased

MIB = 1 << 20
SECTOR = 512
PORTS = ("p0", "p1", "p2")
Permit = Callable[[str], WritableDrive]


@pytest.fixture(scope="module")
def described(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The mock rack as `lab discover` describes it, a physical one, whose owner lets it all be erased."""
    with erasable_rack(tmp_path_factory, f"blocks-{os.getpid()}") as file:
        yield file


@pytest.fixture(scope="module")
def lab(described: Path) -> Lab:
    return load_lab(described)


@pytest.fixture
def rackd(lab: Lab) -> Iterator[RackdControl]:
    """Somebody's hand in the rack, who asks nobody's leave."""
    control = RackdControl(Path(LabState.of("mock").endpoints()["control"]), CLOCK)
    yield control
    control.close()


@pytest.fixture
def bench(lab: Lab) -> Iterator[Bench]:
    with open_lab(lab, CLOCK, LabState.of(lab.name), None) as bench:
        yield bench


@pytest.fixture
def permitted(lab: Lab, bench: Bench) -> Iterator[Permit]:
    """The permission to write the drive at a port of srv1."""
    with ExitStack() as stack:

        def permit(port: str) -> WritableDrive:
            drive = bench.drive("srv1", port)
            serial = once_online(drive, soon()).serial
            name = next(name for name, described in lab.drives.items() if described.serial == serial)
            guard = Guard(lab, EverythingLeased())
            return stack.enter_context(guard.writable(name, drive, bench.device("srv1", port), soon()))

        yield permit


def spoil(rackd: RackdControl, drive: str, *offsets: int) -> None:
    """Have one block at each offset be unreadable until it is written again."""
    for offset in offsets:
        fault = {"kind": "media_error", "lba": offset // SECTOR, "sectors": 8, "mode": "until_rewritten"}
        rackd.add_fault(drive, fault, soon())


def test_what_a_server_writes_is_on_the_drive(bench: Bench, permitted: Permit) -> None:
    data = os.urandom(3 * MIB)
    with open_blocks(permitted("p0"), CLOCK) as blocks:
        assert isinstance(blocks, NbdSession)
        assert not isinstance(blocks, FailFastNbdSession)
        blocks.write(MIB, data)
        blocks.flush()
    mock = MockLab(load_lab("mock"), CLOCK).open(None)
    try:
        with NbdSession(mock.device("srv1", "p0"), CLOCK) as near:
            assert near.read(MIB, len(data)) == data
    finally:
        mock.close()
    with open_blocks(bench.device("srv1", "p0"), CLOCK) as blocks:
        with pytest.raises(BadInput, match="opened to be read"):
            blocks.write(MIB, bytes(BLOCK_BYTES))
        assert blocks.read(MIB, len(data)) == data


def test_sectors_that_cannot_be_read_are_an_error_of_the_drive(rackd: RackdControl, permitted: Permit) -> None:
    with open_blocks(permitted("p0"), CLOCK) as blocks:
        blocks.write(0, b"\1" * MIB)
        spoil(rackd, "d01", 5 * BLOCK_BYTES)
        with pytest.raises(IoFailed) as failed:
            blocks.read(0, MIB)
        assert failed.value.is_unreadable
        assert blocks.read(8 * BLOCK_BYTES, BLOCK_BYTES) == b"\1" * BLOCK_BYTES
        blocks.write(5 * BLOCK_BYTES, b"\2" * BLOCK_BYTES)
        assert blocks.read(5 * BLOCK_BYTES, BLOCK_BYTES) == b"\2" * BLOCK_BYTES


def test_a_store_decodes_what_a_drive_of_a_server_lost(rackd: RackdControl, permitted: Permit) -> None:
    content = os.urandom(MIB)
    with open_blocks(permitted("p1"), CLOCK) as whole:
        blocks = Part(whole, 0, 64 * MIB)
        format_drive(blocks, Layout(20, 3))
        with LocalStore(blocks, CLOCK) as store:
            store.create("results").write(0, content)
            store.protect()
            store.flush()
            places = store.places("results", 0)
        spoil(rackd, "d02", *places[:2])
        with LocalStore(blocks, CLOCK) as store:
            assert store.open("results").read(0, len(content)) == content
            assert store.statistics.decoded_sectors == 2


def test_stripes_lie_on_drives_of_a_server(permitted: Permit) -> None:
    with ExitStack() as stack:
        sessions = {port: open_blocks(permitted(port), CLOCK) for port in PORTS}
        for session in sessions.values():
            stack.callback(session.close)
        drives = {port: Part(session, 128 * MIB, 8 * MIB) for port, session in sessions.items()}
        format_store(drives, StripeCode(2, 1, 8 * BLOCK_BYTES), seed=5)
        with StripedStore(drives, CLOCK) as store:
            content = os.urandom(store.object_bytes)
            store.put(0, content)
            assert store.get(0) == content
            lost, *_ = (drive for drive, _, _ in store.places(0))
            sessions[lost].close()
            assert store.get(0) == content


def test_the_oracle_judges_a_drive_of_a_server(rackd: RackdControl, permitted: Permit) -> None:
    with open_blocks(permitted("p0"), CLOCK) as blocks:
        system = BlockSystem(Part(blocks, 256 * MIB, MIB), "d01", size_bytes=64 * BLOCK_BYTES)
        with RecoveryOracle(system, soon(), seed=7, batch_bytes=16 * BLOCK_BYTES) as oracle:
            assert oracle.write(0, 64) == 64
            assert oracle.flush()
            spoil(rackd, "d01", 256 * MIB + 20 * BLOCK_BYTES)
            found = oracle.judge(oracle.verify_all("a sector is bad"))
            assert [(one.observation.block, one.outcome) for one in found] == [(20, Outcome.LOUD)]


def test_a_drive_that_a_hand_moves_away_gives_no_wrong_data(
    lab: Lab, rackd: RackdControl, bench: Bench, permitted: Permit
) -> None:
    baseline = [list(pair) for pair in lab.baseline_map()]
    by_port = dict(lab.baseline_map())
    mine, others = lab.switch_port("srv1", "p0"), lab.switch_port("srv2", "p0")
    with open_blocks(permitted("p0"), CLOCK) as blocks:
        blocks.write(0, b"\1" * MIB)
        blocks.flush()
        rackd.request("map", soon(), pairs=[[mine, by_port[others]]])
        try:
            once_online(bench.drive("srv1", "p0"), soon())
            with pytest.raises(GuardRefused):
                blocks.write(0, b"\2" * MIB)
            with pytest.raises(IoFailed) as failed:
                blocks.read(0, MIB)
            assert not failed.value.is_unreadable
        finally:
            rackd.request("map", soon(), pairs=baseline)
            once_online(bench.drive("srv1", "p0"), soon())
    with open_blocks(bench.device("srv1", "p0"), CLOCK) as blocks:
        assert blocks.read(0, MIB) == b"\1" * MIB


def test_files_are_put_on_a_drive_of_a_server_by_hand(described: Path, tmp_path: Path) -> None:
    content = os.urandom(MIB + 1)
    (tmp_path / "results").write_bytes(content)
    store = ("store", str(described))
    assert main([*store, "format", "d01", "--ph", "0.001", "--codeword", "255"]) == 0
    assert main([*store, "put", "d01", str(tmp_path / "results")]) == 0
    assert main([*store, "get", "d01", "results", str(tmp_path / "back")]) == 0
    assert (tmp_path / "back").read_bytes() == content
    assert main([*store, "scrub", "d01", "--check"]) == 0
