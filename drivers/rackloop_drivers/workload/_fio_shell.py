"""Shell scripts around a fio, run where it does."""

from __future__ import annotations

# No status of fio's own, nor of a loader that lacks a library.
NOT_THERE = 99
ASK = f"command -v fio >/dev/null || exit {NOT_THERE}; fio --version && fio --enghelp"
# The first line says which process to interrupt, what time the host has, and what the preparation left to say.
START = 'cd "$1" && eval "$2" && echo "$$ $(date +%s%N) $said" && shift 2 && exec "$@"'
# The logs that exist, each after a line with its name, then fio's report after a line of its own. All stay there: who
# had no time to hear it asks again.
COLLECT = """
cd "$1" && report="$2" && from="$3" && shift 3 || exit
for log; do echo "@$log"; cat "$log" 2>/dev/null; done
echo "@"
tail -c "+$from" "$report"
"""
REMOVE = 'cd "$1" && name="$2" && shift 2 && rm -f "$name".* "$@"'

# A signal that comes before fio handles it kills fio. SigCgt is the mask of those it handles (proc(5)): this waits for
# SIGINT, bit 1, and SIGUSR1, bit 9. The first thread takes what comes unless it blocks it, SigBlk, as it does while it
# makes another, or has yet to take the signal before, ShdPnd, as on a host whose processors are wanted. Then another
# one gets it: its select(2) fails, and fio 3.33 never reports again. So there must be as many threads as are asked for.
# Other signals may stay blocked for good, by what started the harness: those do not count.
# The status says whether there was anybody left to signal.
SIGNAL = """
while seen=$(grep -E "^(State|Threads|ShdPnd|SigBlk|SigCgt):" "/proc/$1/status" 2>/dev/null); do
  threads=${seen#*Threads:}
  case "$seen" in
    *State:*[ZX]*) exit 1 ;;
    *[2367abef]?SigBlk:* | *[2367abef]???SigBlk:*) ;;
    *[2367abef]?SigCgt:* | *[2367abef]???SigCgt:*) ;;
    *[2367abef]?[2367abef]) [ $((${threads%%ShdPnd*})) -lt "$3" ] || { kill "-$2" "$1"; exit; } ;;
  esac
  sleep 0.005
done
exit 1
"""
# In the shell, with fio's process as $2: whether it has not ended. Nothing is started for it: who waits asks often, on
# a host whose processors are wanted by fio.
STILL_RUNS = '{ read -r _ _ state _ <"/proc/$2/stat"; } 2>/dev/null && case "$state" in Z | X) false ;; esac'
# Says what came to the report behind so many bytes as soon as there is any; its status says whether fio still runs.
NEXT_REPORT = f"""while [ "$(cat "$1.json" 2>/dev/null | wc -c)" -le BYTES ] && {STILL_RUNS}; do sleep 0.02; done
tail -c "+$((BYTES + 1))" "$1.json" 2>/dev/null
{STILL_RUNS}"""
