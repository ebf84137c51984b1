"""`rackloop power LAB show|on|off|cycle`: the power by hand, under the same journal as a run."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager

from rich.console import Console

from rackloop.abilities import PowerPort
from rackloop.clock import Deadline, RealClock
from rackloop.errors import EXIT_LAB_FAILED, EXIT_PASS, BadInput, LabError, NotSupported
from rackloop.lab import LabKind, Part, PartKind, load_lab, parts_for
from rackloop.names import guess, quoted
from rackloop_cli.shared.lab_session import acting, running_bench
from rackloop_cli.shared.output import print_json, say
from rackloop_cli.shared.tables import plain_table, print_whole

_ASKED_WITHIN_S = 20.0
# A PDU may be set to delays, and a server's controller takes its time.
_SWITCHED_WITHIN_S = 120.0


def show(name: str, *, as_json: bool = False) -> int:
    """Print the power state of servers; exit 3 where a device does not answer."""
    lab, clock = load_lab(name), RealClock()
    servers: list[dict[str, str]] = []
    problems: list[str] = []

    def state(target: str, ports: Mapping[str, PowerPort]) -> str:
        if target not in ports:
            return ""
        try:
            return "on" if ports[target].is_on(Deadline.after(clock, _ASKED_WITHIN_S)) else "off"
        except (LabError, NotSupported) as error:
            problems.append(f"{target}: {error}")
            return "?"

    with running_bench(lab, clock) as bench:
        ports = bench.equipment.power
        for server, described in lab.servers.items():
            outlet = "/".join(map(str, described.outlet)) if described.outlet else ""
            fed = state(str(Part.outlet(*described.outlet)), ports) if described.outlet else ""
            switched_by = described.bmc.driver if described.bmc else outlet
            servers.append(
                {
                    "server": server,
                    "switched_by": switched_by,
                    "power": state(str(Part.server(server)), ports),
                    "outlet": outlet,
                    "outlet_power": fed,
                }
            )
    if as_json:
        print_json(lab=lab.name, kind=lab.kind, servers=servers, problems=problems)
        return EXIT_LAB_FAILED if problems else EXIT_PASS
    table = plain_table("server", "switched by", "server power", "fed by", "outlet power")
    for row in servers:
        table.add_row(*("OFF" if value == "off" else value for value in row.values()))
    console = Console(highlight=False)
    if lab.kind is LabKind.MOCK:
        console.print("[bold]simulated[/bold]")
    print_whole(console, table)
    for problem in problems:
        console.print(problem, markup=False, soft_wrap=True)
    return EXIT_LAB_FAILED if problems else EXIT_PASS


def turn_on(name: str, text: str) -> int:
    """Switch one target on, for good: on is what every power port is at the baseline.

    So it is not journalled: heal would turn off again what its own report asked the user to turn on.
    """
    with _disturbed(name, text, is_journalled=False) as (port, deadline):
        port.turn_on(deadline)
    say(f"{text} is on")
    return EXIT_PASS


def turn_off(name: str, text: str) -> int:
    """Switch one target off; the act is journalled, so that `heal` gives it back the power it had."""
    with _disturbed(name, text) as (port, deadline):
        port.turn_off(deadline)
    say(f"{text} is off; `rackloop heal {shlex.quote(name)}` turns it on again")
    return EXIT_PASS


def cycle(name: str, text: str) -> int:
    """Switch one target off and on; one that is off is refused, for there is nothing to interrupt."""
    with _disturbed(name, text) as (port, deadline):
        if not port.is_on(deadline):
            raise BadInput(
                f"{text} is off, and cannot be cycled; turn it on: rackloop power {shlex.quote(name)} on {text}"
            )
        port.turn_off(deadline)
        port.turn_on(deadline)
    say(f"{text} is on again")
    return EXIT_PASS


@contextmanager
def _disturbed(name: str, text: str, *, is_journalled: bool = True) -> Iterator[tuple[PowerPort, Deadline]]:
    lab, clock = load_lab(name), RealClock()
    with running_bench(lab, clock) as bench:
        target = _named(text, bench.equipment.power)
    wanted = parts_for(lab, Part.of_resource(target))
    with acting(lab, clock, wanted, f"power {text}", is_journalled=is_journalled) as equipment:
        yield equipment.power[target], Deadline.after(clock, _SWITCHED_WITHIN_S)


def _named(text: str, ports: Collection[str]) -> str:
    """The power port that a server's name, an outlet, or its own full name says."""
    for target in (text, str(Part.server(text)), str(Part(PartKind.OUTLET, text))):
        if target in ports:
            return target
    parts = [Part.of_resource(port) for port in ports]
    usual = [part.name for part in parts if part.kind in {PartKind.SERVER, PartKind.OUTLET}]
    others = [str(part) for part in parts if part.name not in usual]
    hint = guess(text, [*usual, *others])
    if close := [name for name in others if name.endswith(f":{text}")]:
        hint = f"did you mean {close[0]!r}?"
    elif hint.startswith("known") and usual:
        # Servers and outlets first: of a rack's many drives the list would have room for nothing else.
        hint = guess(text, usual) + (f", and {len(others)} more such as {others[0]}" if others else "")
    raise BadInput(f"nothing called {quoted(text)} has power that can be switched; {hint}")
