smartctl -H /dev/sdb
