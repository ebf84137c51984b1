smartctl -x -j /dev/sdc
