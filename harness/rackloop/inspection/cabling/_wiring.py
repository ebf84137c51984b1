"""The plugs in the sockets of a rack, the view of each server port through the map, and swaps that explain one."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

from rackloop.lab import Lab
from rackloop.portmap import PortMap


class ServerPort(NamedTuple):
    """An HBA port by its server's name and its own."""

    server: str
    port: str

    def __str__(self) -> str:
        return f"{self.server}.{self.port}"


Plug = ServerPort | str
"""The part that is plugged into a socket: a server port, or a drive or expander by its name."""


@dataclass(frozen=True)
class Swap:
    """Two plugs that changed places: ``sockets`` are the ports of the switch they belong in, None where it has none."""

    plugs: tuple[Plug, Plug]
    sockets: tuple[int, int] | None

    def __str__(self) -> str:
        where = f" (switch ports {self.sockets[0]} and {self.sockets[1]})" if self.sockets else ""
        return f"the cables of {self.plugs[0]} and {self.plugs[1]} are swapped{where}"


@dataclass(frozen=True)
class Wiring:
    """The plugs of a rack by the socket each is in, and the sockets that are joined.

    A rack without a switch has a socket for each end of a cable, joined for good.
    """

    plugs: Mapping[int, Plug]
    joined: PortMap
    is_switched: bool

    @classmethod
    def of(cls, lab: Lab, live: PortMap) -> Wiring:
        """The wiring that a description and the live map of its switch say there is."""
        ports = [
            (ServerPort(name, port), number)
            for name, server in lab.servers.items()
            for port, number in server.ports.items()
        ]
        far = {name: thing for things in (lab.drives, lab.expanders) for name, thing in things.items()}
        if lab.has_switch:
            plugs: dict[int, Plug] = {number: at for at, number in ports if number is not None}
            plugs |= {thing.port: name for name, thing in far.items() if thing.port is not None}
            return cls(plugs, live, is_switched=True)
        attached = {ServerPort(*thing.attached): name for name, thing in far.items() if thing.attached is not None}
        near_ends = {2 * index: at for index, (at, _) in enumerate(ports)}
        far_ends = {socket + 1: attached[at] for socket, at in near_ends.items() if at in attached}
        return cls({**near_ends, **far_ends}, PortMap.of((end - 1, end) for end in far_ends), is_switched=False)

    def view(self) -> dict[ServerPort, str | None]:
        """The drive or expander that each server port reaches."""
        return self._seen_from(self.plugs, self.plugs)

    def explanations(self, observed: Mapping[ServerPort, str | None]) -> list[tuple[Swap, frozenset[ServerPort]]]:
        """Every swap of two plugs that would make the ports it touches see what was ``observed`` there.

        ``observed`` holds the ports that do not see what they should. Each swap comes with the ports it explains.
        """
        found: list[tuple[Swap, frozenset[ServerPort]]] = []
        for one, other in self._pairs_near(observed):
            changed = self._changes(one, other)
            if changed and all(at in observed and observed[at] == far for at, far in changed.items()):
                swap = Swap((self.plugs[one], self.plugs[other]), (one, other) if self.is_switched else None)
                found.append((swap, frozenset(changed)))
        return found

    def _pairs_near(self, ports: Mapping[ServerPort, str | None]) -> Iterator[tuple[int, int]]:
        """Pairs of sockets with plugs, at least one of them on the circuit of one of ``ports``."""
        near = {socket for socket, plug in self.plugs.items() if plug in ports}
        near |= {peer for socket in near if (peer := self.joined.peer_of(socket)) is not None}
        for one, other in combinations(sorted(self.plugs), 2):
            # Without a switch, both ends of a cable tell the same story: tell it of the servers' ends.
            are_told = self.is_switched or (self._is_server_end(one) and self._is_server_end(other))
            if are_told and (one in near or other in near):
                yield one, other

    def _changes(self, one: int, other: int) -> dict[ServerPort, str | None]:
        """The drives that server ports reach after a swap, where they differ from those before."""
        peers = (self.joined.peer_of(socket) for socket in (one, other))
        touched = {one, other, *(peer for peer in peers if peer is not None)}
        swapped = ChainMap({one: self.plugs[other], other: self.plugs[one]}, self.plugs)  # type: ignore[arg-type]  # only read
        before = self._seen_from(touched, self.plugs)
        return {at: far for at, far in self._seen_from(touched, swapped).items() if far != before[at]}

    def _is_server_end(self, socket: int) -> bool:
        return isinstance(self.plugs[socket], ServerPort)

    def _seen_from(self, sockets: Iterable[int], plugs: Mapping[int, Plug]) -> dict[ServerPort, str | None]:
        """The drives that the server ports among the plugs in ``sockets`` reach."""
        return {
            plug: self._far_of(socket, plugs) for socket in sockets if isinstance(plug := plugs.get(socket), ServerPort)
        }

    def _far_of(self, socket: int, plugs: Mapping[int, Plug]) -> str | None:
        peer = self.joined.peer_of(socket)
        far = plugs.get(peer) if peer is not None else None
        return far if isinstance(far, str) else None
