# Takes the signal of SAS PHYs away and gives it back: this text once more, VIA (sysfs or smp), WHAT, its arguments.
PATH=$PATH:/usr/sbin:/sbin
export PATH LC_ALL=C
text=$1 via=$2 what=$3
shift 3
class=/sys/class/sas_phy
# What was asked for by number, so that asking again does nothing. Gone with a reboot, which enables PHYs anyway.
requests=/run/rackloop-phy
# What is switched off until it is enabled: ending a drop does not give it back. Gone with a reboot likewise.
kept_off=/run/rackloop-phy-off
# The expanders that a PHY led to when it was taken away: they are gone with the last of theirs. Likewise.
led_to=/run/rackloop-phy-led-to
# A link is trained or lost in less, a hundredth of a second each.
most_tries=500

# Not every driver lets sysfs do it: is there an attribute $2 of the PHY?
by_smp() {
    [ "$via" = smp ] || [ ! -e "$class/$1/$2" ]
}

# phy-0:3 is that of a host, phy-0:1:3 that of an expander.
smp() {
    tool=$1 of=${2#phy-}
    shift 2
    case $of in
    *:*:*) "$tool" --phy="${of##*:}" "$@" "/dev/bsg/expander-${of%:*}" ;;
    *) "$tool" --phy="${of##*:}" "$@" "/dev/bsg/sas_host${of%:*}" ;;
    esac
}

switch_off() {
    if by_smp "$1" enable; then smp smp_phy_control "$1" --op=dis; else echo 0 >"$class/$1/enable"; fi
}

switch_on() {
    if by_smp "$1" enable; then smp smp_phy_control "$1" --op=lr; else echo 1 >"$class/$1/enable"; fi
}

# Nobody else would: once more, for as long as it is refused.
keep_switching_on() {
    tries=$most_tries
    until switch_on "$1" || [ "$tries" -eq 0 ]; do
        tries=$((tries - 1))
        sleep 0.01
    done
}

# 0 is yes, 1 is no, 2 is unknown.
is_disabled() {
    if by_smp "$1" enable; then
        told=$(smp smp_discover "$1" --list 2>/dev/null) || return 2
        printf '%s\n' "$told" | grep -q '^ *neg_log_lrate=' || return 2
        printf '%s\n' "$told" | grep -q '^ *neg_log_lrate=1$'
    else
        grep -qs disabled "$class/$1/negotiated_linkrate"
    fi
}

cannot_tell() {
    echo "cannot tell whether $1 is disabled: look at what smp_discover and negotiated_linkrate say" >&2
    exit 3
}

# A request whose process lives no more takes nothing away: it was killed, as where memory ran out.
forget_dead() {
    for held in "$requests"/*/phy-* "$requests"/*/acting-*; do
        request=${held%/*}
        [ -s "$request/pid" ] || continue
        # Another process may have its number by now.
        tr '\0' ' ' 2>/dev/null <"/proc/$(cat "$request/pid")/cmdline" |
            grep -qE " (begin|swing) ${request##*/} " || rm -f "$held"
    done
}

# Whether a drop or a flap of the PHY goes on.
is_taken() {
    set -- "$requests"/*/"$1"
    [ -e "$1" ]
}

must_be_free() {
    for phy in "$@"; do
        is_taken "$phy" && echo "a drop or a flap of $phy goes on: end that first" >&2 && exit 6
    done
    return 0
}

give_back() {
    is_disabled "$1"
    case $? in
    0) switch_on "$1" || exit 1 ;;
    2) cannot_tell "$1" ;;
    esac
}

await() {
    tries=$most_tries
    while :; do
        is_disabled "$2"
        found=$?
        [ "$found" -eq "$1" ] && return
        if [ "$tries" -eq 0 ]; then
            [ "$found" -eq 2 ] && cannot_tell "$2"
            echo "$2 does not follow: it reads $(cat "$class/$2/negotiated_linkrate")" >&2
            exit 3
        fi
        tries=$((tries - 1))
        sleep 0.01
    done
}

# A link that was given back has its signal soon; one that nothing is plugged into never does.
await_signal() {
    tries=100
    until grep -qs Gbit "$class/$1/negotiated_linkrate" || [ "$tries" -eq 0 ]; do
        tries=$((tries - 1))
        sleep 0.01
    done
}

# What takes a PHY away already is waited for: two at once would count as one.
await_turn() {
    tries=$most_tries
    while set -- "$requests"/*/"$1" && [ -e "$1" ]; do
        if [ "$tries" -eq 0 ]; then
            echo "${1##*/} is being taken away by another request" >&2
            exit 3
        fi
        tries=$((tries - 1))
        set -- "${1##*/}"
        sleep 0.01
    done
}

