"""Commands on guests of a virtual rack, by the machine's own ssh and the keys that the lab wrote down."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.e2e.command_line import CommandLine

# A guest in software that others keep from the processor has not failed: its sshd takes its time for each login.
_ANSWERS_WITHIN_S = 300
_LOOKS_FOR_S = 10


def tell(rackloop: CommandLine, lab: Path, server: str, command: str) -> str:
    """The output of a command on a guest, which is there."""
    done = _run(rackloop, lab, server, command, _ANSWERS_WITHIN_S)
    assert done.returncode == 0, done
    return done.stdout


def answers(rackloop: CommandLine, lab: Path, server: str) -> bool:
    """Whether a command runs on a guest, which may not be there."""
    return _run(rackloop, lab, server, "true", _LOOKS_FOR_S).returncode == 0


def _run(
    rackloop: CommandLine, lab: Path, server: str, command: str, within_s: int
) -> subprocess.CompletedProcess[str]:
    endpoints = rackloop.endpoints(str(lab))
    login = endpoints["ssh"]
    host, _, port = endpoints["servers"][server]["ssh"].rpartition(":")
    options = [f"UserKnownHostsFile={login['known_hosts']}", "StrictHostKeyChecking=yes", "IdentitiesOnly=yes"]
    options += [f"ConnectTimeout={within_s}", f"ServerAliveInterval={within_s}"]
    argv = ["ssh", "-F", "none", "-p", port, "-i", login["key_file"], *(f"-o{option}" for option in options)]
    argv += [f"{login['user']}@{host}", command]
    return subprocess.run(argv, capture_output=True, text=True, check=False)
