"""How inverse acts stand in the journal: plain JSON, one object an act.

``open`` ports, ``join`` pairs, ``replace`` the whole map, ``save`` a power-on map, ``power`` on or off, ``mend``
what was broken under a key, and ``settle``: end a disturbance that ends by itself, or wait it out.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from rackloop.portmap import Full, MapChange, Open, Pair, PortMap
from rackloop.safety.undo._journal import Entry

JsonAct = Mapping[str, Any]


def map_act(change: MapChange) -> JsonAct:
    """The act that makes ``change``."""
    if isinstance(change, Open):
        return {"act": "open", "ports": sorted(change.ports)}
    return {"act": "replace" if isinstance(change, Full) else "join", "pairs": _pairs(change.pairs)}


def save_act(boot: PortMap) -> JsonAct:
    """The act that makes ``boot`` the power-on map."""
    return {"act": "save", "pairs": _pairs(boot)}


def power_act(*, on: bool) -> JsonAct:
    """The act that gives a power port its state back."""
    return {"act": "power", "on": on}


def mend_act(key: str) -> JsonAct:
    """The act that mends what stands broken under ``key``."""
    return {"act": "mend", "key": key}


def settle_act(ports: Collection[int], lasts_ms: float) -> JsonAct:
    """The act after which ``ports``, whose signal was taken away for ``lasts_ms``, are up again."""
    return {"act": "settle", "ports": sorted(ports), "lasts_ms": lasts_ms}


def acts_of(entry: Entry, *kinds: str) -> list[JsonAct]:
    """The inverse acts of ``entry`` that are of these kinds, in their order."""
    return [act for act in entry.inverse if act["act"] in kinds]


def restored(live: PortMap, entries: Iterable[Entry]) -> PortMap:
    """The map that stands once the inverses of ``entries``, newest first, were made on ``live``.

    Composed in memory, so that undoing a thousand remaps costs the switch one.
    """
    peers = {port: peer for low, high in live for port, peer in ((low, high), (high, low))}
    for entry in entries:
        for act in acts_of(entry, "open", "join", "replace"):
            if act["act"] == "replace":
                peers.clear()
            for port in act.get("ports", ()):
                _detach(peers, port)
            for low, high in act.get("pairs", ()):
                _detach(peers, low)
                _detach(peers, high)
                peers[low], peers[high] = high, low
    return PortMap.of((port, peer) for port, peer in peers.items() if port < peer)


def map_ports(entry: Entry) -> frozenset[int]:
    """The ports whose circuits the inverse of ``entry`` gives back."""
    ports: set[int] = set()
    for act in acts_of(entry, "open", "join", "replace"):
        ports.update(act.get("ports", ()))
        ports.update(port for pair in act.get("pairs", ()) for port in pair)
    return frozenset(ports)


def saved_map(act: JsonAct) -> PortMap:
    """The power-on map a ``save`` act gives back."""
    return PortMap.of((low, high) for low, high in act["pairs"])


def _pairs(pairs: Iterable[Pair]) -> list[list[int]]:
    return [list(pair) for pair in pairs]


def _detach(peers: dict[int, int], port: int) -> None:
    peer = peers.pop(port, None)
    if peer is not None:
        del peers[peer]
