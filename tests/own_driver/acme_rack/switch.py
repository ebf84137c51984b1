"""A circuit switch that ACME sells under its own name: the reference switch in racks of its own."""

from __future__ import annotations

from typing import Annotated

from rackloop.lab.yaml import whole
from rackloop_drivers.fabric.flexfabric import FlexFabricDriver


class AcmeSwitchDriver(FlexFabricDriver):
    """The switch of ACME."""

    shelf: Annotated[int, whole(1, 9)]
    """The shelf of the switch's cabinet that is ours."""
