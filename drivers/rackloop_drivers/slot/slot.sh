# Where a drive is plugged in, and what takes it away: WHAT, then its arguments. A drive is given by a node, a link to
# it, or the beginning of its names below /dev/disk/by-path.
PATH=$PATH:/usr/sbin:/sbin
export PATH LC_ALL=C

# The kernel name of the drive, nothing where it is not there.
name_of() {
    given=$1
    case $given in
    /*) ;;
    *) set -- /dev/disk/by-path/"$given"* ;;
    esac
    for link in "$@"; do
        # The path of port 1 is the beginning of that of port 10 too.
        case ${link#*"$given"} in
        [0-9A-Za-z]*) continue ;;
        esac
        node=$(readlink -f "$link") || continue
        # A partition has no entry of its own in /sys/block.
        if [ -e "/sys/block/${node##*/}" ]; then
            echo "${node##*/}"
            return
        fi
    done
}

# The places of a block device's controllers. An NVMe drive that may have several is at none of them but at their
# subsystem, whose folder has a link to each.
controllers_of() {
    device=$(readlink -f "/sys/block/$1/device")
    case $device in
    */devices/virtual/nvme-subsystem/*)
        for controller in "$device"/nvme*; do
            [ -L "$controller" ] && readlink -f "$controller"
        done
        ;;
    *) echo "$device" ;;
    esac
}

await() {
    tries=$3
    while :; do
        name=$(name_of "$2")
        case $1 in
        there) [ -n "$name" ] && return ;;
        gone) [ -z "$name" ] && return ;;
        esac
        [ "$tries" -gt 0 ] || exit 3
        tries=$((tries - 1))
        sleep 0.02
    done
}

# Only what is above a drive in sysfs, or the slot of what is, takes that drive away and not another.
must_be_above() {
    name=$(name_of "$2")
    [ -n "$name" ] || exit 4
    folder=$(readlink -f "$1")
    for place in $(controllers_of "$name"); do
        case $place in "$folder" | "$folder"/*) return ;; esac
        [ -e "$1/address" ] || continue
        case $place in */"$(cat "$1/address")".[0-7]/*) return ;; esac
    done
    echo "$1 is not above $name in sysfs: writing to it would take another drive away" >&2
    exit 5
}

what=$1
shift
case $what in
locate)
    name=$(name_of "$1")
    [ -n "$name" ] || exit 4
    controllers=$(controllers_of "$name")
    device=$(echo "$controllers" | head -n 1)
    # A subsystem that lost its last controller is there for as long as it is open.
    [ -n "$device" ] || exit 4
    echo "name $name"
    echo "device $device"
    echo "$controllers" | sed '1d; s/^/also /'
    for element in /sys/class/enclosure/*/*/device; do
        if [ "$(readlink -f "$element")" = "$device" ]; then
            folder=${element%/device}
            number=$(cat "$folder/slot")
            # sg_ses takes the first slot of a number, which may be of another drawer: the number of none, then.
            for other in "${folder%/*}"/*/device; do
                other=${other%/device}
                [ "$other" = "$folder" ] || [ "$(cat "$other/slot")" != "$number" ] || number=
            done
            echo "enclosure $(cat "${folder%/*}/id") $number"
        fi
    done
    for block in /sys/block/*; do
        [ -e "$block" ] && echo "block ${block##*/} $(readlink -f "$block")"
    done
    for slot in /sys/bus/pci/slots/*/address; do
        [ -e "$slot" ] || continue
        # A slot of the firmware's has a file for its power, too, and ejects the drive instead.
        case $(readlink "${slot%/address}/module") in
        */acpiphp) echo "ejects $(cat "$slot")" ;;
        *) echo "slot $(cat "$slot") ${slot%/address}" ;;
        esac
    done
    exit 0
    ;;
enclosure)
    for id in /sys/class/enclosure/*/id; do
        if [ "$(cat "$id")" = "$1" ]; then
            set -- "${id%/id}/device/scsi_generic/"*
            echo "/dev/${1##*/}"
            exit 0
        fi
    done
    exit 4
    ;;
write)
    [ "$3" != gone ] || must_be_above "${1%/*}" "$4"
    printf '%s\n' "$2" >"$1" || exit 1
    await "$3" "$4" "$5"
    ;;
await) await "$@" ;;
esac
