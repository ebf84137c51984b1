smartctl -H -j /dev/sdb
