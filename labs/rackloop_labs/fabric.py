"""The fabric of a rack, and what takes the signal from its ports, by its description."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from rackloop.abilities import Host, PortState
from rackloop.lab import Lab, Phy, load_driver
from rackloop_drivers.boxes import FabricDriver, FabricOpening, OpenedFabric, PhyDriver, PhyOpening, SignalReporter
from rackloop_labs._fixed_cabling import numbered, sas_ports


def open_fabric(
    lab: Lab,
    hosts: Mapping[str, Host],
    opening: FabricOpening,
    *,
    switch: Mapping[str, Any] | None = None,
    phy: Mapping[str, Any] | None = None,
) -> OpenedFabric:
    """The fabric of ``lab``, and what takes the signal from its ports.

    That is what the description names as ``phy``, else what the fabric brings, else, without a switch, the SAS PHYs of
    the servers. ``lab`` has the paths of the ports that are to be reached. ``switch`` and ``phy`` say where simulated
    ones answer.
    """
    wired = numbered(lab)
    paths = {wired.switch_port(*at): (at[0], path) for at, path in sas_ports(lab).items()}
    to_phys = PhyOpening(opening.clock, opening.closing, wired, hosts, paths)
    chosen = None if lab.phy is None else PhyDriver.of(lab.phy, phy).open(to_phys)
    if not lab.has_switch:
        own = PhyDriver.of(load_driver(Phy, "host").model_validate({"driver": "host"})).open(to_phys)
        opening = replace(opening, cabling=wired.baseline_map(), signals=_signals(own, chosen))
        chosen = own if chosen is None else chosen
    opened = FabricDriver.of(lab.fabric, switch).open(opening)
    return opened if chosen is None else opened._replace(phy=chosen)


def _signals(*phys: object) -> Callable[..., dict[int, PortState]] | None:
    """The first method among those of ``phys`` that tells whether ports have a signal."""
    return next((phy.port_states for phy in phys if isinstance(phy, SignalReporter)), None)
