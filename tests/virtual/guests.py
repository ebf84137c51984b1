"""What tests see of the guests of the virtual rack that is up, by the machine's own ssh."""

from __future__ import annotations

import subprocess
from typing import Any

from rackloop.drive_identifiers import is_on_path
from rackloop.lab import Lab, LabState, load_lab
from tests.e2e.command_line import CommandLine, wait_until


def endpoints_of(rackloop: CommandLine) -> dict[str, Any]:
    """Where everything of the rack answers, as the lab wrote it: read in less time than the command line starts."""
    return LabState(rackloop.state_home / "labs" / "virtual").endpoints()


def tell(rackloop: CommandLine, server: str, command: str) -> str:
    """What a command prints on a guest, by the machine's own ssh and the keys that the lab wrote down."""
    endpoints = endpoints_of(rackloop)
    login = endpoints["ssh"]
    host, _, port = endpoints["servers"][server]["ssh"].rpartition(":")
    options = [f"UserKnownHostsFile={login['known_hosts']}", "StrictHostKeyChecking=yes", "IdentitiesOnly=yes"]
    argv = ["ssh", "-F", "none", "-p", port, "-i", login["key_file"], *(f"-o{option}" for option in options)]
    done = subprocess.run([*argv, f"{login['user']}@{host}", command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done
    return done.stdout


def drives_of(rackloop: CommandLine, server: str) -> dict[str, str]:
    """The serial of each drive that the guest's kernel has, by its names under ``/dev/disk/by-path``."""
    script = "cd /dev/disk/by-path && for name in *; do echo $name $(lsblk -dno SERIAL $name); done 2>/dev/null; true"
    pairs = (line.split() for line in tell(rackloop, server, script).splitlines())
    return {pair[0]: pair[1] for pair in pairs if len(pair) == 2}


def at(rackloop: CommandLine, server: str, port: str) -> str | None:
    """The serial of the drive at a server port, as the guest's kernel has it; None where there is none."""
    path: str = endpoints_of(rackloop)["servers"][server]["paths"][port]
    return next((serial for name, serial in drives_of(rackloop, server).items() if is_on_path(name, path)), None)


def comes(rackloop: CommandLine, server: str, port: str, serial: str | None) -> None:
    """Return once the guest's kernel has this drive at this port."""
    wait_until(lambda: at(rackloop, server, port) == serial, lambda: str(drives_of(rackloop, server)))


def comes_all(rackloop: CommandLine, lab: Lab, server: str) -> None:
    """Return once the guest's kernel has every drive of the baseline."""
    paths = endpoints_of(rackloop)["servers"][server]["paths"]
    wanted = {paths[port]: lab.drives[drive].serial for port, drive in lab.joined(server).items()}

    def has_all() -> bool:
        seen = drives_of(rackloop, server).items()
        return all(
            any(one == serial and is_on_path(name, path) for name, one in seen) for path, serial in wanted.items()
        )

    wait_until(has_all, lambda: f"{wanted}, and seen: {drives_of(rackloop, server)}")


def baseline_comes(rackloop: CommandLine) -> None:
    """Return once every guest has its drives."""
    lab = load_lab("virtual")
    for server in lab.servers:
        comes_all(rackloop, lab, server)
