# Tells a server that what is at some of its ports is about to be switched: this text once more, what it does (begin or
# watch), for how many seconds, and the path of each port: what names under /dev/disk/by-path begin with.
PATH=$PATH:/usr/sbin:/sbin
export PATH LC_ALL=C
text=$1 what=$2 for_s=$3
shift 3
by_path=/dev/disk/by-path
functions=/sys/bus/pci/devices

# The kernel's name of the disk at a port, nothing where there is none.
disk_at() {
    for link in "$by_path/$1"*; do
        rest=${link#"$by_path/$1"}
        # ata-1 is not the beginning of ata-10.
        case $1,$rest in *[0-9a-zA-Z],[0-9a-zA-Z]* | *-part[0-9]*) continue ;; esac
        [ -e "$link" ] || continue
        name=$(readlink -f "$link")
        echo "${name##*/}"
        return
    done
}

# What no two drives there have in common, and no two arrivals of one.
identity() {
    disk=$(disk_at "$1")
    [ -n "$disk" ] || return
    for attribute in diskseq wwid device/wwid; do
        cat "/sys/block/$disk/$attribute" 2>/dev/null
    done
}

# The files by which the kernel looks at a port, and at no other: beside it a fault may have removed a drive, which has to stay
# so. Of an AHCI controller it is that port's scan, which is a COMRESET, of an NVMe drive the rescan of its own bus. A SAS HBA
# finds a drive by itself; a scan of it finds again what was removed, and nothing else. Of any other host it is its scan.
looked_by() {
    # Behind Intel's VMD the last one: pci-0000:00:0e.0-pci-10000:01:00.0.
    function=${1##*pci-}
    function=${function%%-*}
    case $1 in *-ata-[0-9]*) number=${1##*-ata-} number=${number%%[!0-9]*} ;; *) number= ;; esac
    hosts=
    for host in "$functions/$function"/host* "$functions/$function"/ata*/host*; do
        [ -e "$host" ] || continue
        hosts=some
        [ -n "$number" ] && ! grep -qsx "$number" "${host%/*}"/ata_port/ata*/port_no && continue
        [ -e "$host/sas_host" ] || echo "$host/scsi_host/${host##*/}/scan"
    done
    [ -z "$hosts" ] || return
    rescan=/sys/class/pci_bus/${function%:*}/rescan
    [ -e "$rescan" ] || rescan=/sys/bus/pci/rescan
    echo "$rescan"
}

look() {
    # Channel, target and LUN, where the path ends in them.
    case $1 in *-scsi-*:*:*:*) place=${1##*-scsi-} place=${place#*:} ;; *) place=-:-:- ;; esac
    for file in $(looked_by "$1"); do
        case $file in */scan) echo "$place" | tr : ' ' ;; *) echo 1 ;; esac >"$file" || return
    done
}

case $what in
begin)
    for path; do
        for file in $(looked_by "$path"); do
            [ -w "$file" ] || { echo "$file cannot be written" >&2; exit 3; }
        done
    done
    for path; do
        [ -n "$(looked_by "$path")" ] || continue
        # Goes on by itself, since the switch is told next, and ends by itself. It has begun once it says nothing more:
        # then it has a session of its own, and does not end with this one.
        was=$(identity "$path")
        : "$(RACKLOOP_WAS=$was env -u RACKLOOP_COMMAND setsid sh -c "$text" notice "$text" watch "$for_s" "$path" \
            </dev/null 2>/dev/null &)"
    done
    ;;
watch)
    exec >/dev/null
    # A link that has just been reset is left alone until it can have trained.
    pause_ms=20 left_ms=$((for_s * 1000))
    while [ "$left_ms" -gt 0 ]; do
        look "$1"
        is=$(identity "$1")
        [ -n "$is" ] && [ "$is" != "$RACKLOOP_WAS" ] && exit
        sleep "$((pause_ms / 1000)).$(printf %03d $((pause_ms % 1000)))"
        left_ms=$((left_ms - pause_ms))
        [ "$pause_ms" -ge 1000 ] || pause_ms=$((2 * pause_ms))
    done
    ;;
esac
