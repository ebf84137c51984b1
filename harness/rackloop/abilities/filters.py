"""A Fabric and a PhyControl that pass every call on to another, for those that change some calls to derive from."""

from __future__ import annotations

from collections.abc import Callable, Collection

from rackloop.abilities.fabric import Applied, BoxIdentity, Fabric, LiveMap, PortState, Staged, stager
from rackloop.abilities.phy import PhyControl
from rackloop.clock import Deadline
from rackloop.errors import RackloopError
from rackloop.portmap import Full, MapChange, Open, PortMap, disturbed_ports


class FabricFilter:
    """A Fabric and MapStager that passes every call on to ``fabric``."""

    def __init__(self, fabric: Fabric) -> None:
        self._fabric = fabric

    def identify(self, deadline: Deadline) -> BoxIdentity:
        """The identity that the switch reports."""
        return self._fabric.identify(deadline)

    def port_count(self, deadline: Deadline) -> int:
        """The number of its ports, all of them."""
        return self._fabric.port_count(deadline)

    def live_map(self, deadline: Deadline) -> LiveMap:
        """The map it carries now."""
        return self._fabric.live_map(deadline)

    def apply(self, change: MapChange, deadline: Deadline, *, on: LiveMap | None = None) -> Applied:
        """Make ``change``."""
        return self._fabric.apply(change, deadline, on=on)

    def stage(self, change: MapChange, deadline: Deadline, *, on: LiveMap | None = None) -> Staged:
        """Have the switch hold ``change`` ready. Raises NotSupported where it takes no map ahead."""
        return stager(self._fabric).stage(change, deadline, on=on)

    def trigger(self, staged: Staged, deadline: Deadline) -> Applied:
        """Execute what was staged."""
        return stager(self._fabric).trigger(staged, deadline)

    def port_states(self, ports: Collection[int], deadline: Deadline) -> dict[int, PortState]:
        """The states of ``ports``, as the switch sees them."""
        return self._fabric.port_states(ports, deadline)

    def take_lock(self, token: int, deadline: Deadline) -> None:
        """Take the control lock with a fencing token."""
        self._fabric.take_lock(token, deadline)

    def release_lock(self, token: int, deadline: Deadline) -> None:
        """Release the control lock."""
        self._fabric.release_lock(token, deadline)

    def save_boot_map(self, deadline: Deadline) -> None:
        """Keep the live map as the power-on map."""
        self._fabric.save_boot_map(deadline)

    def boot_map(self, deadline: Deadline) -> PortMap:
        """The power-on map."""
        return self._fabric.boot_map(deadline)

    def close(self) -> None:
        """Close the fabric beneath."""
        self._fabric.close()


class HiddenPorts(FabricFilter):
    """A Fabric without some of its ports: neither their circuits nor they themselves are shown or changed.

    ``refusal`` makes the error of a change that names hidden ports. Where the filter is ``strict`` a change that takes
    a circuit from a hidden port is refused too; else a shown port takes its new circuit from a hidden one.
    """

    def __init__(
        self,
        fabric: Fabric,
        is_hidden: Callable[[int], bool],
        refusal: Callable[[list[int]], RackloopError],
        *,
        strict: bool,
    ) -> None:
        super().__init__(fabric)
        self._is_hidden = is_hidden
        self._refusal = refusal
        self._is_strict = strict

    def live_map(self, deadline: Deadline) -> LiveMap:
        """The circuits between shown ports; the generation is the switch's."""
        live = self._fabric.live_map(deadline)
        return live.showing(self._shown(live.pairs))

    def apply(self, change: MapChange, deadline: Deadline, *, on: LiveMap | None = None) -> Applied:
        """Make ``change`` on the shown ports; a full map is one of these ports. Raises what ``refusal`` makes."""
        wanted, live = self._of_whole(change, deadline, on)
        return self._fabric.apply(wanted, deadline, on=live)

    def stage(self, change: MapChange, deadline: Deadline, *, on: LiveMap | None = None) -> Staged:
        """Stage ``change`` as :meth:`apply` would make it."""
        wanted, live = self._of_whole(change, deadline, on)
        return super().stage(wanted, deadline, on=live)

    def boot_map(self, deadline: Deadline) -> PortMap:
        """The power-on map between shown ports."""
        return self._shown(self._fabric.boot_map(deadline))

    def _of_whole(self, change: MapChange, deadline: Deadline, on: LiveMap | None) -> tuple[MapChange, LiveMap | None]:
        """``change`` as it is to be made on the whole switch, and the switch's map that it is computed on."""
        self._require_shown(change.ports if isinstance(change, Open) else change.pairs.ports())
        if not (self._is_strict or isinstance(change, Full)):
            return change, None if on is None else on.of_switch()
        live = self._fabric.live_map(deadline) if on is None else on.of_switch()
        if isinstance(change, Full):
            stays = all if self._is_strict else any
            needed = change.pairs.ports()
            kept = (p for p in live.pairs if stays(map(self._is_hidden, p)) and needed.isdisjoint(p))
            change = Full(PortMap.of((*kept, *change.pairs)))
        if self._is_strict:
            self._require_shown(disturbed_ports(live.pairs, change.after(live.pairs)))
        return change, live

    def _require_shown(self, ports: Collection[int]) -> None:
        if hidden := sorted(filter(self._is_hidden, ports)):
            raise self._refusal(hidden)

    def _shown(self, pairs: PortMap) -> PortMap:
        return pairs.without(filter(self._is_hidden, pairs.ports()))


class PhyFilter:
    """A PhyControl that passes every call on to ``phy``, those that take a signal away through :meth:`_act`."""

    def __init__(self, phy: PhyControl) -> None:
        self._phy = phy

    def drop(self, ports: Collection[int], down_s: float, deadline: Deadline, *, request_id: int) -> None:
        """Take the signal away from ``ports`` for ``down_s``."""
        self._act(ports, deadline, lambda: self._phy.drop(ports, down_s, deadline, request_id=request_id))

    def flap(
        self, ports: Collection[int], down_s: float, up_s: float, count: int, deadline: Deadline, *, request_id: int
    ) -> None:
        """Take the signal away from ``ports`` ``count`` times, ``up_s`` apart."""
        self._act(ports, deadline, lambda: self._phy.flap(ports, down_s, up_s, count, deadline, request_id=request_id))

    def drop_counts(self, ports: Collection[int], deadline: Deadline) -> dict[int, int]:
        """Drops seen on each port."""
        return self._phy.drop_counts(ports, deadline)

    def _act(self, _ports: Collection[int], _deadline: Deadline, act: Callable[[], None]) -> None:
        act()
