"""The view of the servers of a bench, compared with its description."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from rackloop.abilities import Host, LiveMap
from rackloop.abilities.inventory import HostInventory
from rackloop.clock import Deadline
from rackloop.errors import LabError, RackloopError
from rackloop.inspection.cabling import Disagreement, PortCheck, check_ports
from rackloop.lab import Lab, LabKind, Server
from rackloop_drivers.host import run_on_all
from rackloop_drivers.host_tools import survey_host
from rackloop_labs.bench import Bench
from rackloop_labs.bench_view import is_about_what_is_out, whole
from rackloop_labs.mock_hosts import pci_address

# Each look has every server ask all its drives: a rack has this many looks while it settles, or one each second.
_LOOKS = 30
_LONGEST_PAUSE_S = 1.0


def inventories(bench: Bench, deadline: Deadline, spared: Collection[str] = ()) -> dict[str, HostInventory]:
    """The inventory of every server of the bench, all asked at once; of those ``spared``, of each that answers.

    Raises NotSupported where this kind of lab has no servers that can be reached, NotConnected with one entry for
    each server that could not be asked.
    """

    def look(host: Host, deadline: Deadline) -> HostInventory | None:
        try:
            return survey_host(host, deadline)
        except RackloopError:
            if host.name in spared:
                return None
            raise

    hosts = [bench.host(server) for server in bench.lab.servers]
    found = run_on_all(hosts, look, deadline)
    return {server: inventory for server, inventory in found.items() if inventory is not None}


def cabling(bench: Bench, deadline: Deadline) -> list[PortCheck]:
    """Every server port: what should be there by the description and the switch's live map, and what its host sees.

    Ports that are out of service, or whose drive at the baseline is, are left out.

    What disagrees was looked at for as long as the rack may take to settle. Raises as :func:`inventories`, and LabError
    where the map never rested so long that the servers could be asked.
    """
    rack = whole(bench)

    def look() -> list[PortCheck] | None:
        live = _live(rack, deadline)
        seen = inventories(bench, deadline)
        return checked_ports(bench, live, seen) if is_unchanged(live, _live(rack, deadline)) else None

    settle_s = rack.lab.time_s("settle")
    checks = deadline.sooner(settle_s).poll(
        look,
        lambda checks: checks is not None and not any(check.disagreements for check in checks),
        every_s=_pause_s(settle_s),
    )
    if checks is None:
        raise _never_at_rest(rack.lab)
    return checks


def at_rest(bench: Bench, deadline: Deadline) -> tuple[LiveMap, dict[str, HostInventory]]:
    """The switch's live map, and the inventory of every server while it was that.

    A map that another changes meanwhile is looked at again for as long as the rack may take to settle. Raises as
    :func:`cabling`.
    """

    def look() -> tuple[LiveMap, dict[str, HostInventory]] | None:
        live = _live(bench, deadline)
        seen = inventories(bench, deadline)
        return (live, seen) if is_unchanged(live, _live(bench, deadline)) else None

    settle_s = bench.lab.time_s("settle")
    found = deadline.sooner(settle_s).poll(look, lambda found: found is not None, every_s=_pause_s(settle_s))
    if found is None:
        raise _never_at_rest(bench.lab)
    return found


def _pause_s(settle_s: float) -> float:
    """The time between two looks at a rack that may take ``settle_s`` to settle."""
    return min(settle_s / _LOOKS, _LONGEST_PAUSE_S)


def is_unchanged(before: LiveMap, now: LiveMap) -> bool:
    """Whether the map stayed as it was; of a view of some ports, these: others may change theirs all the time."""
    return before == now if now.whole is None else before.pairs == now.pairs


def checked_ports(bench: Bench, live: LiveMap, seen: Mapping[str, HostInventory]) -> list[PortCheck]:
    """The checks of :func:`cabling` on inventories that were taken while ``live`` was the switch's map."""
    return [
        _in_service(bench, check)
        for check in check_ports(with_paths(whole(bench).lab), live.pairs, seen)
        if not is_about_what_is_out(bench, f"{check.server} {check.port}")
    ]


def _in_service(bench: Bench, check: PortCheck) -> PortCheck:
    """The check without what it says of single drives that are out of service: in an expander, or at no port."""
    told = [one for one in check.disagreements if one.drive is None or not is_about_what_is_out(bench, one.drive)]
    return replace(check, disagreements=tuple(told))


def check_cabling(bench: Bench, deadline: Deadline) -> list[Disagreement]:
    """The disagreements found by :func:`cabling`; empty where the rack is cabled as it is described."""
    return [disagreement for check in cabling(bench, deadline) for disagreement in check.disagreements]


def with_paths(lab: Lab) -> Lab:
    """The description with the paths of a mock lab's ports, which follow from their places among a server's ports.

    What is given stays as it is.
    """
    if lab.kind is not LabKind.MOCK:
        return lab
    servers = {
        name: server.model_copy(update={"paths": {**_mock_paths(server), **server.paths}})
        for name, server in lab.servers.items()
    }
    return lab.model_copy(update={"servers": servers})


def _mock_paths(server: Server) -> dict[str, str]:
    return {name: f"pci-{pci_address(index)}" for index, name in enumerate(server.ports)}


def _never_at_rest(lab: Lab) -> LabError:
    return LabError(
        f"the map of lab {lab.name} changed whenever its servers were asked: see with `rackloop lab status {lab.name}` "
        "who works on it, and look again"
    )


def _live(bench: Bench, deadline: Deadline) -> LiveMap:
    return bench.equipment.fabric.live_map(deadline)
