"""The parts whose links or power a test's own acts took away, and those that they broke."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rackloop.lab import Part, PartKind, Parts, fed_by, phy_part, reach_of, wired_at
from rackloop.portmap import Pair
from rackloop.record import acts

if TYPE_CHECKING:
    from rackloop.lab import Lab
    from rackloop.safety.undo import Entry

_LINKED = frozenset({PartKind.PORT, PartKind.DRIVE})
_SILENT = frozenset(
    f"kernel.{name}"
    for name in ("stall", "command_timeout", "controller_reset", "io_error", "link_slow", "target_error")
)
_UNREADABLE = frozenset(
    {
        "critical_warning",
        "grown_defects",
        "media_errors",
        "pending_sectors",
        "reallocated",
        "reallocated_sectors",
        "uncorrectable_errors",
        "kernel.medium_error",
        "kernel.io_error",
    }
)

BROKEN_BY: Mapping[str, frozenset[str]] = {
    "media_error": _UNREADABLE,
    "dead": frozenset({"kernel.io_error", "kernel.target_error", "kernel.controller_reset"}),
    "hang": _SILENT | {"kernel.link_lost"},
    "slow": _SILENT,
    "crash_on_remap": _SILENT | {"kernel.link_lost"},
}
"""The rules that each fault of a drive breaks, by the kind its part gives it; one that is silent breaks none."""

# What QEMU's drives say of a request that comes back failed, for a link that is down, a hang that ended, a drive
# that is dead or a bad sector: NVMe that a sector cannot be read, SAS that the command was aborted.
_SAID_FAILED: Mapping[str, frozenset[str]] = {
    "QEMU NVMe Ctrl": frozenset({"kernel.medium_error"}),
    "QEMU QEMU HARDDISK": frozenset({"kernel.target_error"}),
}
_FAILS_REQUESTS = frozenset({"dead", "hang", "media_error"})
# An array that a test has a server make, journalled as faults are, takes no link.
_LEAVES_LINKS = frozenset({"md_array"})


@dataclass(frozen=True)
class Disturbed:
    """The server ports and drives that lost their link by a test's own acts, and the servers and drives without power.

    ``broken`` has the rules that the faults made break by their nature: those in drives by drive and by server port
    that it was reached through, those in servers by server.
    """

    linked: Parts = Parts()  # noqa: RUF009 - it never changes
    powered: Parts = Parts()  # noqa: RUF009
    broken: Mapping[Part, frozenset[str]] = field(default_factory=dict)


def disturbed(lab: Lab, entries: Iterable[Entry]) -> Disturbed:
    """The parts of ``lab`` that the acts of ``entries``, and those that undo them, reach.

    A circuit that was made or broken reaches what is at both ends, a PHY that was dropped also what it was or may have
    been joined to, a server's power its links, a drive's power the drive, the switch's power every link. A fault
    reaches what its part is: a drive, a server that crashes as if its power were cut, the links of a port.
    """
    made = list(entries)
    reach = _Reach(lab, made)
    for entry in made:
        reach.add(entry)
    linked = Parts(part for part in reach.linked if part.kind in _LINKED)
    if said := frozenset[str]().union(*(_SAID_FAILED.get(lab.drives[name].model, ()) for name in linked.drives)):
        reach.broken |= {part: reach.broken.get(part, frozenset()) | said for part in linked}
    return Disturbed(linked, reach.powered, reach.broken)


class _Reach:
    """The reach of acts through every circuit that the baseline has, or that an act made or its undoing gives back."""

    def __init__(self, lab: Lab, made: Iterable[Entry]) -> None:
        self._lab = lab
        changes = [(entry.what, entry.inverse) for entry in made if entry.ability == "fabric"]
        given_back = [act for _, inverse in changes for act in inverse]
        changed = [act.change for act, _ in changes if isinstance(act, acts.ChangeMap)]
        self._circuits: set[Pair] = set(lab.baseline_map()).union(*map(acts.inverse_pairs, [*given_back, *changed]))
        # The ports whose circuits a change of the map changed are those whose circuits its inverse gives back.
        undone = [undo for act, inverse in changes if isinstance(act, acts.ChangeMap) for undo in inverse]
        self.linked = wired_at(lab, set[int]().union(*map(acts.inverse_ports, undone)))
        self.powered = Parts()
        self.broken: dict[Part, frozenset[str]] = {}

    def add(self, entry: Entry) -> None:
        """Add what one act reaches."""
        match entry.what:
            case acts.DropSignal(ports) | acts.FlapSignal(ports) | acts.ResetLink(ports):
                for number in ports:
                    self._link(phy_part(self._lab, number))
            case acts.TurnOn() if acts.RestorePower(on=False) in entry.inverse:
                self._power(entry.part)
            case acts.TurnOff() if acts.RestorePower(on=True) in entry.inverse:
                self._power(entry.part)
            case acts.BreakPart(fault=fault):
                self._break(entry.part, fault)

    def _link(self, part: Part) -> None:
        self.linked |= reach_of(self._lab, part, self._circuits)

    def _break(self, part: Part, fault: Mapping[str, Any]) -> None:
        match part.kind:
            case PartKind.DRIVE:
                rules = BROKEN_BY.get(fault["kind"], frozenset())
                if fault["kind"] in _FAILS_REQUESTS:
                    rules |= _SAID_FAILED.get(self._lab.drives[part.name].model, frozenset())
                for reached in (found for found in reach_of(self._lab, part, self._circuits) if found.kind in _LINKED):
                    self.broken[reached] = self.broken.get(reached, frozenset()) | rules
            case PartKind.SERVER if fault["kind"] in {"crash", "nmi"}:
                self.broken[part] = frozenset({"kernel.panic", "kernel.oops"})
                self._power(part)
            case PartKind.SERVER if fault["kind"] not in _LEAVES_LINKS:
                self.linked |= [Part.port(part.name, port) for port in self._lab.servers[part.name].ports]
            case PartKind.CABLING:
                for number in fault["ports"]:
                    self._link(Part.switch_port(number))
            case PartKind.SWITCH_PORT | PartKind.SLOT | PartKind.PHY:
                self._link(part)
                if fault["kind"] in {"slot_power_off", "device_off"}:
                    self.powered |= map(Part.drive, reach_of(self._lab, part).drives)

    def _power(self, part: Part) -> None:
        match part.kind:
            case PartKind.SWITCH:
                self.linked |= wired_at(self._lab, (port for pair in self._circuits for port in pair))
            case PartKind.SERVER:
                self.powered |= [part]
                self._link(part)
            case PartKind.OUTLET:
                for server in fed_by(self._lab, part):
                    self._power(Part.server(server))
            case PartKind.DRIVE:
                self.powered |= [part]
                # A drive in an expander leaves the expander's link up.
                is_alone = self._lab.drives[part.name].expander is None
                self.linked |= reach_of(self._lab, part, self._circuits) if is_alone else [part]
