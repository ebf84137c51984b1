"""`rackloop lab discover`: a draft lab description from a survey of a live rack's servers."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from rackloop.abilities import Fabric, LiveMap
from rackloop.clock import Clock, Deadline, RealClock
from rackloop.errors import EXIT_LAB_FAILED, EXIT_PASS, BadInput, DescriptionError, NotSupported
from rackloop.lab import Lab, LabState, check_files, load_lab
from rackloop.names import NAME
from rackloop.units import counted
from rackloop_cli.shared.output import write_whole
from rackloop_drivers.endpoint import host_and_port
from rackloop_drivers.fabric.flexfabric import FlexFabric, FlexFabricDriver, open_flexfabric
from rackloop_drivers.host import SshAccess, SshHost, run_on_all
from rackloop_drivers.host_tools import survey_host
from rackloop_labs import open_lab
from rackloop_labs.described import endpoints_of
from rackloop_labs.discovery import at_rest, inventories, with_paths
from rackloop_labs.draft_description import FILL_IN, DraftDescription, FoundServer, FoundSwitch
from rackloop_labs.ssh_access import ssh_accesses

# At the least: a lab that is described says how long its servers' tools may take.
_WITHIN_S = 60.0
_SSH_PORT = 22


def run(
    lab: str | None,
    name: str | None,
    hosts: Sequence[str],
    *,
    known_hosts: Path | None,
    key_file: Path | None,
    switch: str | None,
    out: Path | None,
    force: bool,
) -> int:
    """Survey a lab that is up, or servers as ``NAME=user@host:port`` and a switch, and write the description.

    Nothing is written where a server cannot be asked. A description that does not pass `lab check`, as where two drives
    share an identity, is exit 3.
    """
    clock = RealClock()
    known = load_lab(lab) if lab else None
    name = name or (known.name if known else None)
    if known is not None and hosts:
        raise BadInput("--host is for a rack without a description: give either LAB or --host")
    if known is None and not hosts:
        raise BadInput("nothing to discover: name a lab that is up, or each server with --host NAME=user@host")
    if name is None or not NAME.fullmatch(name):
        raise BadInput(f"--name {name or 'is missing'}: give a name of letters, digits, '_' and '-', a letter first")
    out = out or Path(f"{name}.yaml")
    there = f"{out} is there already: choose another file with --out, or replace it with --force"
    if out.exists() and not force:
        raise BadInput(there)
    if known is not None:
        found = _of_lab(known, name, clock)
    else:
        found = _of_hosts(_accesses(hosts, known_hosts, key_file), switch, name, clock)
    text = found.text(clock.wall())
    try:
        write_whole(out, text, replacing=force)
    except FileExistsError as error:
        raise BadInput(there) from error
    except OSError as error:
        raise BadInput(f"{out} cannot be written: {error.strerror}; choose another file with --out") from error
    drives = sum(len(server.inventory.drives) for server in found.servers)
    print(
        f"wrote {out}: {counted(len(found.servers), 'server')}, {counted(drives, 'drive')}, "
        f"{counted(text.count(FILL_IN) - 1, 'thing')} to fill in"
    )
    [(_, checked)] = check_files([out])
    if isinstance(checked, DescriptionError):
        print(checked, file=sys.stderr)
        return EXIT_LAB_FAILED
    return EXIT_PASS


def _of_lab(lab: Lab, name: str, clock: Clock) -> DraftDescription:
    """The description of a lab that is up, from its servers."""
    state = LabState.of(lab.name)
    deadline = _deadline(clock, lab)
    with open_lab(lab, clock, state, token=None, bring_up=False) as bench:
        _say_how_many(len(lab.servers))
        switch = None
        endpoints = endpoints_of(lab, state)
        if lab.has_switch:
            # Drives are described at the switch ports that the map joins them to.
            live, seen = at_rest(bench, deadline)
            switch = _found(bench.equipment.fabric, _control_of(lab, endpoints), deadline, live)
        else:
            seen = inventories(bench, deadline)
        surveyed = with_paths(bench.lab)
    servers = [FoundServer(access, seen[name]) for name, access in ssh_accesses(lab, endpoints).items()]
    return DraftDescription(name, servers, switch, surveyed)


def _of_hosts(accesses: Sequence[SshAccess], control: str | None, name: str, clock: Clock) -> DraftDescription:
    """The description of a rack that has none yet, from its servers."""
    deadline = _deadline(clock)
    with ExitStack() as stack:
        _say_how_many(len(accesses))
        hosts = [stack.enter_context(SshHost(access, clock)) for access in accesses]
        seen = run_on_all(hosts, survey_host, deadline)
        switch = None
        if control:
            fabric = FlexFabric(open_flexfabric(control, clock, deadline))
            stack.callback(fabric.close)
            is_tcp = control.startswith("tcp://")
            address = ("tcp", control.removeprefix("tcp://")) if is_tcp else ("serial", control)
            switch = _found(fabric, address, deadline, fabric.live_map(deadline))
    return DraftDescription(name, [FoundServer(access, seen[access.name]) for access in accesses], switch)


def _deadline(clock: Clock, lab: Lab | None = None) -> Deadline:
    return Deadline.after(clock, _WITHIN_S if lab is None else lab.time_s("tools", at_least=_WITHIN_S))


def _found(fabric: Fabric, control: tuple[str, str], deadline: Deadline, live: LiveMap) -> FoundSwitch:
    return FoundSwitch(fabric.identify(deadline), control, fabric.port_count(deadline), live.pairs)


def _control_of(lab: Lab, endpoints: Mapping[str, Any] | None) -> tuple[str, str]:
    """The address of a lab's switch, from its description or, for one of this machine, its endpoints."""
    if not isinstance(lab.fabric, FlexFabricDriver):
        raise NotSupported(f"the switch of {lab.name} is no flexfabric, and its description is not drafted yet")
    return lab.fabric.where() if endpoints is None else ("tcp", str(endpoints["switch"]["tcp"]))


def _accesses(hosts: Sequence[str], known_hosts: Path | None, key_file: Path | None) -> list[SshAccess]:
    known_hosts = known_hosts or Path("~/.ssh/known_hosts").expanduser()
    accesses: list[SshAccess] = []
    for text in hosts:
        name, _, where = text.partition("=")
        user, at, address = where.rpartition("@")
        if not NAME.fullmatch(name) or not address or bool(user) != bool(at):
            raise BadInput(f"--host {text}: write NAME=user@host or NAME=user@host:port, such as srv1=root@10.0.0.11")
        if name in {access.name for access in accesses}:
            raise BadInput(f"--host {text}: a server is named {name} already")
        host, port = host_and_port(address, _SSH_PORT)
        accesses.append(
            SshAccess(
                name,
                host,
                known_hosts.absolute(),
                port=port,
                user=user or "root",
                key_file=key_file.absolute() if key_file else None,
                sudo=user not in ("", "root"),
            )
        )
    return accesses


def _say_how_many(servers: int) -> None:
    """Progress goes to standard error."""
    print(f"asking {counted(servers, 'server')} ...", file=sys.stderr)
