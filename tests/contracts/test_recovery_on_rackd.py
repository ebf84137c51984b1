"""The recovery oracle through an NBD session with a simulated drive, and what faults of that drive look like to it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from rackloop_drivers.block import NbdExport
from rackloop_drivers.block.nbd_session import NbdSession
from rackloop_drivers.host import LocalExecutor
from rackloop_drivers.rackd import RackdControl
from rackloop_drivers.workload import Expected, RackProbe
from rackloop_oracles.recovery import BlockSystem, Content, Outcome, RecoveryOracle
from tests.deadlines import CLOCK, soon
from tests.rackd_process import running_rackd
from tests.writable_drive import minted

BLOCKS = 64


@dataclass(frozen=True)
class Bench:
    oracle: RecoveryOracle
    control: RackdControl
    export: NbdExport


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    with running_rackd(tmp_path) as rackd:
        export = NbdExport(rackd.nbd, "drive.d01", 64 << 20)
        control = rackd.connect()
        with minted(export) as drive, NbdSession(drive, CLOCK, within_s=120) as session:
            system = BlockSystem(session, "d01", size_bytes=BLOCKS * 4096)
            with RecoveryOracle(system, soon(), seed=7, batch_bytes=16 * 4096) as oracle:
                assert oracle.write(0, BLOCKS) == BLOCKS
                assert oracle.flush()
                yield Bench(oracle, control, export)
        control.close()


def test_rackprobe_finds_right_what_the_oracle_wrote(bench: Bench) -> None:
    with LocalExecutor(CLOCK) as executor:
        # The first requests have 16 blocks each, and each request is a generation.
        expected = Expected("d01", generation=1, seed=7)
        assert RackProbe(executor, CLOCK).verify(bench.export, expected, soon(), sectors=16).is_right
    assert bench.oracle.verify_all().observations == []


def test_unreadable_sectors_are_loud_one_by_one(bench: Bench) -> None:
    bench.control.add_fault(
        "d01", {"kind": "media_error", "lba": 8 * 20, "sectors": 16, "mode": "until_rewritten"}, soon()
    )
    found = bench.oracle.judge(bench.oracle.verify_all("two sectors bad"))
    assert [(one.observation.block, one.outcome) for one in found] == [(20, Outcome.LOUD), (21, Outcome.LOUD)]
    bench.oracle.write(20, 2)
    assert bench.oracle.judge(bench.oracle.verify_all()) == []


def test_flipped_bits_are_wrong(bench: Bench) -> None:
    bench.control.add_fault("d01", {"kind": "corrupt", "lba": 8 * 40, "sectors": 8}, soon())
    (one,) = bench.oracle.judge(bench.oracle.verify_all())
    assert (one.observation.block, one.outcome) == (40, Outcome.WRONG)
    assert one.observation.founds[0][1].content in {Content.CORRUPT, Content.FOREIGN}
