"""The parts of a mock server's /sys apart from its drives, for tools that look at the machine."""

from __future__ import annotations

from rackloop_labs.mock_hosts._tree import Tree

_LOOPBACK = "devices/virtual/net/lo"


def add_machine(tree: Tree, server: str, cpus: int) -> None:
    """DMI, the loopback interface, processors: as much as Ansible gathers facts from."""
    dmi = "devices/virtual/dmi/id"
    tree.files(
        dmi,
        {
            "bios_date": "01/01/2026",
            "bios_vendor": "Rackloop",
            "bios_version": "1",
            "board_name": "Mock server",
            "board_vendor": "Rackloop",
            "chassis_type": 23,
            "chassis_vendor": "Rackloop",
            "product_name": "Mock server",
            "product_serial": server,
            "product_version": "1",
            "sys_vendor": "Rackloop",
        },
    )
    tree.member(dmi, "class/dmi")
    tree.files(
        _LOOPBACK,
        {"address": "00:00:00:00:00:00", "flags": "0x9", "mtu": 65536, "operstate": "unknown", "type": 772},
    )
    tree.member(_LOOPBACK, "class/net")
    every = "0" if cpus == 1 else f"0-{cpus - 1}"
    tree.files("devices/system/cpu", {"online": every, "possible": every, "present": every})
    tree.files("devices/system/node", {"online": 0, "possible": 0})
