smartctl -x /dev/sdc
