"""Configuration disaggregation: which server has which expanders, settled when a rack is deployed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from rackloop.errors import BadInput
from rackloop_models.disaggregation._placement import Move, Placement
from rackloop_models.disaggregation._shape import Place, Shape


class Wipe(StrEnum):
    """The way to erase the drives of an expander before another server has them: by themselves, by writing, or not."""

    SANITIZE = "sanitize"
    OVERWRITE = "overwrite"
    NONE = "none"


@dataclass(frozen=True)
class Configuration:
    """A named assignment of every expander to one server port."""

    name: str
    at: Mapping[str, Place]

    def placement(self, shape: Shape) -> Placement:
        """The assignment in a shape. Raises BadInput where it leaves an expander out or two share a port."""
        missing = set(shape.drives) ^ set(self.at)
        if missing:
            raise BadInput(f"configuration {self.name} and the rack disagree about {', '.join(sorted(missing))}")
        try:
            return Placement(shape, self.at)
        except ValueError as error:
            raise BadInput(f"configuration {self.name}: {error}") from error

    def servers(self) -> int:
        """The number of servers that have drives in it."""
        return len({server for server, _ in self.at.values()})


def with_servers(shape: Shape, count: int) -> Configuration:
    """The expanders dealt evenly to the first ``count`` servers: fewer servers, more drives for each.

    Raises BadInput where there are not as many servers, or not ports enough.
    """
    if not 1 <= count <= min(shape.n, len(shape.drives)):
        raise BadInput(f"1 to {min(shape.n, len(shape.drives))} servers can share the expanders, found {count}")
    chosen = shape.servers[:count]
    places = [(server, port) for port in shape.ports for server in chosen]
    if len(places) < len(shape.drives):
        raise BadInput(f"{count} servers of {shape.k} ports cannot take {len(shape.drives)} expanders")
    return Configuration(f"{count}-servers", dict(zip(shape.drives, places, strict=False)))


def changes(shape: Shape, now: Configuration, wanted: Configuration) -> list[Move]:
    """The moves from one configuration to another; expanders that stay are not among them."""
    before, after = now.placement(shape).at, wanted.placement(shape).at
    return [Move(expander, before[expander], place) for expander, place in after.items() if before[expander] != place]
