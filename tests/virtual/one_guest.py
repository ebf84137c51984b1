"""A virtual rack of one guest with two drives, for tests that take its power or its kernel away."""

from __future__ import annotations

from pathlib import Path

import yaml

from rackloop.lab import load_lab
from tests.deadlines import soon
from tests.e2e.command_line import CommandLine
from tests.virtual.guest_login import answers, tell

SERVER = "srv1"
# In software, on a machine that is busy with other things.
WITHIN_S = 900.0


def one_guest(rackloop: CommandLine, name: str) -> Path:
    """The description of a rack of one server that two boxes switch, and of two drives."""
    document = yaml.safe_load(load_lab("virtual").source.read_text())
    document["name"] = name
    document["servers"] = {SERVER: document["servers"][SERVER]}
    document["drives"] = {name: document["drives"][name] for name in ("d01", "d02")}
    document["baseline"] = {SERVER: {"p0": "d01", "p1": "d02"}}
    document["times"] = {"act": "300 s", "answer": "30 s", "tools": "300 s"}
    return rackloop.write(f"{name}.yaml", document)


def boot_of(rackloop: CommandLine, file: Path) -> str:
    """The number of the boot that the guest is in, once it answers."""
    assert soon(WITHIN_S).poll(lambda: answers(rackloop, file, SERVER), every_s=1.0), console(rackloop, file)[-500:]
    return tell(rackloop, file, SERVER, "cat /proc/sys/kernel/random/boot_id").strip()


def console(rackloop: CommandLine, file: Path) -> str:
    """What the guest has said since the lab came up."""
    return Path(rackloop.endpoints(str(file))["servers"][SERVER]["console_log"]).read_text(errors="replace")
