smartctl -a /dev/sda
