"""The shape of a design: its servers, ports and drives, and whether they fit a switch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rackloop.errors import BadInput, NotSupported

SWITCH_PORTS = 160
# "nk << y" of the paper is read as: at least so many drives for each server port.
DRIVES_PER_PORT = 4

Place = tuple[str, str]


@dataclass(frozen=True)
class Shape:
    """n ``servers`` of k ``ports`` each, and the ``drives`` they share; ``spares`` wait for a drive to fail.

    In the configuration design the drives are expanders. Raises BadInput where a name is given twice, NotSupported
    where all of it needs more ports than the switch has.
    """

    servers: tuple[str, ...]
    ports: tuple[str, ...]
    drives: tuple[str, ...]
    spares: tuple[str, ...] = ()
    switch_ports: int = SWITCH_PORTS

    def __post_init__(self) -> None:
        for what, names in (
            ("servers", self.servers),
            ("ports", self.ports),
            ("drives", (*self.drives, *self.spares)),
        ):
            if not names or len(set(names)) != len(names):
                raise BadInput(f"a design needs {what}, each named once; found {', '.join(names) or 'none'}")
        if self.needed_ports > self.switch_ports:
            raise NotSupported(
                f"{self.n} servers of {self.k} ports and {len(self.drives) + len(self.spares)} drives need "
                f"{self.needed_ports} ports, the switch has {self.switch_ports}; leave servers or drives out"
            )

    @property
    def n(self) -> int:
        """The number of servers."""
        return len(self.servers)

    @property
    def k(self) -> int:
        """The number of ports of each server."""
        return len(self.ports)

    @property
    def needed_ports(self) -> int:
        """The ports of the switch that servers and drives take together."""
        return self.n * self.k + len(self.drives) + len(self.spares)

    @property
    def places(self) -> list[Place]:
        """Every server port."""
        return [(server, port) for server in self.servers for port in self.ports]


def complete(servers: Sequence[str], ports: Sequence[str], drives: Sequence[str]) -> Shape:
    """The shape of complete disaggregation: many more drives than server ports. Raises NotSupported for fewer."""
    shape = Shape(tuple(servers), tuple(ports), tuple(drives))
    if len(drives) < DRIVES_PER_PORT * shape.n * shape.k:
        raise NotSupported(
            f"complete disaggregation wants many more drives than the {shape.n * shape.k} server ports, "
            f"{DRIVES_PER_PORT} for each at least; found {len(drives)}: take fewer servers or ports"
        )
    return shape


def elastic(servers: Sequence[str], ports: Sequence[str], drives: Sequence[str]) -> Shape:
    """The shape of dynamic elastic disaggregation: the first nk/3 of ``drives``. Raises NotSupported for fewer."""
    wanted = len(servers) * len(ports) // 3
    return Shape(tuple(servers), tuple(ports), _first(drives, wanted, "nk/3"))


def failure(servers: Sequence[str], ports: Sequence[str], drives: Sequence[str], spares: int) -> Shape:
    """The shape of failure disaggregation: nk/2 drives, and ``spares`` more. Raises NotSupported where they are fewer.

    Raises NotSupported for an odd k, too: half the ports of a server are kept for the drives of another.
    """
    if len(ports) % 2:
        raise NotSupported(f"half the ports of a server are kept free, so it needs an even number; found {len(ports)}")
    half = len(servers) * len(ports) // 2
    chosen = _first(drives, half + spares, f"nk/2 and {spares} spares")
    return Shape(tuple(servers), tuple(ports), chosen[:half], chosen[half:])


def configuration(servers: Sequence[str], ports: Sequence[str], expanders: Sequence[str]) -> Shape:
    """The shape of configuration disaggregation: the first k/2 of ``expanders``. Raises NotSupported for fewer."""
    return Shape(tuple(servers), tuple(ports), _first(expanders, max(1, len(ports) // 2), "k/2"))


def _first(drives: Sequence[str], count: int, why: str) -> tuple[str, ...]:
    if len(drives) < count:
        raise NotSupported(f"the design wants {count} drives or expanders ({why}), found {len(drives)}")
    return tuple(drives[:count])
