"""Commands on guests of a virtual rack, by the machine's own ssh and the keys that the lab wrote down."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.e2e.command_line import CommandLine


def tell(rackloop: CommandLine, lab: Path, server: str, command: str) -> str:
    """What a command prints on a guest."""
    done = _run(rackloop, lab, server, command)
    assert done.returncode == 0, done
    return done.stdout


def answers(rackloop: CommandLine, lab: Path, server: str) -> bool:
    """Whether a command runs on a guest."""
    return _run(rackloop, lab, server, "true").returncode == 0


def _run(rackloop: CommandLine, lab: Path, server: str, command: str) -> subprocess.CompletedProcess[str]:
    endpoints = rackloop.endpoints(str(lab))
    login = endpoints["ssh"]
    host, _, port = endpoints["servers"][server]["ssh"].rpartition(":")
    options = [f"UserKnownHostsFile={login['known_hosts']}", "StrictHostKeyChecking=yes", "IdentitiesOnly=yes"]
    options += ["ConnectTimeout=10", "ServerAliveInterval=10"]
    argv = ["ssh", "-F", "none", "-p", port, "-i", login["key_file"], *(f"-o{option}" for option in options)]
    argv += [f"{login['user']}@{host}", command]
    return subprocess.run(argv, capture_output=True, text=True, check=False)
