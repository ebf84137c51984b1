smartctl -j -H /dev/sdb
