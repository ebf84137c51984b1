smartctl -H /dev/sda
