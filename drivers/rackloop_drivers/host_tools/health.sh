# Says which boot of a server this is, what its kernel said since the position of another reading (the boot, and the
# stamp of the last line in seconds), and where each device is. What comes after the position is a command to do besides,
# for as long as a tool at most. Comes after sections.sh.
last_boot=$1 last_at=$2
shift 2

if [ $# -gt 0 ]; then
    ask besides - "$@"
    set --
fi
begin boot -
read -r boot </proc/sys/kernel/random/boot_id
printf '%s\n' "$boot"
[ "$boot" = "$last_boot" ] || [ "$last_at" = end ] || last_at=-1
begin kernel -
dmesg -r | awk -F '[][]' -v last_at="$last_at" '
    # Of a kernel with printk.time=0 busybox prints no time, and messages may begin with [drm] or the like.
    /^<[0-9]+>\[ *[0-9]+\.[0-9]+\]/ { at = $2; is_new = last_at != "end" && at + 0 > last_at + 0 }
    first == "" { first = at }
    is_new
    # A full log is without its first lines: all before the first that is left was read by then, or never.
    END {
        if (last_at != "end" && last_at + 0 >= 0 && first + 0 > last_at + 0) lost = first
        if (NR && at == "") print "its lines have no time; boot it with printk.time=1" | "cat >&2"
        printf "\036position -\n%s\n%s\n", at, lost
    }'
begin places -
# Of a PHY also the SAS port that it is in, for the drives behind it.
find /sys/class/scsi_host /sys/class/ata_port /sys/class/nvme /sys/class/sas_phy /sys/class/sas_phy/*/device/port \
    -maxdepth 1 -type l \( -path '*/device/port' -printf '%p %l\n' -o -printf '%f %l\n' \) 2>/dev/null
