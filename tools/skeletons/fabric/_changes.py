"""Port maps and their changes as words of the dialect."""

from __future__ import annotations

from rackloop.errors import ProtocolError
from rackloop.portmap import Full, MapChange, Open, Partial, PortMap

NOTHING = "-"


def write_map(pairs: PortMap) -> str:
    """A map as one word: ``1!17,2!18``."""
    return pairs.canonical_text() or NOTHING


def read_map(word: str) -> PortMap:
    """The map in one word; raises ProtocolError where there is none."""
    try:
        ends = [pair.split("!") for pair in word.split(",")] if word != NOTHING else []
        return PortMap.of((int(low), int(high)) for low, high in ends)
    except ValueError as error:
        raise ProtocolError(f"expected a map such as 1!17,2!18, got {word!r}: {error}") from error


def change_words(change: MapChange) -> tuple[str, str]:
    """A change as a verb and its object."""
    match change:
        case Full(pairs):
            return "FULL", write_map(pairs)
        case Partial(pairs):
            return "PARTIAL", write_map(pairs)
        case Open(ports):
            return "OPEN", ",".join(map(str, sorted(ports))) or NOTHING


def read_change(verb: str, word: str) -> MapChange:
    """The change in a verb and its object; raises ProtocolError where there is none."""
    match verb:
        case "FULL":
            return Full(read_map(word))
        case "PARTIAL":
            return Partial(read_map(word))
        case "OPEN" if all(port.isdecimal() for port in word.split(",")):
            return Open(frozenset(map(int, word.split(","))))
        case "OPEN" if word == NOTHING:
            return Open(frozenset())
    raise ProtocolError(f"expected FULL, PARTIAL or OPEN and its object, got {verb} {word}")
