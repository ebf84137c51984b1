"""A watchdog on the server that ends a connection's commands once the harness is gone.

OpenSSH sends no signal to a command without a terminal when its client goes, so that a job which writes would write on.
The watchdog reads lines that come every few seconds. At the end of its input, which is the end of the client or of
sshd, and after a silence, which is a cut network or a client that stands still, it kills whatever carries its
connection's label in the environment.
"""

from __future__ import annotations

import contextlib
import shlex
import threading
from typing import TYPE_CHECKING

from rackloop.clock import Deadline
from rackloop.safety import END_LABELLED
from rackloop_drivers.host._connection import Connection
from rackloop_drivers.host._paramiko import hang_up

if TYPE_CHECKING:
    from paramiko import Channel

# A lease ends 10 s after its holder was cut off, at the earliest; a server's silence ends 9 s after it, at the latest.
_BEAT_S = 2.0
_TICK_S = 3
_GOODBYE_S = 1.0

# Commands that are about to begin look for this folder once they can be found by their label, so that none escapes.
GONE = '"${TMPDIR:-/tmp}/rackloop-gone-${RACKLOOP_COMMAND##*/}"'

# Two ticks in a row without a line are a silence. One alone is not: a machine that stood still itself and goes on finds
# the lines that came meanwhile only after its clock has run out.
_WATCHDOG = (
    END_LABELLED
    + r"""
label=$1 tick_s=$2
at_the_end() {
  RACKLOOP_COMMAND=$label
  mkdir -m 700 """
    + GONE
    + r""" 2>/dev/null
  unset RACKLOOP_COMMAND
  end_labelled "$label"
}
quiet=0 nap=
trap 'quiet=0' USR1
trap '[ -z "$nap" ] || kill "$nap" 2>/dev/null; exit 0' TERM
exec 3<&0 >/dev/null 2>&1
{
  while read -r word; do
    [ "$word" != bye ] || { kill -TERM "$$"; exit 0; }
    kill -USR1 "$$" || break
  done
  at_the_end
  kill -TERM "$$"
} <&3 &
reader=$!
exec 3<&-
while [ "$quiet" -lt 2 ]; do
  quiet=$((quiet + 1))
  sleep "$tick_s" &
  nap=$!
  until wait "$nap" || [ "$?" -le 128 ] || ! kill -0 "$nap"; do :; done
done
kill "$reader"
at_the_end
"""
)


class Watchdog:
    """The watchdog of one connection. Made before any command runs over it, it watches until :meth:`dismiss`.

    Where it ends by itself, as when it was killed on the server, the connection is closed: nothing runs unwatched.
    """

    def __init__(self, server: str, connection: Connection, deadline: Deadline) -> None:
        command = f"sh -c {shlex.quote(_WATCHDOG)} rackloop-watchdog {connection.label} {_TICK_S}"
        self._connection = connection
        self._is_dismissed = threading.Event()
        self._channel: Channel = connection.open_session(deadline)
        try:
            connection.execute(self._channel, command, f"{server}: the watchdog of its commands", deadline)
        except BaseException:
            hang_up(self._channel)
            raise
        self._beating = threading.Thread(target=self._beat, name=f"watchdog of {server}", daemon=True)
        self._beating.start()

    def dismiss(self) -> None:
        """Let it go: all that ran over the connection has ended."""
        self._is_dismissed.set()
        with contextlib.suppress(OSError, EOFError):
            self._channel.settimeout(_GOODBYE_S)
            self._channel.sendall(b"bye\n")
            self._channel.status_event.wait(_GOODBYE_S)

    def _beat(self) -> None:
        while not self._is_dismissed.wait(_BEAT_S):
            try:
                if self._channel.exit_status_ready():
                    break
                self._channel.sendall(b"\n")
            except (OSError, EOFError):
                break
        if not self._is_dismissed.is_set():
            self._connection.close()
