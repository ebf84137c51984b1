smartctl -H -j /dev/sda
