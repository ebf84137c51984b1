# Holds the programs of a server, but those by which whoever asks is reached: ROOT of the control groups, SEATS, WHAT, LONGEST_S.
PATH=$PATH:/usr/sbin:/sbin
export PATH LC_ALL=C
# Where SEATS is not, PAM takes it that no systemd-logind runs: logins and sudo do not wait for one that is held.
root=$1 seats=$2 what=$3 longest_s=$4
# Who is never held: the SSH server, this session, and what ends it in time. Gone with a reboot, as all of this is.
spared=$root/rackloop-spared
# The groups that are held, one a line, and where each process came from that is spared: its number and its group.
held=/run/rackloop-held
moved=/run/rackloop-moved
timer=/run/rackloop-hang

# This process and those it descends from, but for the first of all, each with its group.
ancestors() {
    process=$$
    while [ "$process" -gt 1 ]; do
        group=/ parent=0
        while IFS= read -r line; do
            case $line in 0::*) group=${line#0::} ;; esac
        done <"/proc/$process/cgroup"
        while read -r key value; do
            case $key in PPid:) parent=$value ;; esac
        done <"/proc/$process/status"
        echo "$process $group"
        process=$parent
    done
}

listens() {
    { ls -l "/proc/$1/fd" && echo tcp && cat /proc/net/tcp /proc/net/tcp6; } 2>/dev/null | awk '
        $1 == "tcp" { is_of_all = 1 }
        !is_of_all && match($0, /socket:\[[0-9]+\]/) { mine[substr($0, RSTART + 8, RLENGTH - 9)] }
        is_of_all && $4 == "0A" && ($10 in mine) { found = 1 }
        END { exit !found }'
}

is_held() {
    [ -s "$held" ] && [ "$(cat "$(head -n 1 "$held")/cgroup.freeze" 2>/dev/null)" = 1 ]
}

# Of TIMER, HELD, MOVED, ROOT and SEATS. What was begun meanwhile goes to where the SSH server belongs.
let_go='
[ ! -d "$5.held" ] || mv "$5.held" "$5"
while read -r group; do echo 0 >"$group/cgroup.freeze"; done <"$2"
home=$(tail -n 1 "$3" | cut -d " " -f 2-)
for process in $(cat "$4/rackloop-spared/cgroup.procs"); do
    group=$(sed -n "s/^$process //p" "$3")
    echo "$process" >"$4${group:-$home}/cgroup.procs"
done 2>/dev/null
rmdir "$4/rackloop-spared" 2>/dev/null
rm -f "$1" "$2" "$3"
'

end() {
    if [ -e "$timer" ]; then
        kill -- "-$(cat "$timer")" 2>/dev/null
        rm -f "$timer"
    fi
    [ -e "$held" ] || return 0
    sh -c "$let_go" end "$timer" "$held" "$moved" "$root" "$seats"
}

case $what in
look)
    if [ ! -w "$root/cgroup.procs" ] || ! ls "$root"/*/cgroup.freeze >/dev/null 2>&1; then
        echo "$root has no control groups of version 2 that root may hold" >&2
        exit 5
    fi
    first=$(ancestors | tail -n 1)
    unsafe=$(
        listens "${first%% *}" ||
            echo "its SSH server is started for each connection: nobody could log in to let it go on"
        active_watchdogs
    )
    [ -z "$unsafe" ] || { echo "$unsafe" >&2 && exit 6; }
    ;;
begin)
    is_held && exit 0
    mkdir -p "$spared" || exit 1
    ancestors >"$moved"
    while read -r process group; do
        echo "$process" >"$spared/cgroup.procs" || exit 1
    done <"$moved"
    : >"$held"
    # First what ends it, which goes on whatever becomes of who asked.
    env -u RACKLOOP_COMMAND setsid sh -c 'echo $$ >"$1.new" && mv "$1.new" "$1" && sleep "$6"
        # One that was ended, and begun anew, is another timer'"'"'s.
        [ "$(cat "$1")" = $$ ] || exit 0
        '"$let_go" timer "$timer" "$held" "$moved" "$root" "$seats" "$longest_s" </dev/null >/dev/null 2>&1 &
    tries=500
    until [ -e "$timer" ]; do
        [ "$tries" -gt 0 ] || { end && echo "$timer cannot be written" >&2 && exit 1; }
        tries=$((tries - 1))
        sleep 0.01
    done
    for group in "$root"/*/; do
        group=${group%/}
        [ "$group" != "$spared" ] && [ "$(cat "$group/cgroup.freeze" 2>/dev/null)" = 0 ] && echo "$group"
    done >"$held"
    while read -r group; do
        echo 1 >"$group/cgroup.freeze" || { end && exit 1; }
    done <"$held"
    while read -r group; do
        tries=500
        until grep -qsx 'frozen 1' "$group/cgroup.events"; do
            if [ "$tries" -le 0 ]; then
                end
                echo "a program of ${group##*/} cannot be held: it waits for its kernel" >&2
                exit 1
            fi
            tries=$((tries - 1))
            sleep 0.01
        done
    done <"$held"
    [ ! -d "$seats" ] || mv "$seats" "$seats.held" || { end && exit 1; }
    ;;
stands)
    if is_held; then echo yes; else echo no; fi
    ;;
end)
    end
    ;;
esac
