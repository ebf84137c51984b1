smartctl -x /dev/sda
