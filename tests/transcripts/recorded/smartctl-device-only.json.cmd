smartctl -j /dev/sda
