"""`rackloop fabric LAB show|map|unmap|drop`: the switch by hand, under the same journal as a run."""

from __future__ import annotations

import secrets
import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass

from rich.console import Console
from rich.table import Table

from rackloop.abilities import LiveMap, PortState
from rackloop.clock import Clock, Deadline, RealClock
from rackloop.errors import EXIT_PASS, BadInput
from rackloop.lab import Lab, LabKind, Parts, load_lab, parts_at, parts_of
from rackloop.names import in_one_line
from rackloop.portmap import Full, MapChange, Open, Partial, PortMap
from rackloop_cli.shared.lab_session import acting, running_bench
from rackloop_cli.shared.output import print_json, say
from rackloop_cli.shared.tables import plain_table, print_whole

# At the least: the lab says how long an act may take.
_WITHIN_S = 10.0
_MOST_DIGITS = 9
# Of a drop, as the switch takes it.
_SHORTEST_MS, _LONGEST_MS = 0.001, 3_600_000


def show(name: str, *, as_json: bool = False) -> int:
    """Draw the live map, or print it as JSON."""
    lab, clock = load_lab(name), RealClock()
    if not lab.has_switch:
        raise BadInput(
            f"the rack {lab.name} has fixed cabling and no switch; `rackloop lab cabling {lab.name}` shows it"
        )
    with running_bench(lab, clock) as bench:
        deadline = _deadline(lab, clock)
        fabric = bench.equipment.fabric
        identity, live = fabric.identify(deadline), fabric.live_map(deadline)
        states = fabric.port_states(_server_ports(lab), deadline)
    if as_json:
        print_json(
            lab=lab.name,
            kind=lab.kind,
            switch={"vendor": identity.vendor, "model": identity.model, "serial": identity.serial},
            generation=live.generation,
            ports=list(map(asdict, _circuits(lab, live, states))),
        )
        return EXIT_PASS
    console = Console(highlight=False)
    if lab.kind is LabKind.MOCK:
        console.print("[bold]simulated[/bold]")
    console.print(f"{identity.vendor} {identity.model} {identity.serial}, generation {live.generation}")
    print_whole(console, _drawing(lab, live, states))
    return EXIT_PASS


def map_pairs(name: str, pairs: Sequence[str], *, full: bool) -> int:
    """Join ports; the change is journalled, so that `heal` goes back to the baseline."""
    lab = load_lab(name)
    wanted = _pairs(lab, pairs)
    return _change(name, lab, Full(wanted) if full else Partial(wanted))


def unmap(name: str, ports: Sequence[str]) -> int:
    """Open ports; journalled."""
    lab = load_lab(name)
    return _change(name, lab, Open(frozenset(_port(lab, text) for text in ports)))


def drop(name: str, ports: Sequence[str], *, down_ms: float) -> int:
    """Take the signal away for a time."""
    lab, clock = load_lab(name), RealClock()
    numbers = [_port(lab, text) for text in ports]
    if not _SHORTEST_MS <= down_ms <= _LONGEST_MS:
        raise BadInput(
            f"--ms {down_ms:g} is not between 1 us and an hour; give the time the signal is away in milliseconds"
        )
    with acting(lab, clock, _touched(lab, clock, numbers), "fabric drop") as equipment:
        if equipment.phy is None:
            raise BadInput(f"the rack {lab.name} has no switch that could drop a PHY")
        deadline = _deadline(lab, clock)
        equipment.phy.drop(numbers, down_ms / 1000, deadline, request_id=secrets.randbits(31))
    named = (
        text if text == str(number) else f"{text} (port {number})" for text, number in zip(ports, numbers, strict=True)
    )
    say(f"dropped {', '.join(named)} for {down_ms:g} ms")
    return EXIT_PASS


