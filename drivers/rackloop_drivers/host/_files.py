"""Files of a server: the shell scripts by which they are found and written, a large one in pieces."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rackloop.abilities import Completed

PIECE_BYTES = 512 << 10
"""The most that a server is given at once. Behind what it has not taken, its watchdog hears nothing of the harness."""

FIND = """
case $1 in */*) [ -f "$1" ] && [ -x "$1" ] && printf %s "$1"; exit ;; esac
IFS=:
for folder in $PATH; do
  [ -f "$folder/$1" ] && [ -x "$folder/$1" ] && printf %s "$folder/$1" && exit
done
exit 1
"""
_REFUSE_FOLDER = """
umask 077
[ ! -d "$1" ] || { echo "Is a directory" >&2; exit 1; }
"""
# What was cut short by a lost connection must not take the place of a file: the length is compared first.
WRITE = f"""{_REFUSE_FOLDER}
part=$(mktemp "$1.XXXXXXXX") || exit
cat >"$part" && [ "$(wc -c <"$part")" -eq "$3" ] && chmod "$2" "$part" && mv -f "$part" "$1" && exit
status=$?
rm -f "$part"
exit "$status"
"""
# mktemp's folder is of mode 700. A reboot may have emptied /tmp, so the folder is looked for each time. It is the
# fourth argument, behind those of a file that is written there, if one is.
FOLDER = """
folder=$4
[ -O "$folder" ] || folder=$(mktemp -d "${TMPDIR:-/tmp}/rackloop-XXXXXXXX") || exit
printf %s "$folder"
"""
PUT = f"""{FOLDER}
set -- "$folder/$1" "$2" "$3"
{WRITE}"""

_BEGIN = f'{_REFUSE_FOLDER}mktemp "$1.XXXXXXXX"'
_APPEND = 'cat >>"$1" && [ "$(wc -c <"$1")" -eq "$2" ]'
_PLACE = 'chmod "$2" "$3" && mv -f "$3" "$1"'
_REMOVE = 'rm -f "$1"'


def write_in_pieces(
    run: Callable[[Sequence[str], bytes], tuple[bytes, Completed]], path: str, content: bytes, mode: int
) -> Completed:
    """Write a file, whole or not at all, by commands that are given PIECE_BYTES each; the one that failed, or the last.

    ``run`` is given a command and its input, and gives what it printed.
    """
    begun, done = run(("sh", "-c", _BEGIN, "begin", path), b"")
    if done.status:
        return done
    part = begun.decode().rstrip("\n")
    for at in range(0, len(content), PIECE_BYTES):
        piece = content[at : at + PIECE_BYTES]
        _, done = run(("sh", "-c", _APPEND, "append", part, str(at + len(piece))), piece)
        if done.status:
            break
    else:
        _, done = run(("sh", "-c", _PLACE, "place", path, f"{mode:o}", part), b"")
    if done.status:
        run(("sh", "-c", _REMOVE, "remove", part), b"")
    return done


def unwritten(server: str, path: str, said: str) -> str:
    """The message of a file that could not be written."""
    return f"{server}: {path} cannot be written: {said.strip() or 'it was cut short'}"
