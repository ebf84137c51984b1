smartctl -x /dev/sdd