# What was about to switch a PHY when it was ended does that first: later, it would switch for whoever has the PHY then.
await_rest() {
    tries=$most_tries
    while ls "$requests"/*/"acting-$1" >/dev/null 2>&1 && [ "$tries" -gt 0 ]; do
        tries=$((tries - 1))
        sleep 0.01
    done
    # It was killed meanwhile, and nobody is to wait for it again.
    [ "$tries" -gt 0 ] || rm -f "$requests"/*/"acting-$1"
}

begin_acting() {
    for phy in $phys; do : >"$requests/$id/acting-$phy"; done
}

end_acting() {
    rm -f "$requests/$id"/acting-*
}

# Those of the request's PHYs that nobody has ended it for.
wanted() {
    taken=
    for phy in $phys; do
        [ -e "$requests/$id/$phy" ] && taken="$taken $phy"
    done
}

# Sleeps for as long as anything is wanted: a number of seconds with six decimals.
pause() {
    sleep "0.${1#*.}"
    seconds=${1%.*}
    while [ "$seconds" -gt 0 ] && wanted && [ -n "$taken" ]; do
        sleep 1
        seconds=$((seconds - 1))
    done
}

forget_old() {
    for request in "$requests"/*; do
        [ -e "$request" ] || continue
        # One that still takes a PHY away is not old, however long it does.
        if [ -n "$(find "$request" -maxdepth 0 -mmin +60)" ] && ! ls "$request"/phy-* >/dev/null 2>&1; then
            rm -rf "$request"
        fi
    done
}

# The port that a PHY is part of: nothing for one without a link, and where the driver does not say.
port_of() {
    place=$(readlink -f "$class/$1")
    place=${place%/sas_phy/*}
    [ ! -e "$place/port" ] || readlink -f "$place/port"
}

# The SAS addresses of the expanders behind a PHY, with a comma each; ? where that is not known, as of an expander's own.
expanders_of() {
    case $1 in *:*:*) echo '?' && return ;; esac
    port=$(port_of "$1")
    if [ -z "$port" ]; then
        cat "$led_to/$1" 2>/dev/null || echo '?'
        return
    fi
    for expander in /sys/class/sas_device/expander-*; do
        case $(readlink -f "$expander") in "$port"/*) printf '%s,' "$(cat "$expander/sas_address")" ;; esac
    done
    echo ,
}

keep_expanders() {
    mkdir -p "$led_to" || exit 1
    for phy in "$@"; do
        [ -z "$(port_of "$phy")" ] || expanders_of "$phy" >"$led_to/$phy"
    done
}

all_of() {
    for phy in "$@"; do
        [ -e "$class/$phy" ] || { echo "there is no $class/$phy any more" >&2 && exit 4; }
        if by_smp "$phy" enable && ! command -v smp_phy_control >/dev/null; then
            exit 5
        fi
    done
}

case $what in
begin | free | disable | enable | restore) forget_dead ;;
esac
case $what in
list)
    for phy in "$class"/*; do
        [ -e "$phy/phy_identifier" ] || continue
        # While an adapter is reset it does not count, and an expander may go while it is looked at.
        losses=$(cat "$phy/loss_of_dword_sync_count" 2>/dev/null) && [ -n "$losses" ] || losses='?'
        echo "${phy##*/} $losses $(readlink -f "$phy") $(expanders_of "${phy##*/}")" \
            "$(cat "$phy/negotiated_linkrate")"
    done
    ;;
behind)
    for phy in "$@"; do
        host=$(readlink -f "$class/$phy")
        host=${host%/phy-*/sas_phy/*}
        named='' behind=''
        for port in "$host"/port-*; do
            set -- "$port"/phy-*
            [ -e "$1" ] && named=yes
            [ -e "$port/$phy" ] && behind=$port
        done
        # Where no port says which PHYs it is made of, it may be any.
        [ -n "$named" ] || behind=$host
        [ -n "$behind" ] || continue
        for block in /sys/block/*; do
            case $(readlink -f "$block") in "$behind"/*) echo "${block##*/}" ;; esac
        done
    done
    ;;
