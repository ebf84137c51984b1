smartctl -H -A /dev/sdb
