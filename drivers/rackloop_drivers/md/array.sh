# An md array of regions of drives, each by way of a loop device: WHAT NAME, then its arguments.
#
# A drive that is held (O_EXCL) can be opened by a loop device, and not be claimed by md: so that whoever holds it goes on
# holding it.
PATH=$PATH:/usr/sbin:/sbin
export PATH LC_ALL=C
what=$1 name=$2
shift 2
# A line for each loop device: its name, the drive's kernel name, and where the region begins. Gone with a reboot, as they
# all are.
folder=/run/rackloop-md
made=$folder/$name

# Whether LOOP is the loop device of DRIVE from OFFSET on, and not another's that has its name by now.
is_ours() {
    read -r file 2>/dev/null <"/sys/block/$1/loop/backing_file" && [ "${file%% *}" = "/dev/$2" ] &&
        [ "$(cat "/sys/block/$1/loop/offset")" = "$3" ]
}

ours() {
    [ -e "$made" ] || return 0
    while read -r loop drive offset; do
        if is_ours "$loop" "$drive" "$offset"; then echo "$loop"; fi
    done <"$made"
}

# The array that has one of them, by its kernel name: none where there is none.
array() {
    for loop in $(ours); do
        for holder in "/sys/block/$loop/holders"/*; do
            [ -e "$holder" ] && echo "${holder##*/}" && return
        done
    done
}

# Leaves no array of them. Where udev puts one together again from what is written on them, that one goes as well.
take_apart() {
    tries=20
    while found=$(array) && [ -n "$found" ]; do
        [ "$tries" -gt 0 ] || return 1
        tries=$((tries - 1))
        mdadm --stop --quiet "/dev/$found" || sleep 0.2
    done
}

for tool in mdadm losetup; do
    command -v "$tool" >/dev/null || { echo "$tool" && exit 5; }
done
case $what in
look)
    modprobe -a loop raid456 2>/dev/null
    [ -d /sys/module/raid456 ] || { echo "its kernel has no raid456" >&2 && exit 6; }
    [ ! -e "$made" ] || { echo "there is an array $name, or what is left of one" >&2 && exit 1; }
    ;;
begin)
    # LEVEL CHUNK_KIB OFFSET SIZE DRIVES, then the devices: of those behind the first DRIVES, each is a spare.
    level=$1 chunk_kib=$2 offset=$3 size=$4 drives=$5
    shift 5
    spares=$(($# - drives))
    mkdir -p "$folder"
    for device; do
        drive=$(basename "$(readlink -f "$device")")
        loop=$(basename "$(losetup --find)") || exit
        echo "$loop $drive $offset" >>"$made" || exit
        losetup --offset "$offset" --sizelimit "$size" --direct-io=on "/dev/$loop" "$device" || exit
        # Of what lay there before, nothing is taken for an array.
        mdadm --zero-superblock --force --quiet "/dev/$loop" 2>/dev/null
    done
    # Names of loop devices.
    # shellcheck disable=SC2046
    mdadm --create "/dev/md/$name" --run --quiet --metadata=1.2 --bitmap=none --homehost=rackloop --name="$name" \
        --level="$level" --chunk="$chunk_kib" --raid-devices="$drives" --spare-devices="$spares" \
        $(ours | sed 's:^:/dev/:')
    ;;
show)
    found=$(array)
    [ -n "$found" ] || { echo "no array has its drives" >&2 && exit 1; }
    echo "array $found $(cat "/sys/block/$found/md/uuid") $(cat "/sys/block/$found/size")"
    while read -r loop drive offset; do echo "drive $loop $drive $offset"; done <"$made"
    ;;
assemble)
    take_apart || exit
    # Names of loop devices.
    # shellcheck disable=SC2046
    mdadm --assemble --force --run --quiet "/dev/md/$name" $(ours | sed 's:^:/dev/:')
    ;;
fail)
    found=$(array)
    for loop; do mdadm --quiet "/dev/$found" --fail "/dev/$loop"; done
    exit 0
    ;;
return)
    # The loop devices that are to be in the array again, as if they were new.
    found=$(array)
    for loop; do
        mdadm --quiet "/dev/$found" --remove "/dev/$loop" 2>/dev/null
        mdadm --quiet "/dev/$found" --add "/dev/$loop" || exit
    done
    ;;
stands)
    if [ -n "$(ours)" ]; then echo yes; fi
    ;;
end)
    [ -e "$made" ] || exit 0
    take_apart || exit
    for loop in $(ours); do
        mdadm --zero-superblock --force --quiet "/dev/$loop" 2>/dev/null
        # It may have been put together once more.
        take_apart || exit
        losetup --detach "/dev/$loop" || exit
    done
    rm -f "$made"
    ;;
esac
