"""The PHYs of servers as the PHY control of a rack without a switch."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from rackloop.abilities import Host, PortState
from rackloop.clock import Deadline
from rackloop.errors import DeadlineExceeded, FaultRefused, LabError, RackloopError
from rackloop_drivers.phy._host_phy import HostPhy, PhyVia, SasPhy, list_phys, run_phy
from rackloop_drivers.phy._use import require_unused

# As physical labs have it that say nothing of their tools.
_LOOK_S = 40.0


class HostPhys:
    """PhyControl and LinkReset of HBA ports whose servers take the signal away. ``ports`` has each by its number.

    A port that leads to an expander has all the PHYs of its wide port. A drop disables a PHY, waits, and enables it;
    the server does all three by itself once it was asked, so the signal comes back whatever becomes of the harness.
    ``down_s`` is the least it is away: commands on the server take their time. A PHY that is switched off already is
    not dropped, which is a LabError. Drops are counted as losses of dword synchronization, which a link also has for
    reasons of its own. Needs root on the servers, and smp_utils where ``via`` says so or sysfs has no such attribute;
    raises ToolError where they are missing.

    ``drives`` has, for each port, the serials of those that may be behind it, by their names: before a drop, a flap or
    a reset any other drive there, one that is mounted or held, and the boot drive are refused with GuardRefused. The
    look has ``look_s`` whatever is left until the deadline, and the act as long after it as it had before; one that
    takes longer is FaultRefused.
    """

    def __init__(
        self,
        ports: Mapping[int, HostPhy],
        via: PhyVia = PhyVia.SYSFS,
        *,
        drives: Mapping[int, Mapping[str, str]] | None = None,
        look_s: float = _LOOK_S,
    ) -> None:
        self._ports = dict(ports)
        self._via = via
        self._drives = drives or {}
        self._look_s = look_s

    def drop(self, ports: Collection[int], down_s: float, deadline: Deadline, *, request_id: int) -> None:
        """Take the signal away from ``ports``; returns once it is. Servers forget a ``request_id`` after an hour."""
        self._swing(ports, deadline, request_id, 1, down_s, 0.0)

    def flap(
        self,
        ports: Collection[int],
        down_s: float,
        up_s: float,
        count: int,
        deadline: Deadline,
        *,
        request_id: int,
    ) -> None:
        """Take the signal away ``count`` times, ``up_s`` apart; returns once it is away for the first time."""
        self._swing(ports, deadline, request_id, count, down_s, up_s)

    def drop_counts(self, ports: Collection[int], deadline: Deadline) -> dict[int, int]:
        """The losses of dword synchronization of each PHY; of a wide port those that all its PHYs had."""
        return {port: min(self._losses(port, phys)) for port, phys in self._found(ports, deadline).items()}

    def port_states(self, ports: Collection[int], deadline: Deadline) -> dict[int, PortState]:
        """The state of each PHY's link; that of a wide port where all its PHYs are in it, else they train."""
        states = {port: {phy.state for phy in phys} for port, phys in self._found(ports, deadline).items()}
        return {port: its.pop() if len(its) == 1 else PortState.TRAIN for port, its in states.items()}

    def restore(self, ports: Collection[int], deadline: Deadline) -> None:
        """End every drop and flap of ``ports`` at once; returns once none is disabled but what was switched off.

        A PHY that :class:`PhySwitchedOff` holds is left as it is. What one server does not do, or not in its equal
        share of the time, keeps the others from nothing, and is raised then.
        """
        _require_time(deadline)
        problems: list[RackloopError] = []
        for (host, its_ports), share in deadline.in_turn(self._hosts(ports)):
            try:
                phys = _names(self._listed(host, its_ports, share))
                run_phy(host, self._via, "restore", *phys, deadline=share)
            except RackloopError as error:
                problems.append(error)
        if len(problems) == 1:
            raise problems[0]
        if problems:
            raise LabError("; ".join(map(str, problems)))

    def reset_link(self, ports: Collection[int], deadline: Deadline, *, is_hard: bool = False) -> None:
        """Reset the links of ``ports``, with ``is_hard`` what is at their other end too."""
        acting, act_by = self._acting(ports, deadline)
        for host, phys in acting:
            run_phy(host, self._via, "reset", "hard" if is_hard else "link", *phys, deadline=act_by)

    def _swing(
        self, ports: Collection[int], deadline: Deadline, request_id: int, count: int, down_s: float, up_s: float
    ) -> None:
        times = (str(request_id), str(count), f"{down_s:.6f}", f"{up_s:.6f}")
        acting, act_by = self._acting(ports, deadline)
        for host, phys in acting:
            run_phy(host, self._via, "begin", *times, *phys, deadline=act_by)

    def _acting(self, ports: Collection[int], deadline: Deadline) -> tuple[list[tuple[Host, list[str]]], Deadline]:
        """The servers and the names of the PHYs that an act is about, and by when it is to be made.

        Nothing has happened where this raises.
        """
        _require_time(deadline)
        left_s = deadline.remaining_s()
        look_by = Deadline.after(deadline.clock, max(left_s, self._look_s))
        acting = []
        for host, its_ports in self._hosts(ports):
            try:
                found = self._listed(host, its_ports, look_by)
                for port, phys in found.items():
                    names = _names({port: phys})
                    require_unused(self._ports[port], names, self._drives.get(port, {}), self._via, look_by)
            except DeadlineExceeded as error:
                # A refusal, after which nothing is to be undone.
                why = f"{host.name} did not tell in time who uses the drives there: {error}"
                raise FaultRefused(f"what is told to PHYs of {host.name}", [why]) from error
            acting.append((host, _names(found)))
        return acting, Deadline.after(deadline.clock, left_s)

    def _found(self, ports: Collection[int], deadline: Deadline) -> dict[int, list[SasPhy]]:
        return {
            port: phys
            for host, its_ports in self._hosts(ports)
            for port, phys in self._listed(host, its_ports, deadline).items()
        }

    def _losses(self, port: int, phys: Sequence[SasPhy]) -> list[int]:
        counts = [phy.losses for phy in phys if phy.losses is not None]
        if len(counts) < len(phys):
            untold = ", ".join(phy.name for phy in phys if phy.losses is None)
            raise LabError(
                f"{self._ports[port]}: the server does not say how often {untold} lost its signal; try again"
            )
        return counts

    def _listed(self, host: Host, ports: Sequence[int], deadline: Deadline) -> dict[int, list[SasPhy]]:
        """The PHYs of ports of one server."""
        phys = list_phys(host, deadline)
        return {port: self._ports[port].among(phys) for port in ports}

    def _hosts(self, ports: Collection[int]) -> list[tuple[Host, list[int]]]:
        """The servers that have these ports, each with its own."""
        hosts: dict[int, tuple[Host, list[int]]] = {}
        for port in ports:
            host = self._port(port).host
            hosts.setdefault(id(host), (host, []))[1].append(port)
        return list(hosts.values())

    def _port(self, port: int) -> HostPhy:
        try:
            return self._ports[port]
        except KeyError:
            known = ", ".join(str(number) for number in sorted(self._ports))
            raise LabError(f"no HBA port has the number {port}; there are {known}") from None


def _names(found: Mapping[int, Sequence[SasPhy]]) -> list[str]:
    return [phy.name for phys in found.values() for phy in phys]


def _require_time(deadline: Deadline) -> None:
    if deadline.is_over():
        raise DeadlineExceeded("there was no time left to tell the servers' PHYs anything")
