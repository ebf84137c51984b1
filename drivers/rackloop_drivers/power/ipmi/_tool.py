"""`ipmitool -I lanplus` for one controller: the password never on the command line, its errors as Rackloop's."""

from __future__ import annotations

import signal
import subprocess
from contextlib import AbstractContextManager
from typing import IO, Any

from rackloop.clock import Deadline
from rackloop.errors import DeadlineExceeded, LabError, NotConnected, ToolError
from rackloop.lab import environment_for_programs
from rackloop_drivers.boxes import Login
from rackloop_drivers.endpoint import host_and_port

_PROGRAM = "ipmitool"
_PORT = 623
# How long a controller may take to answer that a session is closed.
_FAREWELL_S = 1.0
# What switching and reading the log need, and no more.
_PRIVILEGE = "OPERATOR"
_PRIVILEGE_FAILED = f"Set Session Privilege Level to {_PRIVILEGE} failed"
# What it says, with -v, when the controller does not want the account, or has locked it.
_REFUSALS = (
    "RAKP 2 HMAC is invalid",
    "RAKP 2 message indicates an error",
    "RAKP 4 message indicates an error",
    "ICV on RAKP 4 message is invalid",
    f"{_PRIVILEGE_FAILED}: ",
)
_SILENCES = ("Get Auth Capabilities error", "Could not open socket", "Address lookup for")
_NO_SUITE = "no matching cipher suite"
_NO_SESSION = "insufficient resources"


class Ipmitool:
    """Runs ipmitool commands on the controller at ``address`` (``host`` or ``host:port``), one at a time.

    Every command is a login of its own, as an operator and with ``cipher_suite`` (17: SHA-256 and AES-128).
    """

    def __init__(self, address: str, login: Login, *, cipher_suite: int = 17) -> None:
        self.address = address
        self._login = login
        self._host, self._port = host_and_port(address, _PORT)
        self._cipher_suite = cipher_suite

    def run(self, *command: str, deadline: Deadline) -> str:
        """The command's output.

        Raises LoginRefused, and never asks again, where the controller does not want the account; DeadlineExceeded,
        NotConnected where nothing answers, ToolError without ipmitool, else LabError with what it said.
        """
        with self._login.turn(deadline):
            return self._run(("-v", *command), deadline)

    def table(self, *command: str, deadline: Deadline) -> str:
        """The command's output as comma separated values. Raises as :meth:`run` does.

        Only with -v does ipmitool say why a login failed, and only without does it print tables: so it logs in with
        -v first.
        """
        with self._login.turn(deadline):
            self._run(("-v", "mc", "info"), deadline)
            return self._run(("-c", *command), deadline)

    def start(self, *command: str, output: int, errors: IO[bytes], deadline: Deadline) -> subprocess.Popen[bytes]:
        """Begin a command that goes on, its input a pipe, its output ``output`` and what it complains of in ``errors``.

        Hold :meth:`turn` until it is logged in, and raise :meth:`failure` where it ends before.
        """
        argv, environment = self._prepared(("-v", *command))
        if deadline.is_over():
            raise DeadlineExceeded(f"{self._what(command)} was not run: the deadline is over; allow more time")
        try:
            return subprocess.Popen(
                argv, stdin=subprocess.PIPE, stdout=output, stderr=errors, bufsize=0, env=environment
            )
        except OSError as error:
            raise _missing(error) from None

    def turn(self, deadline: Deadline) -> AbstractContextManager[None]:
        """Have the account to oneself while the block lasts."""
        return self._login.turn(deadline)

    def failure(self, command: tuple[str, ...], said: str) -> LabError | ToolError:
        """The error for a command that failed, by what it complained of."""
        return self._failure(self._what(command), said)

    def _what(self, command: tuple[str, ...]) -> str:
        return f"ipmitool {' '.join(command)} at {self.address}"

    def _prepared(self, command: tuple[str, ...]) -> tuple[list[str], dict[str, str]]:
        """The command line, and the environment that has the password."""
        argv = [_PROGRAM, "-I", "lanplus", "-H", self._host, "-p", str(self._port), "-U", self._login.user, "-E"]
        argv += ["-Z", "-N", "1", "-R", "2", "-C", str(self._cipher_suite), "-L", _PRIVILEGE, *command]
        environment = {**environment_for_programs(), "LC_ALL": "C.UTF-8", "IPMITOOL_PASSWORD": self._login.password()}
        environment.pop("IPMI_PASSWORD", None)
        return argv, environment

    def _run(self, command: tuple[str, ...], deadline: Deadline) -> str:
        what = self._what(command)
        argv, environment = self._prepared(command)
        if deadline.is_over():
            raise DeadlineExceeded(f"{what} was not run: the deadline is over; allow more time")
        try:
            running = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                errors="replace",
                env=environment,
            )
        except OSError as error:
            raise _missing(error) from None
        with running:
            try:
                printed, said = running.communicate(timeout=deadline.remaining_s())
            except subprocess.TimeoutExpired:
                raise DeadlineExceeded(
                    f"{what} was not answered in time; is the controller hung, or unreachable?"
                ) from None
            finally:
                end_tool(running)
        if running.returncode == 0:
            return printed
        raise self._failure(what, said)

    def _failure(self, what: str, said: str) -> LabError | ToolError:
        lines = [line.strip() for line in said.splitlines() if line.strip()]
        if _NO_SESSION in said:
            return LabError(f"{what}: the controller has no session to spare; close some, or try again later")
        for refusal in _REFUSALS:
            if refusal in said:
                line = next(line for line in lines if refusal.strip() in line)
                return self._login.refused(f"ipmitool says {line.removeprefix('> ')!r}")
        if _NO_SUITE in said:
            return LabError(
                f"{what}: the controller has no cipher suite {self._cipher_suite}; give one it has as cipher_suite: in "
                "the lab description (ipmitool channel getciphers ipmi)"
            )
        if any(silence in said for silence in _SILENCES):
            return NotConnected(f"{what}: nothing answers there; check the address, and whether the box has power")
        if _PRIVILEGE_FAILED in said:
            return DeadlineExceeded(f"{what}: the controller answers, but opens no session; is it hung?")
        return LabError(f"{what} failed: {lines[-1] if lines else 'it said nothing'}")


def end_tool(running: subprocess.Popen[Any], within_s: float = _FAREWELL_S) -> None:
    """End an ipmitool that still runs, and its session: a controller has few, and keeps one that is lost for a minute.

    Where it is interrupted it closes the session; where it is killed it does not.
    """
    if running.poll() is not None:
        return
    running.send_signal(signal.SIGINT)
    try:
        running.communicate(timeout=within_s)
    except subprocess.TimeoutExpired:
        running.kill()


def _missing(error: OSError) -> ToolError:
    return ToolError(f"{_PROGRAM} cannot be run: {error.strerror}; install the package ipmitool on this machine")
