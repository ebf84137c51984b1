"""Installation of Rackloop's own programs on servers."""

from __future__ import annotations

import hashlib
from pathlib import Path
from weakref import WeakKeyDictionary

from rackloop.abilities import Executor, Host
from rackloop.clock import Deadline
from rackloop.errors import LabError, ToolError
from rackloop.native import NativeProgram, find_binary

_MODE = 0o755
_NAME_DIGITS = 16

# Prints where the program belongs, the state of the file that is there already, and its sum, unless that state is the
# given one: a change of its content is one of the time in it. A folder that somebody else made in /var/tmp could be
# changed under us, so it must be our own.
_FIND_PLACE = """
for folder in "${HOME:-/nowhere}/.cache/rackloop" "/var/tmp/rackloop-$(id -u)"; do
  mkdir -p -m 700 "$folder" 2>/dev/null
  [ -O "$folder" ] && [ -w "$folder" ] || continue
  echo "$folder/$1"
  [ -x "$folder/$1" ] || exit 0
  state=$(stat -c '%i %s %z' "$folder/$1")
  echo "$state"
  [ "$state" = "$2" ] || sha256sum <"$folder/$1"
  exit 0
done
echo "neither ~/.cache nor /var/tmp can be written" >&2
exit 1
"""
_SUM = 'sha256sum <"$1"'
# The state of each file whose sum was right, by host and SHA-256.
_SUMMED: WeakKeyDictionary[Host, dict[str, str]] = WeakKeyDictionary()
# The kind of machine that each host is, which stays what it is.
_MACHINES: WeakKeyDictionary[Host, str] = WeakKeyDictionary()


def deliver_program(executor: Executor, program: NativeProgram, deadline: Deadline) -> str:
    """The path of a native program where ``executor`` runs commands.

    A host is given the build for its kind of machine, for which it is asked once, as ``deliver`` does. Raises ToolError
    where there is no such build, LabError where the host does not name its kind, and as ``deliver``.
    """
    if not isinstance(executor, Host):
        return str(find_binary(program))
    machine = _MACHINES.get(executor)
    if machine is None:
        machine = _MACHINES[executor] = _machine_of(executor, deadline)
    return deliver(executor, find_binary(program, machine), deadline)


def deliver(host: Host, binary: Path, deadline: Deadline) -> str:
    """The path of ``binary`` on ``host``, put there unless the very same program is there already.

    It lies in ``~/.cache/rackloop``, or in ``/var/tmp`` where that cannot be written, under a name with the beginning
    of its SHA-256; the whole sum is compared on the host, once for as long as the file stays as it is. Raises
    ToolError where ``binary`` cannot be read or ``sha256sum`` is missing there, LabError where the host has no place
    for it or keeps other bytes than it was given.
    """
    try:
        content = binary.read_bytes()
    except OSError as error:
        raise ToolError(f"{binary} cannot be read: {error.strerror}; build it with native/build") from error
    digest = hashlib.sha256(content).hexdigest()
    name = f"{binary.name}-{digest[:_NAME_DIGITS]}"
    known = _SUMMED.setdefault(host, {})
    found = host.run(("sh", "-c", _FIND_PLACE, "place", name, known.get(digest, "")), deadline)
    if found.status:
        raise LabError(f"{host.name}: there is no place for {binary.name}: {found.stderr.strip()}")
    path, state, summed_up, *_ = [*found.stdout.splitlines(), "", ""]
    if state and (known.get(digest) == state or summed_up.split()[:1] == [digest]):
        known[digest] = state
        return path
    host.write_file(path, content, deadline, mode=_MODE)
    summed = host.run(("sh", "-c", _SUM, "sum", path), deadline)
    if summed.status:
        raise ToolError(f"{host.name}: sha256sum failed: {summed.stderr.strip()}; install coreutils there")
    if summed.stdout.split()[:1] != [digest]:
        raise LabError(
            f"{host.name}: {path} has the SHA-256 {summed.stdout.split()[0]} after {digest} was written; look at that "
            "server's disk and memory"
        )
    return path


def _machine_of(host: Host, deadline: Deadline) -> str:
    named = host.run(("uname", "-m"), deadline)
    machine = named.stdout.strip()
    if named.status or not machine:
        raise LabError(f"{host.name}: uname -m failed: {named.stderr.strip() or 'it printed nothing'}")
    return machine
