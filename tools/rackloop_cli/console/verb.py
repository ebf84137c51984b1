"""`rackloop console LAB SERVER`: listening to a server's console, and typing there with a lease."""

from __future__ import annotations

import os
import select
import sys
import termios
import tty
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from threading import Event, Lock

from rackloop.abilities import Console
from rackloop.clock import Clock, Deadline, RealClock
from rackloop.errors import EXIT_BAD_INPUT, EXIT_LAB_FAILED, EXIT_PASS, BadInput, RackloopError
from rackloop.lab import Lab, LabState, Part, load_lab
from rackloop.names import guess
from rackloop.safety.leases import Holder, Lease, Leases
from rackloop.safety.store import open_lab_store
from rackloop_cli.console.keys import HELP, Command, KeyFilter
from rackloop_cli.console.permit import TypingPermit
from rackloop_cli.shared.interruption import interruptible
from rackloop_labs.console_follower import ConsoleFollower
from rackloop_labs.console_lines import ConsoleLine, ConsoleLog
from rackloop_labs.consoles import opened_consoles

_ONCE_S = 10.0
_SILENCE_S = 1.0
_LOOK_S = 0.1
_SENT_WITHIN_S = 5.0
_READ_SIZE = 1024


def run(name: str, server: str, *, log: Path | None, once: bool, for_s: float | None, force: bool) -> int:
    """Print what the console says until told to end; exit 3 where it cannot be heard, or says nothing in time."""
    if for_s is None and once:
        for_s = _ONCE_S
    if for_s is not None and for_s <= 0:
        raise BadInput(f"--for {for_s:g} s is no time to listen; write one such as 30s or 5min")
    lab, clock = load_lab(name), RealClock()
    _require_console(lab, server)
    state = LabState.of(lab.name)
    with ExitStack() as stack:
        consoles = stack.enter_context(opened_consoles(lab, clock, state))
        permit = _say_who_holds(lab, server, state, clock, force=force)
        screen = Screen(sys.stdin.isatty() and sys.stdout.isatty() and not once)
        if log is not None:
            screen.log = _opened(log, lab, server, consoles.by_server[server], clock)
            stack.callback(screen.close_log)
        follower = ConsoleFollower(consoles.by_server[server], clock, screen.take, consoles.secrets, screen.hear)
        stack.enter_context(interruptible())
        follower.start()
        stack.callback(follower.stop)
        if screen.is_terminal:
            with _raw_terminal(screen):
                _converse(follower, consoles.by_server[server], screen, clock, for_s, permit)
        else:
            _listen(follower, screen, clock, for_s, once=once)
        screen.finish()
        if screen.is_unwritten:
            return EXIT_BAD_INPUT
        if screen.is_gone:
            return EXIT_PASS
        if follower.trouble is not None and (once or follower.wait(0)):
            print(f"rackloop: {follower.trouble}", file=sys.stderr)
            return EXIT_LAB_FAILED
        if once and not screen.said.is_set():
            print(f"rackloop: the console of {server} said nothing within {for_s:g} s", file=sys.stderr)
            return EXIT_LAB_FAILED
    return EXIT_PASS


class Screen:
    """The output: bytes on a terminal and lines elsewhere, and a log, if there is one.

    ``said`` is set when the console says something; ``is_gone`` once the output takes nothing more, because its reader
    has gone or its disk is full. ``is_unwritten`` says that a disk did not take what was to be kept.
    """

    def __init__(self, is_terminal: bool) -> None:
        self.is_terminal = is_terminal
        self.log: ConsoleLog | None = None
        self.said = Event()
        self.is_gone = False
        self.is_unwritten = False
        self._lock = Lock()

    def hear(self, data: bytes) -> None:
        """Show bytes."""
        self.said.set()
        if self.is_terminal:
            with suppress(OSError):
                os.write(sys.stdout.fileno(), data)

    def take(self, lines: Sequence[ConsoleLine]) -> None:
        """Show and keep lines."""
        with self._lock:
            if self.log is not None:
                try:
                    self.log.write(lines)
                except OSError as error:
                    self.close_log()
                    self._lose("the log", error)
        for line in lines:
            self._show(line)

    def close_log(self) -> None:
        """Write no log any more."""
        if self.log is not None:
            # What its disk did not take is tried once more.
            with suppress(OSError):
                self.log.close()
            self.log = None

    def _lose(self, what: str, error: OSError) -> None:
        self.is_unwritten = True
        self.remark(f"{what} cannot be written: {error.strerror}; what comes now is not in it")

    def _show(self, line: ConsoleLine) -> None:
        if line.is_remark:
            self.remark(line.text)
        elif not self.is_terminal and not self.is_gone:
            try:
                print(line.text, flush=True)
            except BrokenPipeError:
                self.is_gone = True
            except OSError as error:
                self.is_gone = True
                self._lose("standard output", error)

    def remark(self, text: str) -> None:
        """Say something that the console did not."""
        end = "\r\n" if self.is_terminal else "\n"
        sys.stderr.write(f"[rackloop: {text}]{end}")
        sys.stderr.flush()

    def finish(self) -> None:
        """Have Python not complain of a reader that has gone."""
        if self.is_gone:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _listen(follower: ConsoleFollower, screen: Screen, clock: Clock, for_s: float | None, *, once: bool) -> None:
    """Return when the time is over, the console cannot be had, or, ``once``, it is silent after it said something."""
    deadline = None if for_s is None else Deadline.after(clock, for_s)
    while not (follower.wait(_SILENCE_S if once else _LOOK_S) or screen.is_gone):
        if deadline is not None and deadline.is_over():
            return
        if once and screen.said.is_set():
            screen.said.clear()
            if follower.wait(_SILENCE_S) or not screen.said.is_set():
                screen.said.set()
                return


