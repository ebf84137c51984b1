"""The description of a lab: its rack, its drives, its wiring, and the state it keeps on this machine."""

from typing import TYPE_CHECKING

from rackloop.lazy_exports import lazy_getattr

if TYPE_CHECKING:
    from rackloop.lab._drive_match import mismatches as mismatches
    from rackloop.lab._drive_match import once_online as once_online
    from rackloop.lab._driver import Driven as Driven
    from rackloop.lab._driver import load_driver as load_driver
    from rackloop.lab._driver import registered_drivers as registered_drivers
    from rackloop.lab._hardware import Bmc as Bmc
    from rackloop.lab._hardware import Drive as Drive
    from rackloop.lab._hardware import Expander as Expander
    from rackloop.lab._hardware import Fabric as Fabric
    from rackloop.lab._hardware import JumpHost as JumpHost
    from rackloop.lab._hardware import Pdu as Pdu
    from rackloop.lab._hardware import Phy as Phy
    from rackloop.lab._hardware import Place as Place
    from rackloop.lab._hardware import SerialConsole as SerialConsole
    from rackloop.lab._hardware import Server as Server
    from rackloop.lab._hardware import Stack as Stack
    from rackloop.lab._lab_file import check_files as check_files
    from rackloop.lab._lab_file import find_lab as find_lab
    from rackloop.lab._lab_file import json_schema as json_schema
    from rackloop.lab._lab_file import load_lab as load_lab
    from rackloop.lab._parts import WHOLE_RACK as WHOLE_RACK
    from rackloop.lab._parts import Part as Part
    from rackloop.lab._parts import PartKind as PartKind
    from rackloop.lab._parts import Parts as Parts
    from rackloop.lab._profiles import Profile as Profile
    from rackloop.lab._profiles import ProfileName as ProfileName
    from rackloop.lab._profiles import Published as Published
    from rackloop.lab._profiles import load_profile as load_profile
    from rackloop.lab._profiles import profile_names as profile_names
    from rackloop.lab._rack import Lab as Lab
    from rackloop.lab._rack import LabKind as LabKind
    from rackloop.lab._reach import acted_on as acted_on
    from rackloop.lab._reach import fed_by as fed_by
    from rackloop.lab._reach import feeds_switch as feeds_switch
    from rackloop.lab._reach import parts_at as parts_at
    from rackloop.lab._reach import parts_for as parts_for
    from rackloop.lab._reach import parts_of as parts_of
    from rackloop.lab._reach import phy_number as phy_number
    from rackloop.lab._reach import phy_part as phy_part
    from rackloop.lab._reach import reach_of as reach_of
    from rackloop.lab._reach import server_port_of as server_port_of
    from rackloop.lab._reach import server_ports as server_ports
    from rackloop.lab._reach import switch_port_of as switch_port_of
    from rackloop.lab._reach import wired_at as wired_at
    from rackloop.lab._secret import EnvironmentSecret as EnvironmentSecret
    from rackloop.lab._secret import FileSecret as FileSecret
    from rackloop.lab._secret import Secret as Secret
    from rackloop.lab._secret import VaultSecret as VaultSecret
    from rackloop.lab._secret import environment_for_programs as environment_for_programs
    from rackloop.lab._secret_reference import SecretReference as SecretReference
    from rackloop.lab._state import LabState as LabState
    from rackloop.lab._state import state_root as state_root
    from rackloop.lab._times import TimeName as TimeName

__getattr__ = lazy_getattr(__name__)