begin)
    id=$1 count=$2 down_s=$3 up_s=$4
    shift 4
    all_of "$@"
    mkdir -p "$requests" || exit 1
    forget_old
    [ -e "$requests/$id" ] && exit 0
    for phy in "$@"; do
        [ -e "$kept_off/$phy" ] || continue
        is_disabled "$phy"
        case $? in
        0) echo "$phy is switched off: end that first" >&2 && exit 6 ;;
        1) rm -f "$kept_off/$phy" ;;
        *) cannot_tell "$phy" ;;
        esac
    done
    for phy in "$@"; do await_turn "$phy"; done
    keep_expanders "$@"
    mkdir "$requests/$id" 2>/dev/null || exit 0
    echo $$ >"$requests/$id/pid"
    for phy in "$@"; do
        : >"$requests/$id/$phy"
    done
    # Goes on by itself whatever becomes of who asked: a PHY that is taken down comes up again.
    env -u RACKLOOP_COMMAND setsid sh -c "$text" phy "$text" "$via" swing "$id" "$count" "$down_s" "$up_s" "$@" \
        </dev/null >/dev/null 2>"$requests/$id/said" &
    tries=$((2 * most_tries))
    until [ -e "$requests/$id/down" ]; do
        if [ -s "$requests/$id/said" ] || [ "$tries" -eq 0 ]; then
            cat "$requests/$id/said" >&2
            exit 3
        fi
        tries=$((tries - 1))
        sleep 0.005
    done
    ;;
swing)
    id=$1 count=$2 down_s=$3 up_s=$4
    shift 4
    phys=$*
    echo $$ >"$requests/$id/pid"
    trap end_acting EXIT
    while [ "$count" -gt 0 ]; do
        begin_acting
        wanted
        for phy in $taken; do switch_off "$phy"; done
        # Who ended it in between has enabled them too early.
        before=$taken
        wanted
        for phy in $before; do [ -e "$requests/$id/$phy" ] || keep_switching_on "$phy"; done
        for phy in $taken; do await 0 "$phy"; done
        end_acting
        : >"$requests/$id/down"
        pause "$down_s"
        begin_acting
        wanted
        for phy in $taken; do keep_switching_on "$phy"; done
        for phy in $taken; do await 1 "$phy"; done
        for phy in $taken; do await_signal "$phy"; done
        end_acting
        count=$((count - 1))
        [ -n "$taken" ] || count=0
        [ "$count" -gt 0 ] && pause "$up_s"
    done
    for phy in "$@"; do rm -f "$requests/$id/$phy"; done
    ;;
able)
    all_of "$@"
    ;;
free)
    must_be_free "$@"
    ;;
disable)
    all_of "$@"
    must_be_free "$@"
    mkdir -p "$kept_off" || exit 1
    keep_expanders "$@"
    for phy in "$@"; do
        : >"$kept_off/$phy" || exit 1
        switch_off "$phy" || exit 1
    done
    for phy in "$@"; do await 0 "$phy"; done
    ;;
enable)
    all_of "$@"
    for phy in "$@"; do
        # What a drop takes away, the drop gives back.
        is_taken "$phy" && continue
        give_back "$phy"
        await 1 "$phy"
    done
    for phy in "$@"; do rm -f "$kept_off/$phy"; done
    ;;
restore)
    all_of "$@"
    # A flap that goes on would take them away again.
    for phy in "$@"; do rm -f "$requests"/*/"$phy"; done
    for phy in "$@"; do await_rest "$phy"; done
    for phy in "$@"; do
        [ -e "$kept_off/$phy" ] && continue
        give_back "$phy"
        await 1 "$phy"
    done
    ;;
reset)
    kind=$1
    shift
    all_of "$@"
    for phy in "$@"; do
        if by_smp "$phy" "${kind}_reset"; then
            smp smp_phy_control "$phy" --op="${kind%"${kind#?}"}r" || exit 1
        else
            echo 1 >"$class/$phy/${kind}_reset" || exit 1
        fi
    done
    ;;
esac
