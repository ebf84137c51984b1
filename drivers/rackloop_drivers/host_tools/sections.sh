# What the scripts that come after this one have in common; the first argument is how long a tool may take, in seconds.
# Every section begins with a line that a record separator (ASCII 30) starts, on both streams; JSON never has one.
wait_s=$1
shift
PATH=$PATH:/usr/sbin:/sbin
export PATH LC_ALL=C

begin() {
    printf '\036%s\n' "$*"
    printf '\036%s\n' "$*" >&2
}

# Tools run side by side. What each says is kept in memory, as a server whose disk is full is read all the same; on the
# disk where there is no such memory, or it takes nothing more.
for place in /dev/shm "${TMPDIR:-/tmp}"; do
    said=$(mktemp -d "$place/rackloop-said-XXXXXX") && echo >"$said/room" && break
    rm -rf "$said"
    said=
done 2>/dev/null
[ -n "$said" ] || { echo "neither /dev/shm nor $place takes a file; free some space" >&2; exit 1; }
asked=1000 tools=

# Removes what surveys that were killed have left there, an hour ago at least.
forget() {
    [ $# -lt 2 ] || find "$@" -maxdepth 0 -mmin +60 -exec rm -rf {} + 2>/dev/null
}
forget "$place"/rackloop-said-*

ask() {
    asked=$((asked + 1))
    begin "$1 $2" >"$said/$asked.out" 2>"$said/$asked.err" || {
        rm -rf "$said"
        echo "$place takes nothing more; free some space" >&2
        exit 1
    }
    shift 2
    {
        "$@"
        printf '\036status %s\n' "$?"
        : >"$said/$asked.over"
    } </dev/null >>"$said/$asked.out" 2>>"$said/$asked.err" &
    tools="$tools $!"
}

# Waits for all tools, and prints what each said. One that is late has the status -1, which no tool gives (smartctl has 124
# where a drive is failing), and what it may say yet goes nowhere. It is not waited for: what hangs in the kernel does not
# end when it is killed.
answer() {
    # Unlike $$, the number of this shell where it is a subshell.
    read -r self _ </proc/self/stat
    trap : USR1
    {
        # Its sleep ends with it: some shells wait for whatever is left of a command substitution.
        before=$!
        trap '[ "$!" = "$before" ] || kill -9 "$!"; exit' TERM
        sleep "$wait_s" &
        wait "$!" && kill -USR1 "$self"
    } </dev/null >/dev/null 2>&1 &
    late=$!
    # shellcheck disable=SC2086
    wait $tools
    kill "$late" 2>/dev/null
    asked=1000
    for tool in $tools; do
        asked=$((asked + 1))
        [ ! -e "$said/$asked.over" ] || continue
        kill -9 "$tool" 2>/dev/null
        read -r heading <"$said/$asked.out"
        rm "$said/$asked.out"
        printf '%s\n\036status -1\n' "$heading" >"$said/$asked.out"
    done
    cat "$said"/*.out
    cat "$said"/*.err >&2
    rm -rf "$said"
}
