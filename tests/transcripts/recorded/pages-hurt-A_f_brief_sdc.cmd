smartctl -A -f brief /dev/sdc
