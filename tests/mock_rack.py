"""A running mock lab, and third-party programs that reach its servers."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rackloop.lab import Lab, LabState, load_lab
from rackloop_drivers.rackd import RackdControl
from rackloop_labs import MockLab, open_lab
from rackloop_labs.labd_control import HostState, LabdControl
from rackloop_labs.mock import MockBench
from tests.deadlines import CLOCK, soon

_COMMAND_S = 120.0
_POLL_S = 5e-3
_PATIENT_S = {"act": 60.0, "online": 60.0, "settle": 60.0, "tools": 60.0}


class MockRack:
    """A mock lab that is up, with ``endpoints`` as ``lab status --json`` prints them."""

    def __init__(self, lab: Lab, state: LabState) -> None:
        self.lab = lab
        self.state = state
        self.endpoints: dict[str, Any] = json.loads(state.endpoints_file.read_text())
        self.control = LabdControl(state)

    def address(self, server: str) -> tuple[str, int]:
        """Where the server's SSH answers."""
        host, _, port = self.endpoints["servers"][server]["ssh"].rpartition(":")
        return host, int(port)

    def options(self) -> list[str]:
        """What OpenSSH's programs need to log in."""
        shown = self.endpoints["ssh"]
        return [
            *("-F", "none", "-i", shown["key_file"], "-o", "IdentitiesOnly=yes", "-o", "BatchMode=yes"),
            *("-o", f"UserKnownHostsFile={shown['known_hosts']}", "-o", "StrictHostKeyChecking=yes"),
        ]

    def ssh_argv(self, server: str, *words: str) -> list[str]:
        """OpenSSH's ``ssh``, to the server."""
        host, port = self.address(server)
        return ["ssh", *self.options(), "-p", str(port), f"{self.endpoints['ssh']['user']}@{host}", *words]

    def ssh(self, server: str, command: str, *, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        """Run a command on the server by OpenSSH's ``ssh``, whatever its status."""
        return run(self.ssh_argv(server, command), stdin=stdin)

    def says(self, server: str, command: str) -> str:
        """What a command prints on the server; it has to succeed."""
        done = self.ssh(server, command)
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout.decode().rstrip("\n")

    @contextmanager
    def running(self, server: str, command: str) -> Iterator[subprocess.Popen[bytes]]:
        """A command on the server that has begun, and is killed at the end."""
        argv, pipe = self.ssh_argv(server, f"echo ready; {command}"), subprocess.PIPE
        with subprocess.Popen(argv, stdin=pipe, stdout=pipe, stderr=pipe, bufsize=0) as ssh:
            assert ssh.stdout is not None
            assert ssh.stdout.readline() == b"ready\n"
            try:
                yield ssh
            finally:
                ssh.kill()

    def becomes(self, server: str, state: HostState) -> None:
        """Wait until the server is in ``state``."""
        self._wait(server, lambda now: now is state)

    def follows_power(self, server: str, *, is_on: bool) -> None:
        """Wait until the server is off exactly where it has no power, for which it takes a moment to boot."""
        self._wait(server, lambda now: (now is not HostState.OFF) is is_on)

    def _wait(self, server: str, fits: Callable[[HostState], bool]) -> None:
        now = soon().poll(lambda: self.control.states(soon())[server], fits, every_s=_POLL_S)
        assert fits(now), f"{server} is still {now}"

    @contextmanager
    def rackd(self) -> Iterator[RackdControl]:
        """The simulated rack's own control."""
        control = RackdControl(Path(self.endpoints["control"]), CLOCK)
        try:
            yield control
        finally:
            control.close()


def run(argv: Sequence[str], *, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    """Run a program of this machine to its end, whatever its status."""
    return subprocess.run(argv, input=stdin, capture_output=True, timeout=_COMMAND_S, check=False)


@contextmanager
def running_mock_rack(root: Path, name: str = "mock") -> Iterator[MockRack]:
    """A shipped mock lab, up for as long as the block lasts, its state below ``root``.

    Nothing may have gone wrong in labd by then: what does is said in its log.
    """
    lab = patient(load_lab(name))
    state = LabState.of(lab.name, root=root)
    mock = MockLab(lab, CLOCK, state)
    leash = mock.up(leashed=True, seed=1)
    assert leash is not None
    try:
        yield MockRack(lab, state)
    finally:
        mock.release(leash)
    assert state.log.read_text() == ""


@contextmanager
def running_mock_bench(root: Path, name: str | Path = "mock") -> Iterator[MockBench]:
    """The bench of a mock lab, shipped or described in a file, that is brought up with it; its state below ``root``."""
    lab = patient(load_lab(name))
    with open_lab(lab, CLOCK, LabState.of(lab.name, root=root), None, seed=1) as bench:
        assert isinstance(bench, MockBench)
        yield bench


def patient(lab: Lab) -> Lab:
    """The lab with times that its acts, drives and tools do not reach where the machine stands still for a while."""
    described = lab.times.model_dump(exclude_none=True)
    return lab.model_copy(update={"times": lab.times.model_copy(update={**_PATIENT_S, **described})})