def _converse(
    follower: ConsoleFollower,
    console: Console,
    screen: Screen,
    clock: Clock,
    for_s: float | None,
    permit: TypingPermit,
) -> None:
    """Send what is typed until the user leaves."""
    keys, has_told = KeyFilter(), False
    deadline = None if for_s is None else Deadline.after(clock, for_s)
    screen.remark("leave with ~. at the beginning of a line; ~? lists the escapes")
    while not follower.wait(0) and not (deadline is not None and deadline.is_over()):
        if not select.select([sys.stdin], [], [], _LOOK_S)[0]:
            continue
        if not (typed := os.read(sys.stdin.fileno(), _READ_SIZE)):
            return
        sent, commands = keys.feed(typed)
        if sent and not permit.may_type():
            if not has_told:
                screen.remark(f"{permit.why_not}: what is typed is not sent")
            has_told = True
        elif sent:
            try:
                console.send(sent, Deadline.after(clock, _SENT_WITHIN_S))
            except RackloopError as error:
                screen.remark(f"not sent: {error}")
        for command in commands:
            if command is Command.LEAVE:
                return
            for line in HELP:
                screen.remark(line)


@contextmanager
def _raw_terminal(screen: Screen) -> Iterator[None]:
    """Have every key come as it is typed, Ctrl-C too, and the terminal as it was when the block ends."""
    before = termios.tcgetattr(sys.stdin)
    tty.setraw(sys.stdin)
    try:
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)
        screen.is_terminal = False
        sys.stderr.write("\n")


def _say_who_holds(lab: Lab, server: str, state: LabState, clock: Clock, *, force: bool) -> TypingPermit:
    """Say who holds the server, and give the permission to type: with a lease of the user's own, or by force."""
    part, here = Part.server(server), Holder.here(bound=False)

    def leases() -> list[Lease]:
        with closing(open_lab_store(lab, state, clock)) as store:
            return [lease for lease in Leases(store, lab.name).held() if lease.parts.covers(part)]

    def is_own(held: Iterable[Lease]) -> bool:
        return force or any(lease.holder.process is None and lease.holder.user == here.user for lease in held)

    held = leases()
    for lease in held:
        print(f"[rackloop: {lease}]", file=sys.stderr)
    if not (may_type := is_own(held)):
        whose = "" if held else f"{server} is not leased; "
        how = f"to type, lease it (`rackloop lab lease {lab.name} --servers {server}`), or add --force"
        print(f"[rackloop: {whose}reading only: {how}]", file=sys.stderr)
    return TypingPermit(lambda: force or is_own(leases()), clock, at_first=may_type)


def _require_console(lab: Lab, server: str) -> None:
    if server not in lab.servers:
        raise BadInput(f"no server of {lab.name} is named {server!r}; {guess(server, lab.servers)}")
    if lab.servers[server].console is None:
        having = [name for name, described in lab.servers.items() if described.console is not None]
        others = f"; {', '.join(having)} have one" if having else ""
        raise BadInput(f"{lab.source} describes no console of {server}{others}; give it console:")


def _opened(log: Path, lab: Lab, server: str, console: Console, clock: Clock) -> ConsoleLog:
    try:
        return ConsoleLog(log, f"Console of {server}, lab {lab.name}: {console.where}", clock)
    except OSError as error:
        raise BadInput(f"--log {log}: {error.strerror}; name a file that can be written") from None
