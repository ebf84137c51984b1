"""The abilities that a lab lacks by its description, known before anything is touched."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from rackloop.errors import NotSupported
from rackloop.lab import Lab, LabKind
from rackloop_labs.port_paths import untold
from rackloop_labs.scratch_ports import scratch_ports

Refusal = str | None

OF_FAULTS = "fault."
"""The prefix of abilities that stand for kinds of faults, each somewhere in the rack."""

OF_EQUIPMENT: Mapping[str, str] = {
    "expander.slots": "the slots of an expander are reached by themselves on mock racks only",
}
"""Abilities that a rack of equipment lacks, and why; the bench of such a rack refuses them in the same words."""


def _switched(lab: Lab) -> Refusal:
    return (
        None if lab.has_switch else f"the rack {lab.name} has fixed cabling: no switch remaps or drops anything in it"
    )


def _attached(lab: Lab) -> Refusal:
    return (
        f"the rack {lab.name} has a switch: servers break their own links and slots where drives are attached for good"
        if lab.has_switch
        else None
    )


def _reached(lab: Lab) -> Refusal:
    """A server's own tools find the drive at a port by the path that the description gives the port.

    Of a drive that is attached for good its own does. One that is not scratch no test reads, and those in an expander
    are found by their names.
    """
    if lab.has_switch:
        return untold(lab, {server: lab.joined(server) for server in lab.servers})
    return untold(lab, {server: scratch_ports(lab, server) for server in lab.servers})


def _by_kernel(does: str) -> Callable[[Lab], Refusal]:
    """The refusal of what a kernel ``does`` with block devices of its own, by labs without one."""

    def refusal(lab: Lab) -> Refusal:
        if lab.kind is LabKind.MOCK:
            return f"the servers of {lab.name} are simulated: they have no kernel that {does}"
        return _reached(lab)

    return refusal


def _set(lab: Lab) -> Refusal:
    """A setting of real drives; simulated ones are told with each read."""
    if lab.kind is LabKind.MOCK:
        return f"the drives of {lab.name} are simulated: they are told not to try again with each read"
    return _reached(lab)


def _simulated(ability: str) -> Callable[[Lab], Refusal]:
    return lambda lab: None if lab.kind is LabKind.MOCK else OF_EQUIPMENT[ability]


OFFERS: Mapping[str, Callable[[Lab], Refusal]] = {
    "fabric.remap": _switched,
    "phy.drop": _switched,
    "host.links": _attached,
    "probe": _reached,
    "fio": _reached,
    "host.raid": _by_kernel("makes an array of drives"),
    "drive.fail_fast": _set,
    "remap.announce": _reached,
    "remap.mount": _by_kernel("mounts a drive"),
    "remap.timeline": _reached,
    "blocks.harness": _reached,
    **{ability: _simulated(ability) for ability in OF_EQUIPMENT},
}
"""The abilities that a test may require by name besides those of :data:`OF_FAULTS`: why a lab lacks it, or None."""


def refusal(lab: Lab, ability: str) -> Refusal:
    """The reason why ``lab`` lacks an ability, None where it offers it. Raises KeyError for an unknown ability."""
    if not ability.startswith(OF_FAULTS):
        return OFFERS[ability](lab)
    # What the catalogue of faults is made of takes its time to load.
    from rackloop.faults import KINDS
    from rackloop_labs.offered import never_in

    return never_in(lab, KINDS[ability.removeprefix(OF_FAULTS)])


def require(lab: Lab, ability: str) -> None:
    """Return where ``lab`` offers an ability. Raises NotSupported with the reason where it does not."""
    if (why := refusal(lab, ability)) is not None:
        raise NotSupported(why)


def abilities() -> tuple[str, ...]:
    """The name of every ability."""
    from rackloop.faults import KINDS

    return (*OFFERS, *(f"{OF_FAULTS}{kind}" for kind in KINDS))
