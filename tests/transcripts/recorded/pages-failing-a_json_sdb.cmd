smartctl -a -j /dev/sdb
