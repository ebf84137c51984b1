"""The description of a lab: its rack, its drives, its wiring, and the state it keeps on this machine."""

from typing import TYPE_CHECKING

from rackloop.lazy_exports import lazy_getattr

if TYPE_CHECKING:
    from rackloop.lab._drive_match import mismatches, once_online
    from rackloop.lab._lab_file import check_files, find_lab, json_schema, load_lab
    from rackloop.lab._profiles import Profile, Published, load_profile, profile_names
    from rackloop.lab._rack import (
        Bmc,
        BmcDriver,
        Control,
        Drive,
        Expander,
        Fabric,
        FabricDriver,
        JumpHost,
        Lab,
        LabKind,
        Pdu,
        PduDriver,
        Server,
        Stack,
    )
    from rackloop.lab._secret import EnvironmentSecret, FileSecret, Secret, VaultSecret
    from rackloop.lab._state import LabState, keep_text, state_root

__all__ = [
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
    "Pdu",
    "PduDriver",
    "Profile",
    "Published",
    "Secret",
    "Server",
    "Stack",
    "VaultSecret",
    "check_files",
    "find_lab",
    "json_schema",
    "keep_text",
    "load_lab",
    "load_profile",
    "mismatches",
    "once_online",
    "profile_names",
    "state_root",
]

__getattr__ = lazy_getattr(
    __name__,
    {
        "Bmc": "_rack",
        "BmcDriver": "_rack",
        "Control": "_rack",
        "Drive": "_rack",
        "EnvironmentSecret": "_secret",
        "Expander": "_rack",
        "Fabric": "_rack",
        "FabricDriver": "_rack",
        "FileSecret": "_secret",
        "JumpHost": "_rack",
        "Lab": "_rack",
        "LabKind": "_rack",
        "LabState": "_state",
        "Pdu": "_rack",
        "PduDriver": "_rack",
        "Profile": "_profiles",
        "Published": "_profiles",
        "Secret": "_secret",
        "Server": "_rack",
        "Stack": "_rack",
        "VaultSecret": "_secret",
        "check_files": "_lab_file",
        "find_lab": "_lab_file",
        "json_schema": "_lab_file",
        "keep_text": "_state",
        "load_lab": "_lab_file",
        "load_profile": "_profiles",
        "mismatches": "_drive_match",
        "once_online": "_drive_match",
        "profile_names": "_profiles",
        "state_root": "_state",
    },
)
