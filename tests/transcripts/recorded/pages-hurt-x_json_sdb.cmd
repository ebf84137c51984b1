smartctl -x -j /dev/sdb
