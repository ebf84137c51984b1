"""Servers whose kernel panics by request, and which are given a new start by their power."""

from rackloop_drivers.crash._crash import RESTARTED as RESTARTED
from rackloop_drivers.crash._crash import HostCrash as HostCrash
from rackloop_drivers.crash._crash import NoteRestart as NoteRestart
from rackloop_drivers.crash._crash import RestartNote as RestartNote
from rackloop_drivers.crash._server_faults import ServerFaults as ServerFaults
