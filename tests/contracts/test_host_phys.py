"""The PHYs of servers keep the contracts of what takes signals away: by sysfs and by SMP, mock servers and real."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager

import pytest

from rackloop.abilities import PortState
from rackloop.contracts import link_reset as reset_contract
from rackloop.contracts import phy_control as phy_contract
from rackloop.errors import LabError, NotSupported
from rackloop.lab import Lab, load_lab
from rackloop_drivers.host import SshAccess, SshHost
from rackloop_drivers.host_tools import HostFaults
from rackloop_drivers.phy import HostPhy, HostPhys, PhySwitchedOff, PhyVia
from rackloop_labs import ssh_accesses
from tests.deadlines import CLOCK, soon
from tests.mock_rack import MockRack

REAL = "RACKLOOP_REAL_SAS_LAB"


class Arm:
    """A lab whose servers take the signal of their ports away."""

    def __init__(
        self, lab: Lab, accesses: Mapping[str, SshAccess], hosts: Mapping[str, SshHost], ports: Mapping[int, HostPhy]
    ) -> None:
        self.drives = {name: drive.serial for name, drive in lab.drives.items()}
        self.accesses = accesses
        self.hosts = hosts
        self.ports = ports
        self.behind = dict.fromkeys(ports, self.drives)

    @contextmanager
    def phy(self, via: PhyVia) -> Iterator[phy_contract.PhyArm]:
        yield phy_contract.PhyArm(HostPhys(self.ports, via, drives=self.behind), tuple(self.ports))

    @contextmanager
    def reset(self, via: PhyVia) -> Iterator[reset_contract.ResetArm]:
        phys = HostPhys(self.ports, via, drives=self.behind)
        ports = tuple(self.ports)
        yield reset_contract.ResetArm(
            phys, ports, lambda: phys.drop_counts(ports, soon()), lambda: phys.port_states(ports, soon())
        )


@pytest.fixture(scope="module", params=["mock", "real"])
def arm(request: pytest.FixtureRequest) -> Iterator[Arm]:
    if request.param == "real":
        if (name := os.environ.get(REAL)) is None:
            pytest.skip(f"no SAS HBA to try: set {REAL} to the description of a lab nobody uses, with paths of its HBA")
        lab = load_lab(name)
        with reaching(lab, ssh_accesses(lab), {name: server.paths for name, server in lab.servers.items()}) as arm:
            yield arm
    else:
        rack: MockRack = request.getfixturevalue("direct_rack")
        address = rack.says("node2", "cat /sys/class/sas_device/expander-0:0/sas_address").strip()
        # A SAS drive, and on another server an expander: the HBA of a SATA drive takes no SMP.
        paths = {"node1": {"p2": "pci-0000:12:00.0"}, "node2": {"p0": f"pci-0000:10:00.0-sas-exp{address}"}}
        with reaching(rack.lab, ssh_accesses(rack.lab, rack.endpoints), paths) as arm:
            yield arm


@contextmanager
def reaching(lab: Lab, accesses: Mapping[str, SshAccess], paths: Mapping[str, Mapping[str, str]]) -> Iterator[Arm]:
    """The PHYs of ports by their paths, numbered from 1."""
    with ExitStack() as stack:
        hosts = {name: stack.enter_context(SshHost(access, CLOCK)) for name, access in accesses.items()}
        phys = (HostPhy(hosts[name], path) for name, ports in paths.items() for path in ports.values())
        yield Arm(lab, accesses, hosts, dict(enumerate(phys, start=1)))


@pytest.mark.parametrize("via", PhyVia)
@pytest.mark.parametrize("clause", phy_contract.CONTRACT, ids=lambda clause: clause.__name__)
def test_phy_control(clause: Callable[[phy_contract.PhyFactory], None], arm: Arm, via: PhyVia) -> None:
    clause(lambda: arm.phy(via))


@pytest.mark.parametrize("via", PhyVia)
@pytest.mark.parametrize("clause", reset_contract.CONTRACT, ids=lambda clause: clause.__name__)
def test_link_reset(clause: Callable[[reset_contract.ResetFactory], None], arm: Arm, via: PhyVia) -> None:
    clause(lambda: arm.reset(via))


def _becomes(phys: HostPhys, port: int, state: PortState) -> None:
    deadline = soon()
    while (now := phys.port_states([port], deadline)[port]) is not state:
        assert not deadline.is_over(), f"port {port} is still {now}"


def test_a_signal_comes_back_when_nobody_is_left_to_give_it(arm: Arm) -> None:
    """The server gives it back by itself: the connection that took it is gone."""
    port, phy = next(iter(arm.ports.items()))
    with SshHost(arm.accesses[phy.host.name], CLOCK) as host:
        HostPhys({port: HostPhy(host, phy.path)}, drives=arm.behind).drop(
            [port], 0.3, soon(), request_id=CLOCK.now_ns()
        )
    _becomes(HostPhys(arm.ports, drives=arm.behind), port, PortState.UP)


def test_a_drop_is_ended_early(arm: Arm) -> None:
    port = next(iter(arm.ports))
    phys = HostPhys(arm.ports, drives=arm.behind)
    phys.drop([port], 600, soon(), request_id=CLOCK.now_ns())
    assert phys.port_states([port], soon()) == {port: PortState.DOWN}
    phys.restore([port], soon())
    _becomes(phys, port, PortState.UP)


def test_a_flap_is_ended_early(arm: Arm) -> None:
    port = next(iter(arm.ports))
    phys = HostPhys(arm.ports, drives=arm.behind)
    phys.flap([port], 0.01, 0.01, 10_000, soon(), request_id=CLOCK.now_ns())
    phys.restore([port], soon())
    # The next one waits until this is over.
    before = phys.drop_counts([port], soon())[port]
    phys.drop([port], 0.01, soon(), request_id=CLOCK.now_ns())
    assert phys.drop_counts([port], soon())[port] == before + 1
    _becomes(phys, port, PortState.UP)


def test_a_drop_that_is_over_ends_nothing_but_itself(arm: Arm) -> None:
    """Whoever ends it late finds the PHY switched off by another fault, and neither of the two by the other."""
    port, phy = next(iter(arm.ports.items()))
    phys = HostPhys(arm.ports, drives=arm.behind)
    off = HostFaults(phy.host, "phy:test", PhySwitchedOff(phy, arm.drives))
    phys.drop([port], 600, soon(), request_id=CLOCK.now_ns())
    with pytest.raises(LabError, match=r"a drop or a flap of .* goes on: end that first"):
        off.break_as("test/1", {"kind": "disabled"}, soon())
    phys.restore([port], soon())
    _becomes(phys, port, PortState.UP)
    # The next one waits until the first is over.
    phys.drop([port], 0.01, soon(), request_id=CLOCK.now_ns())
    _becomes(phys, port, PortState.UP)
    deadline = soon()
    while True:
        try:
            off.break_as("test/1", {"kind": "disabled"}, soon())
            break
        except LabError:
            assert not deadline.is_over()
    phys.restore([port], soon())
    assert set(off.standing(soon())) == {"test/1"}
    with pytest.raises(LabError, match="is switched off: end that first"):
        phys.drop([port], 0.01, soon(), request_id=CLOCK.now_ns())
    off.mend("test/1", soon())
    _becomes(phys, port, PortState.UP)


def test_a_port_without_sas_phys_says_so(arm: Arm) -> None:
    host = next(iter(arm.hosts.values()))
    with pytest.raises(NotSupported, match="has no SAS PHYs"):
        HostPhys({1: HostPhy(host, "pci-0000:77:00.0")}).drop([1], 0.01, soon(), request_id=1)
    with pytest.raises(LabError, match="no PCI address"):
        HostPhys({1: HostPhy(host, "platform-1")}).drop([1], 0.01, soon(), request_id=1)
