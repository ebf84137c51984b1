smartctl -x -j /dev/sdd
