"""`rackloop lab build|up|down|status`: building, starting, stopping and showing a rack of this machine."""

from __future__ import annotations

import json
import shlex
import sys
from contextlib import closing
from typing import Any

from rich.console import Console

from rackloop.clock import RealClock
from rackloop.errors import EXIT_LAB_FAILED, EXIT_PASS, BadInput, LabError
from rackloop.lab import Lab, LabKind, load_lab, parts_of
from rackloop.safety.leases import Holder, Leases, LeaseTerms, RackLeased, leased
from rackloop.safety.store import StoreDamaged, open_lab_store
from rackloop_cli.shared.interruption import ended_in_order
from rackloop_cli.shared.output import say
from rackloop_cli.shared.steal_prompt import stealing
from rackloop_cli.shared.tables import plain_table, print_whole
from rackloop_labs import MockLab
from rackloop_labs.described import require_described
from rackloop_labs.virtual import VirtualLab


def build(name: str) -> int:
    """Build the guests of a virtual lab, where they are not built."""
    lab = load_lab(name)
    if lab.kind is not LabKind.VIRTUAL:
        raise BadInput(f"lab {lab.name} is of kind {lab.kind}: only the guests of a virtual lab are built")
    _build(VirtualLab(lab, RealClock()))
    return EXIT_PASS


def _build(virtual: VirtualLab) -> None:
    started_ns = virtual.clock.now_ns()
    # Whichever signal ends it, nothing half made is left.
    with ended_in_order():
        saved, is_new = virtual.build(lambda step: print(step, file=sys.stderr, flush=True))
    seconds = (virtual.clock.now_ns() - started_ns) / 1e9
    how = f"built ({seconds:.0f} s)" if is_new else "built already"
    say(f"the guests of lab {virtual.lab.name} are {how}: {saved.folder}")


def up(name: str) -> int:
    """Bring the lab up and leave it running; the guests of a virtual lab are built first where they are not."""
    process = _process(name)
    lab, clock = process.lab, process.clock
    require_described(lab, process.state)
    if isinstance(process, VirtualLab) and not process.is_up():
        _build(process)
    started_ns = clock.now_ns()
    process.up()
    seconds = (clock.now_ns() - started_ns) / 1e9
    what = "simulated" if lab.kind is LabKind.MOCK else "virtual"
    say(
        f"lab {lab.name} is up ({seconds:.1f} s, {what}): {len(lab.servers)} servers, {len(lab.drives)} drives. "
        f"`rackloop lab status {shlex.quote(name)}` shows its endpoints."
    )
    return EXIT_PASS


def down(name: str, *, steal: bool = False, yes: bool = False) -> int:
    """Take the lab down; a lab that is not up is a lab that is down.

    Raises RackLeased where another holder has a lease of it, unless told to ``steal`` that. The user's own leases from
    `rackloop lab lease` stay. Whether it is leased must be known, unless told to ``steal`` with ``yes``.
    """
    process = _process(name)
    lab = process.lab
    if process.state.is_held():
        require_described(lab, process.state, to_end=True)
        try:
            _require_not_leased(lab, process, steal=steal, yes=yes)
        except RackLeased:
            raise
        except LabError as error:
            # A lab that has filled its disk makes room only by going down.
            if not (steal and yes):
                how = f"`rackloop lab down {shlex.quote(name)} --steal --yes` takes it down, whichever holder has it"
                raise LabError(f"{error}; {how}") from error
            print(f"rackloop: its leases are not known: {error}", file=sys.stderr)
    was_up = process.down()
    say(f"lab {lab.name} is down" if was_up else f"lab {lab.name} was not up")
    return EXIT_PASS


