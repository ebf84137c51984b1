"""Faults of a virtual rack's guest and drives, made and mended by the code for physical racks.

The tests are of one rack with one guest, and in order: each finds it as the one before left it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from rackloop.errors import BadInput
from rackloop.faults import Faults, FaultSpec
from rackloop.lab import Lab, LabState, load_lab
from rackloop.safety.leases import LeaseTerms, leased
from rackloop.safety.store import open_lab_store
from rackloop.safety.undo import ActRecorder, Journal
from rackloop_labs import open_leased
from rackloop_labs.lacking import refusal
from tests.deadlines import CLOCK, soon
from tests.e2e.command_line import CommandLine
from tests.virtual.guest_login import tell
from tests.virtual.one_guest import SERVER, WITHIN_S, boot_of, console

HAS = {"power_loss", "server_crash", "server_nmi", "server_hang", "partition", "hot_unplug", "switch_power_loss"}
HAS |= {"media_error", "fail_slow", "fail_stop", "hang", "corrupt", "phy_drop", "phy_flap"}
LACKS = {"link_disable", "slot_power_loss", "phy_disable", "device_off", "stuck_port", "bmc_unreachable"}


@pytest.fixture(scope="module")
def lab(file: Path) -> Lab:
    return load_lab(file)


@pytest.fixture
def faults(one: CommandLine, lab: Lab) -> Iterator[Faults]:
    """The faults of the rack under a lease of it all; what is left standing is heal's to mend, as after a kill."""
    state = LabState(one.state_home / "labs" / lab.name)
    with (
        closing(open_lab_store(lab, state, CLOCK)) as store,
        leased(lab, store, LeaseTerms()) as held,
        open_leased(lab, CLOCK, state, held, bring_up=False) as bench,
    ):
        yield Faults(lab, bench.equipment, CLOCK, ActRecorder(lab, Journal(store), "run"))


def read(one: CommandLine, file: Path) -> str:
    """What dd says of the first block of the drive at the first port."""
    path = one.endpoints(str(file))["servers"][SERVER]["paths"]["p0"]
    node = f"/dev/disk/by-path/{path}-nvme-1"
    return tell(one, file, SERVER, f"dd if={node} of=/dev/null bs=4096 count=1 iflag=direct 2>&1; true")


@pytest.mark.parametrize("kind", sorted(HAS | LACKS))
def test_what_can_be_broken_is_known_beforehand(kind: str, lab: Lab) -> None:
    assert (refusal(lab, f"fault.{kind}") is None) is (kind in HAS)


@pytest.mark.nightly
def test_an_interrupt_needs_a_controller(faults: Faults, lab: Lab) -> None:
    assert lab.servers[SERVER].bmc is not None
    with pytest.raises(BadInput):
        faults.begin(FaultSpec("server_nmi", "srv9"))


@pytest.mark.nightly
def test_sectors_and_a_whole_drive_fail_and_are_well_again(one: CommandLine, file: Path, faults: Faults) -> None:
    assert "4096 bytes" in read(one, file)
    with faults.injected(FaultSpec("media_error", "d01", {"lba": 0, "sectors": 8})):
        assert "error reading" in read(one, file)
    with faults.injected(FaultSpec("fail_stop", "d01")):
        assert "error reading" in read(one, file)
    assert "4096 bytes" in read(one, file)


@pytest.mark.nightly
def test_a_drive_that_is_unplugged_or_without_power_is_gone_from_the_kernel(
    one: CommandLine, file: Path, lab: Lab, faults: Faults
) -> None:
    serial = lab.drives["d01"].serial

    def is_there() -> bool:
        return serial in tell(one, file, SERVER, "cat /sys/class/nvme/nvme*/serial")

    for spec in (FaultSpec("hot_unplug", "d01"), FaultSpec("power_loss", "d01")):
        assert soon(WITHIN_S).poll(is_there, every_s=0.5)
        with faults.injected(spec):
            assert soon(WITHIN_S).poll(lambda: not is_there(), every_s=0.5), spec
    assert soon(WITHIN_S).poll(is_there, every_s=0.5)


@pytest.mark.nightly
def test_the_programs_of_a_hung_server_are_held_and_go_on(one: CommandLine, file: Path, faults: Faults) -> None:
    before = boot_of(one, file)
    ticking = "while :; do echo $((n += 1)) >/run/ticks; sleep 0.05; done"
    tell(one, file, SERVER, f"systemd-run --quiet --unit=ticking sh -c '{ticking}'")

    def ticks() -> str:
        return tell(one, file, SERVER, "cat /run/ticks /sys/fs/cgroup/system.slice/cgroup.freeze")

    with faults.injected(FaultSpec("server_hang", SERVER)):
        held = ticks()
        assert held.split()[1] == "1"
        assert ticks() == held
    assert soon(WITHIN_S).poll(lambda: ticks() != held, every_s=0.5)
    assert boot_of(one, file) == before


@pytest.mark.nightly
@pytest.mark.parametrize("kind", ["partition", "server_hang"])
def test_what_a_dead_run_left_is_healed(kind: str, one: CommandLine, file: Path, faults: Faults) -> None:
    faults.begin(FaultSpec(kind, SERVER))
    # The one of the other kind may stand as well.
    shown = {"partition": "rackloop_partition", "server_hang": "rackloop-held"}[kind]
    assert shown in tell(one, file, SERVER, "nft list tables; ls /run")


@pytest.mark.nightly
def test_it_is_healed_once(one: CommandLine, file: Path, lab: Lab) -> None:
    with closing(open_lab_store(lab, LabState(one.state_home / "labs" / lab.name), CLOCK)) as store:
        left_standing = Journal(store).standing(lab.name)
        # Both faults, and whatever it took to make them.
        assert len(left_standing) >= 2
        healed = one("heal", file)
        assert (healed.status, f"{len(left_standing)} acts undone" in healed.out) == (0, True), healed
        assert Journal(store).standing(lab.name) == []
    left = tell(one, file, SERVER, "nft list tables; ls /run /var/lib/rackloop/faults/*; cat /proc/self/cgroup")
    assert "rackloop" not in left.replace("/var/lib/rackloop", "")


@pytest.mark.nightly  # It boots, as after a loss of power.
def test_a_kernel_that_panicked_at_an_interrupt_is_given_a_new_start_by_heal(
    one: CommandLine, file: Path, lab: Lab, faults: Faults
) -> None:
    before = boot_of(one, file)
    faults.begin(FaultSpec("server_nmi", SERVER))
    assert "Kernel panic - not syncing: NMI: Not continuing" in console(one, file)
    state = LabState(one.state_home / "labs" / lab.name)
    with closing(open_lab_store(lab, state, CLOCK)) as store:
        assert len(Journal(store).standing(lab.name)) == 1
    (one.directory / "boot").write_text(before)


@pytest.mark.nightly
def test_it_has_booted_once_heal_ends(one: CommandLine, file: Path) -> None:
    healed = one("heal", file)
    assert (healed.status, "1 act undone" in healed.out) == (0, True), healed
    assert boot_of(one, file) != (one.directory / "boot").read_text()