def _change(name: str, lab: Lab, change: MapChange) -> int:
    clock = RealClock()
    if isinstance(change, Full):
        wanted = parts_of(lab)
    else:
        wanted = _touched(lab, clock, change.ports if isinstance(change, Open) else change.pairs.ports())
    with acting(lab, clock, wanted, "fabric map") as equipment:
        applied = equipment.fabric.apply(change, _deadline(lab, clock))
    took_ms = (applied.acknowledged_ns - applied.commanded_ns) / 1e6
    Console().print(
        f"generation {applied.generation}, acknowledged in {took_ms:.2f} ms; "
        f"`rackloop heal {shlex.quote(name)}` restores the baseline",
        soft_wrap=True,
        markup=False,
    )
    return EXIT_PASS


def _deadline(lab: Lab, clock: Clock) -> Deadline:
    return Deadline.after(clock, lab.time_s("act", at_least=_WITHIN_S))


def _touched(lab: Lab, clock: Clock, ports: Collection[int]) -> Parts:
    """These ports and those they are joined to now, whose circuits a change opens."""
    with running_bench(lab, clock) as bench:
        live = bench.equipment.fabric.live_map(_deadline(lab, clock)).pairs
    peers = (live.peer_of(port) for port in ports)
    return parts_at(lab, {*ports, *(peer for peer in peers if peer is not None)})


@dataclass(frozen=True)
class _Circuit:
    """A server's port and what it is joined to; ``link`` is empty where the switch does not say."""

    server: str
    port: str
    stack: str
    switch_port: int | None
    peer: int | None
    drive: str
    serial: str | None
    link: str


def _circuits(lab: Lab, live: LiveMap, states: Mapping[int, PortState]) -> Iterator[_Circuit]:
    far_names = {lab.where_is(name): name for name in lab.drives} if lab.has_switch else {}
    far_names |= {expander.port: name for name, expander in lab.expanders.items() if expander.port is not None}
    for server, described in lab.servers.items():
        for port, number in described.ports.items():
            far = live.pairs.peer_of(number) if number is not None else None
            what = far_names.get(far, "") if far is not None else ""
            serial = lab.drives[what].serial if what in lab.drives else None
            link = states[number].value if number is not None and number in states else ""
            yield _Circuit(server, port, described.stack, number, far, what, serial, link)


def _drawing(lab: Lab, live: LiveMap, states: Mapping[int, PortState]) -> Table:
    table = plain_table("server", "stack", "at", "", "at", "drive", "serial", "link")
    server = ""
    for circuit in _circuits(lab, live, states):
        if server not in {"", circuit.server}:
            table.add_section()
        server = circuit.server
        line = "    " if circuit.peer is None else "━━━━"
        table.add_row(
            *(f"{server}.{circuit.port}", circuit.stack, str(circuit.switch_port or ""), line),
            *(str(circuit.peer or ""), circuit.drive, circuit.serial or "", circuit.link),
        )
    return table


def _server_ports(lab: Lab) -> list[int]:
    return [number for server in lab.servers.values() for number in server.ports.values() if number is not None]


def _pairs(lab: Lab, texts: Sequence[str]) -> PortMap:
    """Pairs such as ``1=117`` or ``srv1.p0=d05``, or as the switch writes them, ``1!117``, which shells may expand."""
    pairs = []
    for text in texts:
        ends = text.replace("=", "!").split("!")
        if len(ends) != 2:
            raise BadInput(f"{text!r} is no pair: write 1=117 or srv1.p0=d05")
        pairs.append((_port(lab, ends[0]), _port(lab, ends[1])))
    try:
        return PortMap.of(pairs)
    except ValueError as error:
        raise BadInput(f"{' '.join(texts)}: {error}; a port has at most one circuit") from error


def _port(lab: Lab, text: str) -> int:
    """A switch port by number, by server and port (``srv1.p0``), or by the drive or expander behind it."""
    if text.isascii() and text.isdigit():
        # Python refuses to read a number of thousands of digits.
        if len(text) > _MOST_DIGITS or not 1 <= int(text) <= lab.fabric.ports:
            raise BadInput(f"port {in_one_line(text, 20)} is not one of the switch's 1 to {lab.fabric.ports}")
        return int(text)
    server, dot, port = text.partition(".")
    if dot:
        return lab.switch_port(server, port)
    expander = lab.expanders.get(text)
    if expander is not None and expander.port is not None:
        return expander.port
    return lab.where_is(text)