def _require_not_leased(lab: Lab, process: MockLab | VirtualLab, *, steal: bool, yes: bool) -> None:
    here = Holder.here(bound=False)
    try:
        with closing(open_lab_store(lab, process.state, RealClock())) as store:
            leases = Leases(store, lab.name)
            theirs = [lease for lease in leases.held() if lease.holder.process or lease.holder.user != here.user]
            if theirs and not steal:
                raise RackLeased(lab.name, [*map(str, theirs)], options=["take it over (--steal)"])
            if theirs:
                terms = stealing(leases, parts_of(lab), LeaseTerms(purpose="lab down"), yes=yes)
                with leased(lab, store, terms):
                    pass
    except StoreDamaged as error:
        # Taking the lab down is the first step of replacing the store.
        print(f"rackloop: its leases cannot be read: {error}", file=sys.stderr)


def status(name: str, *, as_json: bool) -> int:
    """Print leases, acts left to undo and every endpoint; a lab of this machine that is not up is exit 3."""
    from rackloop_cli.lab.status import holders, print_holders

    lab = load_lab(name)
    process = None if lab.kind is LabKind.PHYSICAL else _process_of(lab)
    if process is not None:
        require_described(lab, process.state)
    held = holders(lab, RealClock())
    # One that is coming up or ending has no endpoints.
    is_up = process is None or (process.state.is_held() and process.state.endpoints_file.exists())
    endpoints = process.status() if process is not None and is_up else {"lab": lab.name, "kind": lab.kind}
    if as_json:
        print(json.dumps({"up": is_up, **endpoints, **held}, indent=2))
    else:
        print_holders(lab, held, name)
        if not is_up:
            say(f"lab {lab.name} is down; start it with `rackloop lab up {shlex.quote(name)}`")
        elif process is not None:
            _print(endpoints)
    return EXIT_PASS if is_up else EXIT_LAB_FAILED


def _print(endpoints: dict[str, Any]) -> None:
    console = Console(markup=False, emoji=False)
    switch, login = endpoints["switch"], endpoints["ssh"]
    kind = "mock, simulated" if endpoints["kind"] == LabKind.MOCK else endpoints["kind"]
    console.print(f"lab {endpoints['lab']} ({kind}) is up, process {endpoints['pid']}")
    console.print(f"switch: {switch['tcp']}, {switch['tty']}" if switch else "no switch", soft_wrap=True)
    console.print(f"NBD: {endpoints['nbd']}", soft_wrap=True)
    console.print(
        f"SSH: -l {login['user']} -i {login['key_file']} -o UserKnownHostsFile={login['known_hosts']}", soft_wrap=True
    )
    if file := endpoints.get("rehearsal"):
        console.print(f"as a rack that is simply there: {file}", soft_wrap=True)
    if lost := endpoints["truth_lost"]:
        console.print(
            f"{lost} records of what the rack did could not be written: make room on its disk and bring it up again",
            soft_wrap=True,
        )
    boxes = plain_table("server, PDU", "SSH", "controller", "answers at")
    for name, server in endpoints["servers"].items():
        bmc = server["bmc"] or {}
        boxes.add_row(name, server["ssh"], bmc.get("driver", "-"), bmc.get("address", "-"))
    for name, pdu in (endpoints["pdu"] or {}).items():
        boxes.add_row(name, "-", pdu["driver"], pdu["address"])
    print_whole(console, boxes)
    table = plain_table("NBD export", "drive", "serial", "protocol")
    for server in endpoints["servers"].values():
        for port in server["ports"].values():
            drive = endpoints["drives"].get(port["drive"], {})
            table.add_row(port["export"], port["drive"] or "-", drive.get("serial", "-"), drive.get("protocol", "-"))
    print_whole(console, table)


def _process(name: str) -> MockLab | VirtualLab:
    """The lab as a process of this machine. Raises BadInput for a physical one."""
    lab = load_lab(name)
    if lab.kind is LabKind.PHYSICAL:
        raise BadInput(f"lab {lab.name} is of kind {lab.kind}: it is not brought up or taken down here")
    return _process_of(lab)


def _process_of(lab: Lab) -> MockLab | VirtualLab:
    return MockLab(lab, RealClock()) if lab.kind is LabKind.MOCK else VirtualLab(lab, RealClock())
