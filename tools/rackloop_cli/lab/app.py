"""`rackloop lab`: the verbs for labs. Each verb's code is imported when it is called."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rackloop_cli.shared.groups import Group
from rackloop_cli.shared.options import (
    JsonOption,
    LabArgument,
    PriorityOption,
    ServersOption,
    StealOption,
    WaitOption,
    YesOption,
    names_in,
    seconds,
)

lab_app = Group(
    "Check, start, stop and look at labs.",
    "rackloop lab check labs/",
    "rackloop lab up mock",
    "rackloop lab cabling mock",
)


@lab_app.verb(
    "check",
    "rackloop lab check labs/my-rack.yaml",
    "rackloop lab check racks/ --json",
    "rackloop lab check mock --live",
    "rackloop lab check --schema > lab.schema.json",
)
def lab_check(
    paths: Annotated[
        list[str] | None, typer.Argument(metavar="LAB", help="Files, folders of files, or names of labs.")
    ] = None,
    as_json: JsonOption = False,
    schema: Annotated[bool, typer.Option("--schema", help="Print the JSON Schema for editors.")] = False,
    live: Annotated[
        bool, typer.Option("--live", help="Use the rack once: a sector through every port, every tool, every box.")
    ] = False,
) -> None:
    """Check lab descriptions.

    All problems are reported at once, with their location and what to do; one in any file is exit code 2. With --live
    what fails of the rack itself is exit code 3; nothing of it is written or switched.
    """
    from rackloop_cli.lab import check as verb

    raise typer.Exit(verb.run(paths or [], json=as_json, schema=schema, live=live))


@lab_app.verb("list", "rackloop lab list", "rackloop lab list --json")
def lab_list(
    as_json: JsonOption = False,
) -> None:
    """List the labs that are found by name, with kind, state and size.

    In a pipe each is a line, its cells parted by tabs.
    """
    from rackloop_cli.listing import labs as verb

    raise typer.Exit(verb.run(as_json=as_json))


@lab_app.verb("show", "rackloop lab show mock", "rackloop lab show racks/r7.yaml --json")
def lab_show(
    lab: LabArgument,
    as_json: JsonOption = False,
) -> None:
    """Show the servers of a lab (place, asset tag, tags, drives, controller, outlet), and how long things may take.

    In a pipe each is a line, its cells parted by tabs.
    """
    from rackloop_cli.listing import labs as verb

    raise typer.Exit(verb.show(lab, as_json=as_json))


@lab_app.verb("build", "rackloop lab build virtual")
def lab_build(lab: LabArgument) -> None:
    """Build the guests of a virtual lab, and boot one once.

    They are kept for every lab on this machine; what is built already is left as it is.
    """
    from rackloop_cli.lab import up_down as verb

    raise typer.Exit(verb.build(lab))


@lab_app.verb("up", "rackloop lab up mock", "rackloop lab up virtual")
def lab_up(lab: LabArgument) -> None:
    """Bring a mock or a virtual lab up and leave it running."""
    from rackloop_cli.lab import up_down as verb

    raise typer.Exit(verb.up(lab))


@lab_app.verb("down", "rackloop lab down mock", "rackloop lab down mock --steal")
def lab_down(lab: LabArgument, steal: StealOption = False, yes: YesOption = False) -> None:
    """Take a lab down.

    A leased lab is left up, unless the lease is stolen.
    """
    from rackloop_cli.lab import up_down as verb

    raise typer.Exit(verb.down(lab, steal=steal, yes=yes))


@lab_app.verb("status", "rackloop lab status mock", "rackloop lab status mock --json")
def lab_status(
    lab: LabArgument,
    as_json: Annotated[bool, typer.Option("--json", help="Print all of it as JSON.")] = False,
) -> None:
    """Show a lab's leases, acts left to undo, and endpoints.

    A mock or virtual lab that is down is exit code 3.
    """
    from rackloop_cli.lab import up_down as verb

    raise typer.Exit(verb.status(lab, as_json=as_json))


@lab_app.verb(
    "lease",
    "rackloop lab lease mock --for 2h",
    "rackloop lab lease rack7 --servers srv1,srv2 --for '90 min' --purpose 'firmware 2.4 by hand'",
)
def lab_lease(
    lab: LabArgument,
    term_s: Annotated[
        float, typer.Option("--for", metavar="TIME", parser=seconds, help="The term, such as 90min or 2h.")
    ],
    servers: ServersOption = None,
    purpose: Annotated[str, typer.Option(metavar="TEXT", help="The purpose, shown to others.")] = "",
    priority: PriorityOption = 0,
    wait_s: WaitOption = 0.0,
    steal: StealOption = False,
    yes: YesOption = False,
) -> None:
    """Lease a rack, or servers of it, for yourself.

    It excludes all other users until it is released or expires; `run --lease` works within it.
    """
    from rackloop.safety.leases import LeaseTerms
    from rackloop_cli.lab import lease as verb

    terms = LeaseTerms(servers=names_in(servers), purpose=purpose, priority=priority, wait_s=wait_s)
    raise typer.Exit(verb.take(lab, term_s, terms, steal=steal, yes=yes))


@lab_app.verb("release", "rackloop lab release mock 7e36ceb9")
def lab_release(
    lab: LabArgument,
    lease: Annotated[str, typer.Argument(metavar="LEASE", help="The lease, as `lab status` names it.")],
) -> None:
    """Give a lease back before its time is over."""
    from rackloop_cli.lab import lease as verb

    raise typer.Exit(verb.release(lab, lease))


@lab_app.verb(
    "maintain",
    "rackloop lab maintain mock srv1 --reason 'new memory'",
    "rackloop lab maintain mock d01 --reason 'firmware 2.4' --until 2036-11-23T18:00",
    "rackloop lab maintain mock srv1 --end",
)
def lab_maintain(
    lab: LabArgument,
    part: Annotated[str, typer.Argument(metavar="NAME", help="A server or a drive.")],
    reason: Annotated[str | None, typer.Option(metavar="TEXT", help="The reason, shown to others.")] = None,
    until: Annotated[
        str | None, typer.Option(metavar="WHEN", help="When it ends by itself, such as 2036-11-23T18:00.")
    ] = None,
    end: Annotated[bool, typer.Option("--end", help="End the maintenance.")] = False,
) -> None:
    """Take a server or a drive out of service for maintenance.

    No test uses it, nothing is written to it and no fault is injected in it until the maintenance ends.
    """
    from rackloop_cli.lab import maintenance as verb

    raise typer.Exit(verb.maintain(lab, part, reason, until, end=end))


@lab_app.verb(
    "quarantine",
    "rackloop lab quarantine mock",
    "rackloop lab quarantine mock --retest d01",
    "rackloop lab quarantine mock --lift d01 --reason 'a new cable'",
)
def lab_quarantine(
    lab: LabArgument,
    lift: Annotated[str | None, typer.Option(metavar="NAME", help="Put this part back into service.")] = None,
    reason: Annotated[str, typer.Option(metavar="TEXT", help="The reason for lifting it.")] = "",
    retest: Annotated[
        str | None, typer.Option(metavar="NAME", help="Test this part; put it back into service if it works.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the parts in quarantine as JSON.")] = False,
) -> None:
    """Show the parts in quarantine and the tests they failed; or lift a quarantine, by hand or by a passed retest.

    A retest that fails is exit code 3.
    """
    from rackloop_cli.lab import maintenance as verb

    verb.require_one_question(lift, reason, retest, as_json=as_json)
    if retest is not None:
        raise typer.Exit(verb.retest(lab, retest))
    raise typer.Exit(verb.quarantine(lab, lift, reason, as_json=as_json))


@lab_app.verb("cabling", "rackloop lab cabling mock", "rackloop lab cabling my-rack --json")
def lab_cabling(
    lab: LabArgument,
    as_json: JsonOption = False,
) -> None:
    """Check the cables of a lab that is up.

    A row for each server port: the drive that should be there by the description and the live map, and the one its
    server sees. A cable that disagrees is named; one is exit code 3.
    """
    from rackloop_cli.lab import cabling as verb

    raise typer.Exit(verb.run(lab, as_json=as_json))


@lab_app.verb(
    "discover",
    "rackloop lab discover mock --name copy",
    "rackloop lab discover --name rack7 --host srv1=root@10.0.0.11 --host srv2=root@10.0.0.12",
    "rackloop lab discover --name rack7 --host srv1=root@10.0.0.11 --switch tcp://10.0.0.2:5025 --out rack7.yaml",
)
def lab_discover(
    lab: Annotated[
        str | None, typer.Argument(metavar="LAB", help="A lab that is up, whose servers are surveyed again.")
    ] = None,
    name: Annotated[str | None, typer.Option(metavar="NAME", help="The name of the description; else LAB's.")] = None,
    hosts: Annotated[
        list[str] | None,
        typer.Option("--host", metavar="NAME=USER@HOST", help="A server, 'user@host' or 'user@host:port'; repeat it."),
    ] = None,
    known_hosts: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The known_hosts file with the servers' keys; else ~/.ssh/known_hosts."),
    ] = None,
    key: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The private SSH key to log in with; else the agent's.")
    ] = None,
    switch: Annotated[
        str | None,
        typer.Option(metavar="URL", help="The switch: tcp://host:port, or a device such as /dev/ttyUSB0."),
    ] = None,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="The file to write; else NAME.yaml here.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the file if it is there.")] = False,
) -> None:
    """Write a draft lab description from a survey of a live rack's servers.

    Values that could not be found out are comments that say what to fill in. No drive is marked for erasing.
    """
    from rackloop_cli.lab import discover as verb

    raise typer.Exit(
        verb.run(lab, name, hosts or (), known_hosts=known_hosts, key_file=key, switch=switch, out=out, force=force)
    )


@lab_app.verb(
    "provision",
    "rackloop lab provision mock",
    "rackloop lab provision mock --roles base_tools,network_tuning",
    "rackloop lab provision mock --roles network_tuning --set network_tuning_links=[ens1f0]",
    "rackloop lab provision mock --servers srv1 --roles iscsi_target",
    "rackloop lab provision mock --undo",
)
def lab_provision(
    lab: LabArgument,
    roles: Annotated[
        str | None, typer.Option(metavar="ROLE,...", help="Only these roles of the playbook; else all.")
    ] = None,
    servers: Annotated[
        str | None,
        typer.Option(
            metavar="NAME,...", help="Only these servers, the others not leased; tag:NAME is any with the tag."
        ),
    ] = None,
    undo: Annotated[bool, typer.Option("--undo", help="Undo the roles: restore the previous state.")] = False,
    playbook: Annotated[
        str | None, typer.Option(metavar="FILE", help="A playbook of your own instead of the shipped one.")
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Set a variable of the playbook; may be given again."),
    ] = None,
    timeout_s: Annotated[float, typer.Option(metavar="SECONDS", min=1.0, max=86400.0, help="The time limit.")] = 600.0,
    as_json: JsonOption = False,
) -> None:
    """Provision the servers of a lab.

    Runs an Ansible playbook on them; a second run changes nothing. A mock lab must be up.
    """
    from rackloop_cli.lab import provision as verb

    raise typer.Exit(
        verb.run(
            lab,
            roles=roles,
            servers=names_in(servers),
            undo=undo,
            playbook=playbook,
            settings=settings or (),
            timeout_s=timeout_s,
            as_json=as_json,
        )
    )
