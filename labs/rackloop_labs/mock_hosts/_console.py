"""The serial console of a mock server: its output, and its answers to keys."""

from __future__ import annotations

from collections.abc import Iterable

from rackloop_drivers.boxes import SerialLine
from rackloop_labs.mock_hosts._view import KernelLine

# As the kernel's default console_loglevel has it: debug messages are not printed.
_LEAST_PRIORITY = 7
_RETURNS = b"\r\n"
_RUBOUTS = b"\x7f\b"
_LONGEST_NAME = 64

SYSRQ, KILLED_INIT = "sysrq triggered crash", "Attempted to kill init! exitcode=0x00000009"
AT_NMI = "NMI: Not continuing"
"""The causes of a panic: it was asked for, the init process ended, or an interrupt came that nothing explains."""
# The program and the function that it was in, and what the kernel says before.
_BEFORE = {
    SYSRQ: ("bash", "sysrq_handle_crash+0x16/0x20", "sysrq: Trigger a crash"),
    KILLED_INIT: ("init", "do_exit.cold+0x15/0x4f", ""),
    AT_NMI: ("swapper/0", "nmi_panic.cold+0xc/0xc", "Uhhuh. NMI received for unknown reason 20 on CPU 0."),
}

# In the words of Linux 6.1, x86.
_PANIC = """\
Kernel panic - not syncing: {why}
CPU: 0 PID: 1 Comm: {command} Not tainted 6.1.0 #1
Hardware name: Rackloop simulated server, BIOS 1.0
Call Trace:
 <TASK>
 dump_stack_lvl+0x44/0x5c
 panic+0x118/0x2ed
 {function}
 </TASK>
Kernel Offset: disabled
---[ end Kernel panic - not syncing: {why} ]---"""


class MockConsole:
    """The console of the server ``name``: firmware, kernel, and a getty that refuses every login."""

    def __init__(self, name: str, line: SerialLine) -> None:
        self._name = name
        self._line = line
        self._is_up = False
        self._is_asking = False
        self._typed = b""
        line.on_input = self._take

    def boot(self) -> None:
        """Print what firmware and boot loader say; the kernel's messages follow."""
        self.end()
        self._print(f"Rackloop BIOS 1.0  {self._name}", "Booting from Hard Disk...", "Loading Linux 6.1.0 ...")

    def up(self) -> None:
        """Offer a login."""
        self._is_up, self._is_asking, self._typed = True, False, b""
        self._print("", f"Debian GNU/Linux 12 {self._name} ttyS0", "")
        self._prompt()

    def end(self) -> None:
        """Say nothing any more, as without power."""
        self._is_up = False

    def tell(self, lines: Iterable[KernelLine]) -> None:
        """Print messages of the kernel."""
        self._print(*(str(line) for line in lines if line.priority < _LEAST_PRIORITY))

    def panic(self, at_us: int, why: str) -> None:
        """Print the last words of a kernel."""
        command, function, before = _BEFORE[why]
        text = _PANIC.format(why=why, command=command, function=function)
        said = [before] if before else []
        self._print(*(str(KernelLine(at_us, line)) for line in (*said, *text.splitlines())))
        self.end()

    def halt(self, at_us: int) -> None:
        """Print the last words of a server that was told to halt."""
        self._print(str(KernelLine(at_us, "reboot: System halted")))
        self.end()

    def _print(self, *lines: str) -> None:
        if lines:
            self._line.say("".join(f"{line}\r\n" for line in lines).encode("ascii", errors="replace"))

    def _prompt(self) -> None:
        self._line.say(b"Password: " if self._is_asking else f"{self._name} login: ".encode())

    def _take(self, data: bytes) -> None:
        """Echo a user's name, not the password, and refuse both."""
        if not self._is_up:
            return
        for byte in (data[n : n + 1] for n in range(len(data))):
            if byte in _RETURNS:
                self._enter()
            elif byte in _RUBOUTS:
                if self._typed and not self._is_asking:
                    self._line.say(b"\b \b")
                self._typed = self._typed[:-1]
            elif byte >= b" " and len(self._typed) < _LONGEST_NAME:
                self._typed += byte
                if not self._is_asking:
                    self._line.say(byte)

    def _enter(self) -> None:
        self._line.say(_RETURNS)
        if self._is_asking:
            self._print("", "Login incorrect")
        self._is_asking = bool(self._typed) and not self._is_asking
        self._typed = b""
        self._prompt()
