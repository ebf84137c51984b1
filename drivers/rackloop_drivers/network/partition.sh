# Cuts a server off its network, but for the SSH of whoever asks: WHAT, then its arguments.
PATH=$PATH:/usr/sbin:/sbin
export PATH LC_ALL=C
table='inet rackloop_partition'
# The process that ends it in time; gone with a reboot, as is the table.
timer=/run/rackloop-partition

end_timer() {
    [ -e "$timer" ] || return 0
    kill -- "-$(cat "$timer")" 2>/dev/null
    rm -f "$timer"
}

is_cut() {
    nft list tables | grep -qx "table $table"
}

what=$1
shift
command -v nft >/dev/null || exit 5
case $what in
look)
    # sudo takes the variable away: whoever began this still has it.
    connection=$SSH_CONNECTION process=$$
    while [ -z "$connection" ] && [ "$process" -gt 1 ]; do
        connection=$(tr '\0' '\n' <"/proc/$process/environ" 2>/dev/null | sed -n 's/^SSH_CONNECTION=//p')
        process=$(sed -n 's/^PPid:[^0-9]*//p' "/proc/$process/status")
    done
    echo "from $connection"
    while read -r _ place kind _; do
        case $kind in
        nfs | nfs4 | cifs | smb3 | 9p | ceph | glusterfs | fuse.glusterfs | fuse.sshfs) echo "mount $place" ;;
        esac
    done </proc/mounts
    ;;
begin)
    family=$1 client=$2 port=$3 longest_s=$4
    is_cut && exit 0
    end_timer
    # First what ends it, which goes on whatever becomes of who asked.
    env -u RACKLOOP_COMMAND setsid sh -c 'echo $$ >"$1.new" && mv "$1.new" "$1" && sleep "$2"
        # One that was ended, and begun anew, is another timer'"'"'s.
        [ "$(cat "$1")" = $$ ] && nft delete table $3 && rm -f "$1"' timer "$timer" "$longest_s" "$table" \
        </dev/null >/dev/null 2>&1 &
    tries=500
    until [ -e "$timer" ]; do
        [ "$tries" -gt 0 ] || { echo "$timer cannot be written" >&2 && exit 1; }
        tries=$((tries - 1))
        sleep 0.01
    done
    set -- "add table $table" \
        "add chain $table input { type filter hook input priority -300; policy drop; }" \
        "add chain $table output { type filter hook output priority -300; policy drop; }" \
        "add chain $table forward { type filter hook forward priority -300; policy drop; }" \
        "add rule $table input iif lo accept" \
        "add rule $table output oif lo accept" \
        "add rule $table input $family saddr $client tcp dport $port accept" \
        "add rule $table output $family daddr $client tcp sport $port accept"
    # IPv6 finds its neighbours by packets that the filter sees; IPv4 does not.
    if [ "$family" = ip6 ]; then
        for chain in input output; do
            set -- "$@" "add rule $table $chain icmpv6 type { nd-neighbor-solicit, nd-neighbor-advert } accept"
        done
    fi
    # All of it in one step, or none: there is no moment when the harness is shut out.
    if ! nft "$(printf '%s\n' "$@")"; then
        end_timer
        exit 1
    fi
    ;;
stands)
    if is_cut; then echo yes; else echo no; fi
    ;;
end)
    if is_cut; then
        nft delete table $table || exit 1
    fi
    end_timer
    ;;
esac
