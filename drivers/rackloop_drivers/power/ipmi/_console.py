"""The serial console of a server by its IPMI controller: Serial over LAN, as ipmitool speaks it."""

from __future__ import annotations

import contextlib
import os
import pty
import subprocess
import tempfile
import tty
from typing import IO

from rackloop.clock import Clock, Deadline
from rackloop.errors import DeadlineExceeded, LabError, NotConnected, RackloopError
from rackloop_drivers.power.ipmi._tool import Ipmitool
from rackloop_drivers.stream_console import DescriptorStream, StreamConsole

_COMMAND = ("sol", "activate")
_OPERATIONAL = b"[SOL Session operational.  Use ~? for help]"
# Controllers gather characters for a while, and send again what got lost.
_DELAY_S = 0.3
_LOOK_S = 0.05
_FAREWELL_S = 2.0
_COMPLAINTS = 4096
# A tilde at the beginning of a line is ipmitool's own, unless it is doubled.
_ESCAPE, _LINE_ENDS = b"~", b"\r\n"


class IpmiConsole(StreamConsole):
    """The Console of the server a controller belongs to, by Serial over LAN; a controller has one such session."""

    def __init__(self, ipmitool: Ipmitool, clock: Clock) -> None:
        self._ipmitool = ipmitool
        super().__init__(f"serial over LAN at {ipmitool.address}", clock, _DELAY_S, self._activate)

    def _activate(self, deadline: Deadline) -> SolStream:
        with contextlib.ExitStack() as undo:
            errors = undo.enter_context(tempfile.TemporaryFile())
            with self._ipmitool.turn(deadline):
                # It will not run without a terminal, which it sets to raw.
                ours, theirs = pty.openpty()
                undo.callback(os.close, ours)
                try:
                    tty.setraw(theirs)
                    process = self._ipmitool.start(*_COMMAND, output=theirs, errors=errors, deadline=deadline)
                finally:
                    os.close(theirs)
                undo.pop_all()
                stream = SolStream(self.where, process, ours, errors, self._clock)
                undo.callback(stream.close)
                self._await_session(stream, process, deadline)
            undo.pop_all()
        return stream

    def _await_session(self, stream: SolStream, process: subprocess.Popen[bytes], deadline: Deadline) -> None:
        said = b""
        while _OPERATIONAL not in said:
            if deadline.is_over():
                raise DeadlineExceeded(f"{self.where}: no session came about in time; is the controller hung?")
            try:
                said += stream.read(min(_LOOK_S, deadline.remaining_s()))
            except NotConnected:
                process.wait()
                raise self._refusal(f"{said.decode(errors='replace')}\n{stream.complaints()}") from None
        stream.put_back(said.partition(_OPERATIONAL)[2].lstrip(_LINE_ENDS))

    def _refusal(self, complaints: str) -> RackloopError:
        if "already active" in complaints:
            return LabError(
                f"{self.where}: another session has the console, and a controller has one; end that session, or, once "
                "it is unused, `ipmitool sol deactivate`"
            )
        if "payload disabled" in complaints.lower():
            return LabError(f"{self.where}: it is disabled; enable it with `ipmitool sol set enabled true`")
        return self._ipmitool.failure(_COMMAND, complaints)


class SolStream(DescriptorStream):
    """The stream of ``ipmitool sol activate``: its input is a pipe, its ``output`` a pseudo terminal."""

    def __init__(
        self, where: str, process: subprocess.Popen[bytes], output: int, errors: IO[bytes], clock: Clock
    ) -> None:
        assert process.stdin is not None, "it is a pipe"  # noqa: S101
        super().__init__(where, output, self._end, writes_to=process.stdin.fileno())
        self._process = process
        self._output = output
        self._errors = errors
        self._clock = clock
        self._ahead = b""
        self._is_line_start = True

    def put_back(self, data: bytes) -> None:
        """Have ``data`` read first."""
        self._ahead = data

    def read(self, timeout_s: float) -> bytes:
        """Take the bytes that have come."""
        if self._ahead:
            ahead, self._ahead = self._ahead, b""
            return ahead
        return super().read(timeout_s)

    def write(self, data: bytes, deadline: Deadline) -> None:
        """Send all of ``data``, ipmitool's escape character doubled where it would take it for one."""
        escaped = bytearray()
        for byte in (data[n : n + 1] for n in range(len(data))):
            escaped += byte * 2 if byte == _ESCAPE and self._is_line_start else byte
            self._is_line_start = byte in _LINE_ENDS
        super().write(bytes(escaped), deadline)

    def complaints(self) -> str:
        """The end of what ipmitool complained of."""
        self._errors.seek(0)
        return self._errors.read().decode(errors="replace")[-_COMPLAINTS:]

    def lost(self, reason: object) -> NotConnected:
        """The error for a session that ended, with the last that ipmitool said."""
        lines = [line.strip() for line in self.complaints().splitlines() if line.strip()]
        return super().lost(lines[-1] if lines else reason)

    def _end(self) -> None:
        """End of input has ipmitool give the console back, which it sees once nothing is left that it has to print."""
        process = self._process
        if process.stdin is not None:
            with contextlib.suppress(OSError):
                process.stdin.close()
        ending = Deadline.after(self._clock, _FAREWELL_S)
        with contextlib.suppress(NotConnected):
            while process.poll() is None and not ending.is_over():
                super().read(_LOOK_S)
        try:
            process.wait(ending.remaining_s())
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        os.close(self._output)
        self._errors.close()
