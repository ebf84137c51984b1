smartctl -x /dev/sdb
