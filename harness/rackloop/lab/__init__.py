"""The description of a lab: its rack, its drives, its wiring, and the state it keeps on this machine."""

from typing import TYPE_CHECKING

from rackloop.lazy_exports import lazy_getattr

if TYPE_CHECKING:
    from rackloop.lab._drive_match import mismatches, once_online
    from rackloop.lab._hardware import (
        Bmc,
        BmcDriver,
        Control,
        Drive,
        Expander,
        Fabric,
        FabricDriver,
        JumpHost,
        Pdu,
        PduDriver,
        Server,
        Stack,
    )
    from rackloop.lab._lab_file import check_files, find_lab, json_schema, load_lab
    from rackloop.lab._parts import WHOLE_RACK, Part, PartKind, Parts
    from rackloop.lab._profiles import Profile, Published, load_profile, profile_names
    from rackloop.lab._rack import Lab, LabKind
    from rackloop.lab._reach import (
        acted_on,
        circuit,
        fed_by,
        parts_at,
        parts_for,
        parts_of,
        phy_number,
        phy_part,
        reach_of,
        server_port_of,
        server_ports,
        switch_port_of,
        wired_at,
    )
    from rackloop.lab._secret import EnvironmentSecret, FileSecret, Secret, VaultSecret
    from rackloop.lab._state import LabState, keep_text, state_root

__all__ = [
    "WHOLE_RACK",
    "Bmc",
    "BmcDriver",
    "Control",
    "Drive",
    "EnvironmentSecret",
    "Expander",
    "Fabric",
    "FabricDriver",
    "FileSecret",
    "JumpHost",
    "Lab",
    "LabKind",
    "LabState",
    "Part",
    "PartKind",
    "Parts",
    "Pdu",
    "PduDriver",
    "Profile",
    "Published",
    "Secret",
    "Server",
    "Stack",
    "VaultSecret",
    "acted_on",
    "check_files",
    "circuit",
    "fed_by",
    "find_lab",
    "json_schema",
    "keep_text",
    "load_lab",
    "load_profile",
    "mismatches",
    "once_online",
    "parts_at",
    "parts_for",
    "parts_of",
    "phy_number",
    "phy_part",
    "profile_names",
    "reach_of",
    "server_port_of",
    "server_ports",
    "state_root",
    "switch_port_of",
    "wired_at",
]

__getattr__ = lazy_getattr(__name__)
