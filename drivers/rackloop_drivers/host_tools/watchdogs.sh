# Why a hardware watchdog would reset a server whose programs run no more, a line for each: nothing where none would.
active_watchdogs() {
    for watchdog in /sys/class/watchdog/watchdog*; do
        [ -e "$watchdog" ] || continue
        name=${watchdog##*/}
        case $(cat "$watchdog/state" 2>/dev/null) in
        active) echo "$name is active, and would reset it: stop what feeds it, as by RuntimeWatchdogSec=0 of systemd" ;;
        inactive) ;;
        *)
            # A kernel without CONFIG_WATCHDOG_SYSFS does not say, but what feeds one keeps it open.
            if ! ls /proc/1/fd >/dev/null 2>&1; then
                echo "$name does not say whether it is active, nor /proc/1/fd whether it is open, which takes root"
            elif ls -l /proc/[0-9]*/fd 2>/dev/null | awk -v node="/dev/$name" '
                $NF == "/dev/watchdog" || $NF == node { found = 1 }
                END { exit !found }'; then
                echo "$name may be active, since a watchdog is open, and would reset it: stop what feeds it, as by" \
                    "RuntimeWatchdogSec=0 of systemd"
            fi
            ;;
        esac
    done
}
