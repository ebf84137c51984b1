smartctl -a -j /dev/sda
