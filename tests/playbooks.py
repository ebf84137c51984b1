"""Playbooks run on a mock rack."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rackloop.clock import Deadline
from rackloop.plan import find_playbook
from rackloop_drivers.host import SshAccess
from rackloop_drivers.provision import Provisioned, Provisioner, TaskDone
from rackloop_labs import ssh_accesses
from tests.deadlines import CLOCK
from tests.mock_rack import MockRack


def accesses(rack: MockRack, *servers: str) -> dict[str, SshAccess]:
    found = ssh_accesses(rack.lab, rack.endpoints)
    return {name: found[name] for name in servers}


def play(
    rack: MockRack,
    playbook: str | Path,
    *servers: str,
    within_s: float = 300.0,
    tasks: list[TaskDone] | None = None,
    reaches: Mapping[str, SshAccess] | None = None,
    **more: Any,
) -> Provisioned:
    """Run a playbook on servers; ``tasks`` receives what ended even where the whole fails."""
    ended = [] if tasks is None else tasks
    provisioner = Provisioner(rack.lab, reaches or accesses(rack, *servers), CLOCK)
    return provisioner.run(find_playbook(playbook), Deadline.after(CLOCK, within_s), on_task=ended.append, **more)
