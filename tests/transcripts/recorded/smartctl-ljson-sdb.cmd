smartctl -x -j=c /dev/sdb
