"""`rackloop lab provision`: an Ansible playbook on the servers of a lab."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import asdict
from typing import Any

from rich.console import Console

from rackloop.clock import Deadline, RealClock
from rackloop.errors import EXIT_PASS, BadInput, DescriptionError
from rackloop.lab import Lab, LabState, Part, PartKind, Parts, load_lab, parts_of
from rackloop.lab.yaml import compose
from rackloop.names import guess
from rackloop.plan import find_playbook, resolved, roles_of
from rackloop.safety.leases import Leases, LeaseTerms, leased
from rackloop.safety.maintenance import OutOfService
from rackloop.safety.store import open_lab_store
from rackloop.units import counted
from rackloop_cli.shared.lab_session import in_maintenance, refuse_in_maintenance
from rackloop_cli.shared.output import print_json
from rackloop_cli.shared.own_lease import own_lease
from rackloop_cli.shared.tables import plain_table, print_whole
from rackloop_drivers.provision import Provisioned, Provisioner, TaskDone, TaskStatus
from rackloop_labs import ssh_accesses
from rackloop_labs.choosing import chosen_servers
from rackloop_labs.described import endpoints_of, require_described

_TELLING = {TaskStatus.CHANGED: "green", TaskStatus.FAILED: "red", TaskStatus.UNREACHABLE: "red"}


def run(
    name: str,
    *,
    roles: str | None,
    servers: Sequence[str] = (),
    undo: bool,
    playbook: str | None,
    settings: Sequence[str],
    timeout_s: float,
    as_json: bool = False,
) -> int:
    """Run the playbook, saying what changes as it does, or in the end all tasks as JSON; returns the exit status.

    Raises BadInput where the lab, a role or a setting is wrong, LabError where the lab is not up or a task fails.
    """
    lab = load_lab(name)
    if undo and playbook:
        raise BadInput("--undo takes back the shipped roles: leave --playbook out, or run your own playbook without it")
    played = find_playbook(playbook or ("undo" if undo else "site"))
    chosen = _chosen(roles, roles_of(played), played.name)
    variables = dict(map(_setting, settings))
    servers = chosen_servers(lab, servers)
    wanted = parts_of(lab, servers or None)
    state, clock = LabState.of(lab.name), RealClock()
    require_described(lab, state)
    endpoints = endpoints_of(lab, state)
    console = Console(highlight=False, soft_wrap=True, quiet=as_json)

    def say(task: TaskDone) -> None:
        if task.status in _TELLING:
            where = f"{task.role}: {task.task}" if task.role else task.task
            console.print(f"  {task.host}  {task.status:<11}  {where}", style=_TELLING[task.status], markup=False)

    with ExitStack() as stack:
        store = stack.enter_context(closing(open_lab_store(lab, state, clock)))
        within = own_lease(Leases(store, lab.name), wanted)
        terms = LeaseTerms(servers, purpose=f"provisioning with {played.name}", within=within)
        held = stack.enter_context(leased(lab, store, terms))
        in_service = _in_service(lab, servers or tuple(lab.servers), in_maintenance(lab, store), console)
        working_for = f"{lab.name}/{held.lease.id}"
        done = Provisioner(in_service, ssh_accesses(in_service, endpoints), clock, working_for).run(
            played,
            Deadline.after(clock, timeout_s),
            roles=chosen,
            servers=[name for name in servers if name in in_service.servers],
            variables=variables,
            on_task=say,
            check=held.check,
        )
    _print(done, console)
    if as_json:
        hosts = {host: asdict(tally) for host, tally in sorted(done.hosts.items())}
        tasks = [asdict(task) for task in done.tasks]
        print_json(playbook=done.playbook, duration_s=done.duration_s, servers=hosts, tasks=tasks)
    return EXIT_PASS


def _in_service(lab: Lab, wanted: Sequence[str], out: Mapping[Part, OutOfService], console: Console) -> Lab:
    """The lab without the parts in maintenance; ``wanted`` servers among them are printed.

    Raises BadInput where no wanted server is left.
    """
    left = lab.without(out.keys())
    if not any(name in left.servers for name in wanted):
        refuse_in_maintenance(lab, Parts(map(Part.server, wanted)), out)
    for part, why in out.items():
        if part.kind is PartKind.SERVER and part.name in wanted:
            console.print(f"left alone: {why}", markup=False)
    return left


def _chosen(written: str | None, known: Sequence[str], playbook: str) -> tuple[str, ...]:
    roles = tuple(role.strip() for role in (written or "").split(",") if role.strip())
    for role in roles:
        if role not in known:
            raise BadInput(f"--roles {written}: {playbook} has no role {role!r}; {guess(role, known)}")
    if written is not None and not roles:
        raise BadInput(f"--roles {written!r} names no role: leave it out for all of them; {guess('', known)}")
    return roles


def _setting(written: str) -> tuple[str, Any]:
    """The variable, its value read as a plan's ``vars`` are."""
    key, equals, text = written.partition("=")
    if not equals or not key.isidentifier():
        raise BadInput(f"--set {written}: write KEY=VALUE, such as --set network_tuning_links=[ens1f0]")
    try:
        composed = compose(f"{key}: {text}", "--set").value
    except DescriptionError as error:
        raise BadInput(f"--set {written}: {error.problems[0].message}") from None
    return key, resolved(composed[key]) if isinstance(composed, dict) else None


def _print(done: Provisioned, console: Console) -> None:
    """Print the skipped tasks with their reasons, then the tally of each server."""
    left_out: dict[str, set[str]] = {}
    for task in done.tasks:
        if task.status is TaskStatus.SKIPPED and task.reason:
            left_out.setdefault(task.reason, set()).add(f"{task.role}: {task.task}" if task.role else task.task)
    for reason, tasks in left_out.items():
        console.print(f"left out, {reason}: {'; '.join(sorted(tasks))}", markup=False)
    table = plain_table("server", "ok", "changed", "left out")
    for host, tally in sorted(done.hosts.items()):
        table.add_row(host, str(tally.ok), str(tally.changed), str(tally.skipped))
    print_whole(console, table)
    console.print(f"{done.playbook} on {counted(len(done.hosts), 'server')} in {done.duration_s:.1f} s")
