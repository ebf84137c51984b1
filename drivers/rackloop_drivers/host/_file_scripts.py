"""Shell scripts by which files and programs of a server are found, written and read."""

from __future__ import annotations

FIND = """
case $1 in */*) [ -f "$1" ] && [ -x "$1" ] && printf %s "$1"; exit ;; esac
IFS=:
for folder in $PATH; do
  [ -f "$folder/$1" ] && [ -x "$folder/$1" ] && printf %s "$folder/$1" && exit
done
exit 1
"""
# What was cut short by a lost connection must not take the place of a file: the length is compared first.
WRITE = """
umask 077
[ ! -d "$1" ] || { echo "Is a directory" >&2; exit 1; }
part=$(mktemp "$1.XXXXXXXX") || exit
cat >"$part" && [ "$(wc -c <"$part")" -eq "$3" ] && chmod "$2" "$part" && mv -f "$part" "$1" && exit
status=$?
rm -f "$part"
exit "$status"
"""


# mktemp's folder is of mode 700. A reboot may have emptied /tmp, so the folder is looked for each time.
PUT = f"""
folder=$4
[ -O "$folder" ] || folder=$(mktemp -d "${{TMPDIR:-/tmp}}/rackloop-XXXXXXXX") || exit
printf %s "$folder"
set -- "$folder/$1" "$2" "$3"
{WRITE}"""


def unwritten(server: str, path: str, said: str) -> str:
    """The message of a file that could not be written."""
    return f"{server}: {path} cannot be written: {said.strip() or 'it was cut short'}"
