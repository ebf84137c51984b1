smartctl -i /dev/sda
