"""Fixed cabling as a :class:`~rackloop.abilities.Fabric`, so that tests which need a switch can say why they skip."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import NoReturn

from rackloop.abilities import Applied, BoxIdentity, LiveMap, PortState, Staged
from rackloop.clock import Deadline
from rackloop.errors import NotSupported
from rackloop.portmap import MapChange, PortMap

_Signals = Callable[[Collection[int], Deadline], dict[int, PortState]]


class StaticFabric:
    """The cables of a rack that has no switch. ``cabling`` is what joins what, by numbers of the cables' ends.

    The live map and the boot map are the cabling, at generation 0 for ever. ``signals`` says of ends whether they have
    a signal, where that is known. Whatever needs a switch raises :class:`~rackloop.errors.NotSupported`.
    """

    def __init__(self, cabling: PortMap, signals: _Signals | None = None) -> None:
        self._cabling = cabling
        self._signals = signals

    def identify(self, deadline: Deadline) -> BoxIdentity:  # noqa: ARG002 - an ability's signature
        """Cables, which have no serial number."""
        return BoxIdentity("none", "fixed cabling", "none", "none")

    def port_count(self, deadline: Deadline) -> int:  # noqa: ARG002 - an ability's signature
        """The highest number a cable's end has."""
        return max(self._cabling.ports(), default=0)

    def live_map(self, deadline: Deadline) -> LiveMap:  # noqa: ARG002 - an ability's signature
        """The cabling."""
        return LiveMap(0, self._cabling)

    def apply(self, change: MapChange, deadline: Deadline, *, on: LiveMap | None = None) -> Applied:  # noqa: ARG002
        """Cables cannot be switched."""
        _refuse("its ports cannot be mapped anew")

    def stage(self, change: MapChange, deadline: Deadline, *, on: LiveMap | None = None) -> Staged:  # noqa: ARG002
        """Cables cannot be switched."""
        _refuse("its ports cannot be mapped anew")

    def trigger(self, staged: Staged, deadline: Deadline) -> Applied:  # noqa: ARG002 - an ability's signature
        """Cables cannot be switched."""
        _refuse("its ports cannot be mapped anew")

    def port_states(self, ports: Collection[int], deadline: Deadline) -> dict[int, PortState]:
        """The states that the ends of the cables report; cables themselves do not report."""
        if self._signals is None:
            _refuse("nothing reports the state of its ports")
        return self._signals(ports, deadline)

    def take_lock(self, token: int, deadline: Deadline) -> None:  # noqa: ARG002 - an ability's signature
        """Cables need no controller."""
        _refuse("there is no switch to lock")

    def release_lock(self, token: int, deadline: Deadline) -> None:  # noqa: ARG002 - an ability's signature
        """Cables need no controller."""
        _refuse("there is no switch to lock")

    def save_boot_map(self, deadline: Deadline) -> None:  # noqa: ARG002 - an ability's signature
        """Cables keep themselves."""
        _refuse("its map cannot be saved")

    def boot_map(self, deadline: Deadline) -> PortMap:  # noqa: ARG002 - an ability's signature
        """The cabling, which a power cycle does not change."""
        return self._cabling

    def close(self) -> None:
        """Nothing is held."""


def _refuse(reason: str) -> NoReturn:
    raise NotSupported(f"this rack has fixed cabling: {reason}")
