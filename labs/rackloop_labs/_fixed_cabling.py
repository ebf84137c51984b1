"""Racks without a switch: their cables by number; and the HBA ports of servers that may have SAS PHYs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import count
from typing import TypeVar

from rackloop.lab import Drive, Expander, Fabric, Lab

CABLES = "cables"
"""The driver of the switch that fixed cables are taken for: it joins them, and takes no command."""

# AHCI ports have no SAS PHYs, and with the PHYs that lead to an expander all that is in it would go.
_NO_PHY = re.compile(r"-ata-|-sas-exp0x[0-9a-f]+-")
_Plugged = TypeVar("_Plugged", Drive, Expander)


def numbered(lab: Lab) -> Lab:
    """The same rack as if its fixed cables went through a switch that joins them: every end of a cable has a number.

    HBA ports are numbered from 1 in the order of the description, what is attached to them after the last of these.
    A rack that has a switch is given back as it is.
    """
    if lab.has_switch:
        return lab
    numbers = count(1)
    servers = {
        name: server.model_copy(update={"ports": {port: next(numbers) for port in server.ports}})
        for name, server in lab.servers.items()
    }

    def at_switch(plugged: Mapping[str, _Plugged]) -> dict[str, _Plugged]:
        return {
            name: thing.model_copy(update={"port": next(numbers), "attached": None}) if thing.attached else thing
            for name, thing in plugged.items()
        }

    update = {
        "servers": servers,
        "drives": at_switch(lab.drives),
        "expanders": at_switch(lab.expanders),
        "baseline": {name: dict(lab.joined(name)) for name in lab.servers},
        "fabric": Fabric.model_construct(driver=CABLES, ports=next(numbers)),
    }
    return lab.model_copy(update=update)


def sas_ports(lab: Lab) -> dict[tuple[str, str], str]:
    """The paths of the HBA ports that may have SAS PHYs of their own.

    Those of an AHCI or NVMe controller have none, and places inside an expander have none of the HBA's.
    """
    found = {}
    for name, server in lab.servers.items():
        for port, far in lab.joined(name).items():
            path = server.paths.get(port, "")
            is_nvme = far in lab.drives and lab.drives[far].traits.protocol == "nvme"
            if path and not _NO_PHY.search(path) and not is_nvme:
                found[name, port] = path
    return found
