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

# Where nft does not say, nothing is told, and no timer ended: it may be all that will end a cut.
is_cut() {
    tables=$(nft list tables) || exit 1
    printf '%s\n' "$tables" | grep -qx "table $table"
}

# Of so many seconds, instead of the one of process $2. It goes on whatever becomes of who asked.
begin_timer() {
    env -u RACKLOOP_COMMAND setsid sh -c 'echo $$ >"$1.new" && mv "$1.new" "$1" && sleep "$2"
        # One that was ended, and begun anew, is another timer'"'"'s.
        [ "$(cat "$1")" = $$ ] && nft delete table $3 && rm -f "$1"' timer "$timer" "$1" "$table" \
        </dev/null >/dev/null 2>&1 &
    tries=500
    until [ -e "$timer" ] && [ "$(cat "$timer")" != "$2" ]; do
        [ "$tries" -gt 0 ] || { echo "$timer cannot be written" >&2 && exit 1; }
        tries=$((tries - 1))
        sleep 0.01
    done
}

# Whether a disk, a folder of sysfs, is another machine's that is reached by IP.
is_remote() {
    case ${1##*/} in nbd* | rbd*) return 0 ;; esac
    case $(readlink -f "$1/device") in */session[0-9]*/target*) return 0 ;; esac
    cat "$1/device/transport" "$1"/device/nvme*/transport 2>/dev/null | grep -qx -e tcp -e rdma
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
    for disk in "$1"/block/*; do
        is_remote "$disk" && lsblk -rno MOUNTPOINT "/dev/${disk##*/}" | sed -n 's/^..*/mount &/p'
    done | sort -u
    while read -r _ place kind _; do
        case $kind in
        nfs | nfs4 | cifs | smb3 | smbfs | 9p | afs | ceph | lustre | beegfs | gpfs | glusterfs) echo "mount $place" ;;
        fuse.glusterfs | fuse.sshfs | fuse.ceph | fuse.ceph-fuse | fuse.rclone) echo "mount $place" ;;
        # Of a cluster, whose other members would have a server reset that they hear nothing of.
        gfs2 | ocfs2) echo "mount $place" ;;
        esac
    done </proc/mounts
    ;;
begin)
    family=$1 client=$2 port=$3 trial_s=$4
    is_cut && exit 0
    end_timer
    # First what ends it.
    begin_timer "$trial_s" ''
    set -- "add table $table" \
        "add chain $table input { type filter hook input priority -300; policy drop; }" \
        "add chain $table output { type filter hook output priority -300; policy drop; }" \
        "add chain $table forward { type filter hook forward priority -300; policy drop; }" \
        "add rule $table input iif lo accept" \
        "add rule $table output oif lo accept" \
        "add rule $table input $family saddr $client tcp dport $port accept" \
        "add rule $table output $family daddr $client tcp sport $port accept"
    # By these a server keeps its address and its way to the harness, and learns how large a packet may be. IPv6 finds
    # neighbours and routers by packets that the filter sees, and switches forget who does not report as a listener.
    if [ "$family" = ip6 ]; then
        types='nd-neighbor-solicit, nd-neighbor-advert, nd-router-solicit, nd-router-advert'
        types="$types, mld-listener-query, mld-listener-report, mld2-listener-report, packet-too-big"
        set -- "$@" \
            "add rule $table input icmpv6 type { $types } accept" \
            "add rule $table output icmpv6 type { $types } accept" \
            "add rule $table input udp dport 546 accept" \
            "add rule $table output udp dport 547 accept"
    else
        set -- "$@" \
            "add rule $table input icmp type destination-unreachable accept" \
            "add rule $table input udp sport 67 udp dport 68 accept" \
            "add rule $table output udp sport 68 udp dport 67 accept"
    fi
    # All of it in one step, or none: there is no moment when the harness is shut out.
    if ! nft "$(printf '%s\n' "$@")"; then
        end_timer
        exit 1
    fi
    ;;
hold)
    # Who asks has come in by a new login: as long as $1 instead of the trial.
    trial=$(cat "$timer" 2>/dev/null)
    if is_cut; then
        begin_timer "$1" "$trial"
        [ -z "$trial" ] || kill -- "-$trial" 2>/dev/null
    fi
    # The trial may have ended meanwhile.
    is_cut || { end_timer && echo "the cut was over before" >&2 && exit 1; }
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
