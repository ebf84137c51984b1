"""Every filter of a fabric keeps the contract of a fabric, on the ports that it shows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pytest

from rackloop.abilities import Fabric, FabricFilter, HiddenPorts
from rackloop.clock import Deadline
from rackloop.contracts import fabric as fabric_contract
from rackloop.errors import BadInput, NotSupported
from rackloop.portmap import PortMap
from rackloop.safety.leases import HeldLease, Leases, fenced, holding
from rackloop.safety.store import open_store
from rackloop.safety.undo import ActRecorder, Journal, JournalledFabric
from rackloop_drivers.fabric.flexfabric import FlexFabric, open_flexfabric
from tests.deadlines import CLOCK
from tests.parts import parts
from tests.switch_in_memory import switch_in_memory, tcp
from tests.unit.harness.sim_rack import described

# The clauses leave these alone, but for the one that uses every port.
HIDDEN = frozenset({1, 2})
OTHERS = PortMap.of([(1, 2)])
USES_EVERY_PORT = "carries_as_many_pairs_as_it_has_ports_for"
# No lease has a port that the switch has not.
NAMES_NO_PORT = "refuses_a_bad_map_whole_and_goes_on"
OF_THE_WHOLE_SWITCH = {
    "grants_the_lock_to_no_lower_token",
    "grants_the_same_token_again",
    "hands_the_lock_to_a_higher_token",
    "refuses_changes_without_the_token",
    "keeps_the_lock_when_a_connection_ends",
    "saves_the_boot_map",
}


@dataclass
class Rack:
    """A switch peer and a store beside it."""

    url: str
    folder: Path
    stack: ExitStack

    def switch(self) -> FlexFabric:
        """The switch, by a session of its own."""
        session = open_flexfabric(self.url, CLOCK, Deadline.after(CLOCK, 20), answer_within_s=5)
        self.stack.callback(session.close)
        return FlexFabric(session)

    def plain(self) -> Fabric:
        """Everything passed on."""
        return FabricFilter(self.switch())

    def in_service(self) -> Fabric:
        """Without the ports of what is out of service."""
        return HiddenPorts(self.switch(), HIDDEN.__contains__, _refused, strict=False)

    def leased(self) -> Fabric:
        """The ports of a lease, each act locked for itself."""
        return fenced(self.switch(), None, self.held)[0]

    @cached_property
    def held(self) -> HeldLease:
        """A lease of the ports that are not hidden."""
        store = self.stack.enter_context(closing(open_store(self.folder / "store.sqlite", CLOCK)))
        return self.stack.enter_context(holding(Leases(store, "bench"), parts(ports=range(3, 161))))

    def journalled(self) -> Fabric:
        """Every act in the undo journal."""
        return self._journalled(self.switch())

    def journalled_in_service(self) -> Fabric:
        """The filters of a real run, one over the other."""
        return self._journalled(self.in_service())

    def _journalled(self, fabric: Fabric) -> Fabric:
        store = self.stack.enter_context(closing(open_store(self.folder / "journal.sqlite", CLOCK)))
        lab = described(self.folder)
        return JournalledFabric(fabric, ActRecorder(lab, Journal(store), "run-1", disturbs=frozenset(lab.drives)))


def _refused(ports: list[int]) -> BadInput:
    return BadInput(f"ports {ports} are hidden")


@pytest.fixture
def rack(tmp_path: Path) -> Iterator[Rack]:
    with switch_in_memory(OTHERS) as thread, ExitStack() as stack:
        yield Rack(tcp(thread), tmp_path, stack)


@pytest.mark.parametrize("clause", fabric_contract.CONTRACT, ids=lambda clause: clause.__name__)
@pytest.mark.parametrize("make", [Rack.plain, Rack.journalled], ids=lambda make: make.__name__)
def test_a_filter_that_shows_every_port(
    clause: Callable[[fabric_contract.FabricFactory], None], make: Callable[[Rack], Fabric], rack: Rack
) -> None:
    clause(lambda: make(rack))


@pytest.mark.parametrize("clause", fabric_contract.CONTRACT, ids=lambda clause: clause.__name__)
@pytest.mark.parametrize("make", [Rack.in_service, Rack.leased, Rack.journalled_in_service], ids=lambda m: m.__name__)
def test_a_filter_that_hides_ports_leaves_their_circuits(
    clause: Callable[[fabric_contract.FabricFactory], None], make: Callable[[Rack], Fabric], rack: Rack
) -> None:
    name = clause.__name__
    if name == USES_EVERY_PORT or (make is Rack.leased and name == NAMES_NO_PORT):
        with pytest.raises(BadInput, match=r"hidden|not in the lease"):
            clause(lambda: make(rack))
    elif make is Rack.leased and name in OF_THE_WHOLE_SWITCH:
        with pytest.raises(NotSupported, match="the switch is shared with other leases"):
            clause(lambda: make(rack))
    else:
        clause(lambda: make(rack))
    assert rack.switch().live_map(Deadline.after(CLOCK, 20)).pairs == OTHERS
