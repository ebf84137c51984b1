"""The shell wrapper of a command on a server: a session of its own, with its start and end marked in the output.

The server's end of a channel must not close before ours has said the last word: what paramiko sends after it has
answered a close makes OpenSSH end the whole connection, and nothing orders the two. So the shell tells the end of the
command in band, and ends itself only when its input does.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from rackloop.errors import BadInput
from rackloop_drivers.host._watchdog import GONE

ZERO = "rackloop-exec"
"""The name in front of what the shell says when it cannot execute a program."""

NOT_BEGUN = -1
"""The status of a command that began after the server had given its harness up: it ended before it did anything."""

_PID = b"rackloop-pid "
_END = "\0rackloop-end {label} "
# Linux takes no single argument longer than 128 KiB, and the login shell gets all of this as one.
_LONGEST_COMMAND_BYTES = 120_000

# The command leads a session, and thus a process group, of its own: setsid(1) does not fork in a command
# substitution, which leads no group. What it leaves in the group is killed when it ends. RACKLOOP_COMMAND is how what a
# dead harness or a lost connection left running is known again; one that begins after its watchdog has looked for it
# ends itself before it names its process. A command that the watchdog killed has no end to tell. A program's place may
# be known to administrators alone. Number 0 is no process: there is no setsid, or none was begun.
_OUTER = (
    r"""
export LC_ALL=C.UTF-8 RACKLOOP_COMMAND="$1"
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin
inner=$2
shift 2
exec 4>&1
group=$(exec setsid sh -c "$inner" rackloop-exec "$@")
status=$?
[ -n "$group" ] || echo "rackloop-pid 0" >&4
kill -9 "-$group" 2>/dev/null
if [ "$status" -eq 137 ] && [ -e """
    + GONE
    + r""" ]; then
  [ -z "$group" ] || exit
  status=-1
fi
printf '\0rackloop-end %s %d\n' "$RACKLOOP_COMMAND" "$status" >&4
printf '\0rackloop-end %s %d\n' "$RACKLOOP_COMMAND" "$status" >&2
read -r _ && exec cat >/dev/null 2>&1
"""
)
_INNER = f'[ ! -e {GONE} ] || exit 137; echo "$$"; echo "rackloop-pid $$" >&4; exec "$@" >&4 4>&-'


def quoted(argv: Sequence[str]) -> str:
    """A command as a shell of the POSIX kind reads it; raises BadInput where no server could run it."""
    text = shlex.join(argv)
    if "\0" in text:
        raise BadInput(f"{text!r}: cannot be a command: embedded null byte")
    if not argv or len(text.encode()) > _LONGEST_COMMAND_BYTES:
        raise BadInput(
            f"a command of {len(argv)} arguments and {len(text.encode())} bytes cannot be run by SSH: give it a "
            f"program, less than {_LONGEST_COMMAND_BYTES} bytes, and what is longer as a file (put_text)"
        )
    return text


def told(argv: Sequence[str]) -> str:
    """The command for messages, of a script its first line."""
    return shlex.join(f"{text.strip().splitlines()[0]} ..." if "\n" in text.strip() else text for text in argv)


def wrapped(command: str, label: str) -> str:
    """The text that has a login shell of the POSIX kind run what was :func:`quoted`.

    ``label`` is its RACKLOOP_COMMAND: the lab, the lease and the connection that it runs for, parted by slashes.
    """
    return f"sh -c {shlex.quote(_OUTER)} rackloop {label} {shlex.quote(_INNER)} {command}"


class Head:
    """The beginning of standard output, up to the line that names the process. A login shell may print before it."""

    def __init__(self) -> None:
        self.pid: int | None = None
        self._is_over = False
        self._held = bytearray()

    def strip(self, chunk: bytes) -> bytes:
        """The part of ``chunk`` that the command printed itself."""
        if self._is_over:
            return chunk
        self._held += chunk
        _, found, rest = self._held.partition(_PID)
        number, newline, output = rest.partition(b"\n")
        if not (found and newline):
            return b""
        self._is_over = True
        self.pid = int(number) or None
        return bytes(output)


class Tail:
    """The end of a stream: the command's status after a mark. What may be the mark is held until it is known."""

    def __init__(self, label: str) -> None:
        self.status: int | None = None
        self._mark = _END.format(label=label).encode()
        self._held = b""

    def strip(self, chunk: bytes) -> bytes:
        """The part of ``chunk`` and of what was held before that is the command's output; nothing after the mark is."""
        if self.status is not None:
            return b""
        data = self._held + chunk
        output, found, rest = data.partition(self._mark)
        number, newline, _ = rest.partition(b"\n")
        if newline:
            self.status = int(number)
        elif not found:
            # The mark has one zero byte, its first: what is behind the last one may go on to be the mark.
            begun = data.rfind(b"\0")
            if begun >= 0 and self._mark.startswith(data[begun:]):
                output = data[:begun]
        self._held = data[len(output) :]
        return output


class UnbufferedTail(Tail):
    """The end of a stream that is delivered without buffering, for commands that are asked and answer.

    Where the mark comes in two pieces, the first is taken for output.
    """

    def strip(self, chunk: bytes) -> bytes:
        """The part of ``chunk`` that is the command's output."""
        if self.status is not None:
            return b""
        given = len(self._held)
        data = self._held + chunk
        output, found, rest = data.partition(self._mark)
        if not found:
            self._held = data[1 - len(self._mark) :]
            return chunk
        self._held = found + rest
        number, newline, _ = rest.partition(b"\n")
        if newline:
            self.status = int(number)
        return output[given:]
