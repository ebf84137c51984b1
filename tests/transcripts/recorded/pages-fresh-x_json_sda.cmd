smartctl -x -j /dev/sda
