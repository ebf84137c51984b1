smartctl -A /dev/sdc
