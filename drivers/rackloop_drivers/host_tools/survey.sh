# Reads the drives of a server: all of them, or those that are given: by a node below /dev, or by the beginning of their
# names under /dev/disk/by-path. With --identity before these, who they are, and not how they are; with --usage, who uses
# them, and no drive is asked anything. Comes after sections.sh.
counts=yes asks=yes nodes=
case $1 in
--identity) counts=no && shift ;;
--usage) asks=no && shift ;;
esac

read_drive() {
    [ "$asks" = no ] || case $1 in
    nvme*c*n*) ;; # a path of a multipath namespace, which has a node of its own
    # A namespace is named after its subsystem, whose number need not be that of its controller: nvme2n2 can be nvme1's.
    nvme*n*)
        ask id-ctrl "$1" nvme id-ctrl "/dev/$1" -o json
        ask id-ns "$1" nvme id-ns "/dev/$1" -o json
        [ "$counts" = no ] || ask smart-log "$1" nvme smart-log "/dev/$1" -o json
        ;;
    *) ask smartctl "$1" smartctl --json=c -x "/dev/$1" ;;
    esac
    nodes="$nodes /dev/$1"
}

begin by-path -
find /dev/disk/by-path -type l -printf '%f %l\n' 2>/dev/null
begin block -
find /sys/block -maxdepth 1 -type l -printf '%f %l\n' 2>/dev/null
begin enclosures -
for slot in /sys/block/*/device/enclosure_device:*; do
    [ -e "$slot" ] && printf '%s\n' "$slot"
done
begin exports -
# What NVMe over Fabrics and LIO offer names no holder, and lsblk does not know: the node, and what it is in configfs.
for offer in /sys/kernel/config/nvmet/subsystems/*/namespaces/* /sys/kernel/config/target/core/*/*; do
    [ -e "$offer/enable" ] || continue
    grep -sqx 1 "$offer/enable" || continue
    node=$(cat "$offer/device_path" "$offer/udev_path" 2>/dev/null)
    printf '%s %s\n' "$(readlink -f "$node")" "${offer#/sys/kernel/config/}"
done
begin loops -
# Nor does a loop device claim what it stands on: its name, and the node. What array.sh noted is Rackloop's own.
for loop in /sys/block/loop*; do
    [ -e "$loop/loop/backing_file" ] || continue
    read -r file <"$loop/loop/backing_file"
    read -r offset <"$loop/loop/offset"
    file=${file% (deleted)}
    grep -sqxF "${loop##*/} ${file##*/} $offset" /run/rackloop-md/* || printf '%s %s\n' "${loop##*/}" "$file"
done
begin paths -
# Another path to a drive is another disk, and tells nothing of the first: the disk's name, and who the kernel says it is.
paths=$(for block in /sys/block/*; do
    [ -e "/dev/${block##*/}" ] || continue # a path of a multipath namespace
    for file in "$block/wwid" "$block/device/wwid"; do
        read -r wwid 2>/dev/null <"$file" && [ -n "$wwid" ] && printf '%s %s\n' "${block##*/}" "$wwid"
    done
done)
printf '%s\n' "$paths"
begin values -
grep -sH . /sys/class/sas_device/*/bay_identifier /sys/bus/pci/slots/*/address /sys/class/sas_phy/*/enable \
    /sys/class/sas_phy/*/sas_address /sys/class/sas_phy/*/negotiated_linkrate /sys/class/sas_phy/*/*_count

if [ $# -gt 0 ]; then
    for given in "$@"; do
        case $given in
        /*) set -- "$given" ;;
        *) set -- /dev/disk/by-path/"$given"* ;;
        esac
        for node in "$@"; do
            real=$(readlink -f "$node")
            # A partition has no entry of its own in /sys/block.
            [ -e "/sys/block/${real##*/}" ] && read_drive "${real##*/}"
        done
    done
else
    for block in /sys/block/sd* /sys/block/nvme*; do
        [ -e "$block" ] && read_drive "${block##*/}"
    done
    nodes=
fi
# What uses a drive by another path to it is told as well.
[ -z "$nodes" ] || nodes="$nodes $(printf '%s\n' "$paths" | awk -v nodes="$nodes " '
    { who = substr($0, length($1) + 2); is_given = index(nodes, "/dev/" $1 " ") }
    is_given { given[who] }
    !is_given { name[NR] = $1; of[NR] = who }
    END { for (line in name) if (of[line] in given) print "/dev/" name[line] }')"
# Nodes have no spaces in their names; without any it lists all there are.
# shellcheck disable=SC2086
ask lsblk - lsblk -J -O -b $nodes
answer
exit 0
